"""Figures that are plain numbers tell Prometheus what its own counters and histograms would."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from ksana.engine.tallies import Counts, Distribution

BOUNDS = (0.1, 0.5, 2.5)
AMOUNTS = (0.0, 0.1, 0.100001, 0.3, 2.5, 60.0)


def told(registry: CollectorRegistry) -> set[str]:
    """Without when it was made, which ours do not tell."""
    return {line for line in generate_latest(registry).decode().splitlines() if "_created" not in line}


def test_counts_are_told_as_a_counter() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counts = Counts("runs", "Runs.", ["status"], ours)
    counter = Counter("runs", "Runs.", ["status"], registry=theirs)
    for status, number in (("well", 1), ("badly", 3), ("well", 2)):
        counts.add((status,), number)
        counter.labels(status).inc(number)
    assert told(ours) == told(theirs)


def test_a_distribution_is_told_as_a_histogram() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    distribution = Distribution("seconds", "How long.", ["task"], ours, BOUNDS)
    histogram = Histogram("seconds", "How long.", ["task"], registry=theirs, buckets=BOUNDS)
    for amount in AMOUNTS:
        for task in ("a", "b"):
            distribution.observe((task,), amount)
            histogram.labels(task).observe(amount)
    assert told(ours) == told(theirs)


def test_without_labels_it_is_there_before_anything_has_happened() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    Distribution("seconds", "How long.", [], ours, BOUNDS)
    Histogram("seconds", "How long.", registry=theirs, buckets=BOUNDS)
    assert told(ours) == told(theirs)


def test_with_labels_it_is_there_from_the_first_number_on() -> None:
    registry = CollectorRegistry()
    Distribution("seconds", "How long.", ["task"], registry, BOUNDS)
    Counts("runs", "Runs.", ["status"], registry)
    assert not [line for line in told(registry) if not line.startswith("#")]
