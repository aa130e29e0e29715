"""Several instances under every fault that the seeds can think of keep the invariants of RELIABILITY.md §2.2."""

from collections import Counter

import pytest

from tests.simulation.mood import Mood
from tests.simulation.search import Found, simulate
from tests.simulation.trace import lines

STEPS = 4_000
SEEDS = range(12)
SLOW = Mood(slow=0.3, faults=0.003)
SLOW_AND_FAULTY = Mood(slow=0.3, faults=0.02)
REGRESSIONS: list[tuple[int, Mood | None]] = [
    (25, SLOW),  # a claim whose answer was slow was handed back as a stray, and run twice when the answer came
    (13, None),  # a leader resigned by its heartbeat's thread, and led on beside the next
    (4, SLOW_AND_FAULTY),  # what was dropped with the lease was handed back as a stray, and so run twice
    (16, SLOW),  # a claim that was answered after its lease was over was begun all the same
]
"""Seeds that have found something. A change to the simulation, or to what the engine does, makes another run of a seed: what was
found is kept in test_planted_faults.py and unit/engine/test_late_answers.py too."""


def told(found: Found) -> str:
    return "\n".join([f"seed {found.seed}, step {found.steps}: {found.violation}", *lines(found.trace[-40:])])


@pytest.mark.parametrize(("seed", "mood"), [*((seed, None) for seed in SEEDS), *REGRESSIONS])
def test_no_seed_breaks_an_invariant(seed: int, mood: Mood | None) -> None:
    found = simulate(seed, STEPS, mood)
    assert found.violation is None, told(found)
    assert found.steps > STEPS


def test_a_seed_always_makes_the_same_run() -> None:
    first, second = simulate(3, STEPS), simulate(3, STEPS)
    assert (first.steps, first.counts) == (second.steps, second.counts)
    assert lines(first.trace) == lines(second.trace)


VERBS = ("fire", "claim", "settle", "recover", "cancel", "report_callback", "expire_callbacks", "beat", "leave")


def test_all_that_can_happen_does() -> None:
    """Else the seeds would prove nothing. Which seeds it takes changes with what the engine does."""
    verbs, overlaps = Counter[str](), 0
    for seed in range(30):
        found = simulate(seed, STEPS, Mood(faults=0.02))
        verbs, overlaps = verbs + found.counts, overlaps + found.overlaps
        if overlaps and all(verbs[verb] for verb in VERBS):
            return
    assert [verb for verb in VERBS if not verbs[verb]] == []
    assert overlaps, "no zombie ever ran what another had taken over"
