"""Figures that every run adds to: plain numbers, made into Prometheus's families when somebody asks.

Its own counters and histograms take a lock for each number, and look for the bucket one by one: a tenth of a run's time in the
event loop. These are added to by the event loop's thread alone.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import inf

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Labels = tuple[str, ...]


class Counts(Collector):
    """A counter."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._family = name, documentation, tuple(labels)
        self._counts: dict[Labels, int] = {}
        registry.register(self)

    def add(self, labels: Labels, number: int = 1) -> None:
        self._counts[labels] = self._counts.get(labels, 0) + number

    def collect(self) -> Iterator[Metric]:
        name, documentation, labels = self._family
        family = CounterMetricFamily(name, documentation, labels=labels)
        for each, number in list(self._counts.items()):
            family.add_metric(each, number)
        yield family


class Distribution(Collector):
    """A histogram. Without labels it is there from the beginning, with them from the first number on."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        registry: CollectorRegistry,
        bounds: Sequence[float],
    ) -> None:
        self._family = name, documentation, tuple(labels)
        self._bounds = (*bounds, inf)
        self._buckets: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._begin(())
        registry.register(self)

    def observe(self, labels: Labels, amount: float) -> None:
        buckets = self._buckets.get(labels) or self._begin(labels)
        buckets[bisect_left(self._bounds, amount)] += 1
        self._sums[labels] += amount

    def collect(self) -> Iterator[Metric]:
        name, documentation, labels = self._family
        family = HistogramMetricFamily(name, documentation, labels=labels)
        for each, buckets in list(self._buckets.items()):
            family.add_metric(each, self._cumulative(buckets), self._sums[each])
        yield family

    def _begin(self, labels: Labels) -> list[int]:
        self._sums[labels] = 0.0
        self._buckets[labels] = [0] * len(self._bounds)
        return self._buckets[labels]

    def _cumulative(self, buckets: list[int]) -> list[tuple[str, int]]:
        told: list[tuple[str, int]] = []
        reached = 0
        for bound, number in zip(self._bounds, buckets, strict=True):
            reached += number
            told.append(("+Inf" if bound == inf else str(bound), reached))
        return told
