"""An instance dies at every write, one after another: whatever the point, it ends as if nothing had happened."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.faults import chores
from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.history import History, Verdict
from tests.faults.matching import Limits
from tests.faults.scenarios import SERVERS, scenario
from tests.faults.trials import Trial, all_of, trial

SAMPLED = 8
"""Points that the gate tries, of all."""
AT_ONCE = 4
LEAST_REACHED = 0.8
"""Which part of the points must be passed again: a heartbeat more or less, and the last ones are not."""
LIMITS = Limits(idle=5.0, fault=25.0, takeover=25.0)
SUMMED = ("n", "lost", "duplicated", "phantoms", "excess_attempts", "stale_writes", "stuck", "forged")
Point = tuple[int, str]
"""The how manieth passing of all, and of which place."""


@dataclass
class Killed:
    """What became of the chores with one kill in them."""

    point: str
    deaths: int
    differs: list[str] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    history: History | None = None


def unfaulted(arena: Arena, **env: str) -> tuple[chores.Standing, Verdict]:
    """How the chores end if nothing happens."""
    quiet = trial(arena, "quiet")
    try:
        quiet.start(**env)
        chores.do(quiet)
        settled = quiet.settle()
        return chores.standing(quiet), check(quiet.history(settled=settled), LIMITS)
    finally:
        quiet.close()


def passings(arena: Arena) -> tuple[list[str], chores.Standing, Verdict]:
    """The places that the chores pass, in order, and how they end."""
    log = arena.folder / "passings"
    wanted, verdict = unfaulted(arena, KSANA_FAILPOINT="*:0:count", KSANA_FAILPOINT_LOG=str(log))
    return log.read_text().split(), wanted, verdict


def killed(arena: Arena, wanted: chores.Standing, point: Point) -> Killed:
    """The chores with a kill at that passing."""
    number, place = point
    told = f"{number}:{place}"
    tried = trial(arena, f"k{number:04}")
    try:
        tried.start(KSANA_FAILPOINT=f"*:{number}:kill")
        return judged(tried, wanted, told)
    except AssertionError as error:
        return Killed(told, tried.deaths, [str(error)])
    finally:
        tried.close()


def judged(tried: Trial, wanted: chores.Standing, told: str) -> Killed:
    chores.do(tried)
    history = tried.history(settled=tried.settle())
    differs = chores.standing(tried).differs_from(wanted, tried.deaths)
    return Killed(told, tried.deaths, differs, check(history, LIMITS), history)


def summed(arena: Arena, first: Verdict, found: Sequence[Killed]) -> tuple[History, Verdict]:
    """One verdict for all."""
    verdict = Verdict(violations=[f"without a fault: {each}" for each in first.violations])
    all_verdicts = [first, *(each.verdict for each in found)]
    verdict.figures = {name: sum(each.figures.get(name) or 0 for each in all_verdicts) for name in SUMMED}
    died = [each for each in found if each.deaths]
    diverged = [each for each in found if each.differs]
    taken = [each.verdict.figures.get("takeover_max") for each in found]
    verdict.figures |= {
        "points": len(found),
        "died": len(died),
        "diverged": len(diverged),
        "takeover_max": max((each for each in taken if each is not None), default=None),
        "faults": len(died),
    }
    for each in found:
        verdict.violations += [f"killed at {each.point}: {text}" for text in (*each.differs, *each.verdict.violations)]
    verdict.require(len(died) >= LEAST_REACHED * len(found), f"only {len(died)} of {len(found)} points were reached")
    last = next((each.history for each in reversed(found) if each.history is not None), None)
    return last or arena.history(), verdict


@scenario("F3", "kill at every write, SQLite", stores=("sqlite",))
def kill_at_every_write(arena: Arena) -> tuple[History, Verdict]:
    """And at every send, spawn and callback; the gate tries some of them, by its seed."""
    return _at_every_write(arena, AT_ONCE)


@scenario("F3db", "kill at every write, on a server", stores=SERVERS, gate=False)
def kill_at_every_write_on_servers(arena: Arena) -> tuple[History, Verdict]:
    """As F3; the work of the dead is taken over when its lease is over."""
    return _at_every_write(arena, 2 * AT_ONCE)


def _at_every_write(arena: Arena, at_once: int) -> tuple[History, Verdict]:
    places, wanted, first = passings(arena)
    points = list(enumerate(places, start=1))
    if not arena.full:
        points = spread(arena, points, SAMPLED)
    found: list[Killed] = all_of(points, partial(killed, arena, wanted), at_once)
    history, verdict = summed(arena, first, found)
    verdict.figures |= {"passings": len(places), "places": dict(Counter(places))}
    return history, verdict


def spread(arena: Arena, points: Sequence[Point], number: int) -> list[Point]:
    """One of each part of them, by the seed."""
    edges = [len(points) * each // number for each in range(number + 1)]
    return [points[arena.choose.randrange(low, high)] for low, high in itertools.pairwise(edges) if low < high]
