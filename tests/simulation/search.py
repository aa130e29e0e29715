"""Runs worlds, and finds the shortest run of a seed that shows what is wrong."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.simulation.invariants import Violation
from tests.simulation.mood import Mood
from tests.simulation.world import World

AT_THE_END = frozenset({"I1", "I12"})
"""Seen only when a world has been quiet for a while."""


@dataclass(frozen=True, slots=True)
class Found:
    """How a run of a seed ended."""

    seed: int
    asked: int
    """Steps before the quiet end."""
    steps: int
    """Steps that were made."""
    violation: Violation | None
    trace: Sequence[Sequence[object]]
    counts: Counter[str]
    overlaps: int


def simulate(seed: int, steps: int, mood: Mood | None = None) -> Found:
    world, violation = World(seed, mood), None
    try:
        world.run(steps)
    except Violation as error:
        violation = error
    return Found(seed, steps, world.steps, violation, tuple(world.trace), world.counts, world.witness.overlaps)


def first_violation(seeds: Iterable[int], steps: int, mood: Mood | None = None) -> Found | None:
    """The first of these seeds that shows one."""
    return next((found for seed in seeds if (found := simulate(seed, steps, mood)).violation is not None), None)


def shortest(found: Found, steps: int) -> Found:
    """A run of that seed with as few steps as it takes, as far as halving tells."""
    if found.violation is None or found.violation.invariant not in AT_THE_END:
        return found
    enough, too_few = steps, 0
    while enough - too_few > max(1, steps // 200):
        middle = (enough + too_few) // 2
        again = simulate(found.seed, middle)
        if again.violation is None:
            too_few = middle
        else:
            found, enough = again, middle
    return found
