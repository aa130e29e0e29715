"""Several instances and many schedules on the same second."""

import time

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.history import History, Schedule, Verdict
from tests.faults.matching import Limits
from tests.faults.nemesis import Nemesis, plan
from tests.faults.operations import Wanted
from tests.faults.scenarios import scenario

LEAST_SHARE = 0.3
LEAST_SHARE_OF_FEW = 0.1
"""Of two bursts a few claims are the whole share, and who is slow for a moment has fewer."""
LEAST_SHARE_OF_STRUCK = 0.1
FULL_SECONDS = 60.0
PERIOD = 10.0
WORKERS = {"KSANA_EXECUTOR_WORKER_POOL_SIZE": "32", "LOG_LEVEL": "warning"}


def crowd(arena: Arena, number: int, cron: str, end_wall: float) -> list[Wanted]:
    """So many schedules that all fire on the same seconds, until then."""
    names = [f"c{each:04}" for each in range(number)]
    return [
        (Schedule(name, cron=cron, end_wall=end_wall, duration=1.0), {"url": arena.target.url(name)}) for name in names
    ]


@scenario("F22", "two instances, 1,000 schedules on the same second", env=WORKERS)
def same_second(arena: Arena) -> tuple[History, Verdict]:
    """Nothing twice, nothing lost, and neither instance starves."""
    number, rounds, period = (1_000, 6, 10) if arena.full else (250, 2, 5)
    arena.instances.start(2)
    end = time.time() + number / 100 + period * rounds
    arena.create(*crowd(arena, number, f"*/{period} * * * * *", end))
    time.sleep(max(0.0, end - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=8.0))
    least = LEAST_SHARE if arena.full else LEAST_SHARE_OF_FEW
    for name, share in verdict.figures["shares"].items():
        verdict.require(share >= least, f"{name} did only {share:.0%}")
    return history, verdict


@scenario(
    "MIX", "three instances, 1,000 schedules on the same seconds, and random faults all along", env=WORKERS, gate=False
)
def mix(arena: Arena) -> tuple[History, Verdict]:
    """Whatever comes: nothing lost, nothing twice, no stale write, and every instance does its share."""
    number, seconds = (1_000, 60 * arena.minutes if arena.minutes else FULL_SECONDS) if arena.full else (100, 30.0)
    strikes = plan(arena.choose, seconds, 3)
    arena.instances.start(3)
    end = time.time() + number / 100 + seconds + 2 * PERIOD
    arena.create(*crowd(arena, number, f"*/{PERIOD:g} * * * * *", end))
    Nemesis(arena, strikes).run()
    time.sleep(max(0.0, end - time.time()))
    arena.settle(90)
    history = arena.history()
    verdict = check(history, Limits(idle=PERIOD - 1, fault=25.0))
    verdict.figures["strikes"] = [f"{each.at:g} s {each.kind} {each.victim} {each.seconds:g} s" for each in strikes]
    for name, share in verdict.figures["shares"].items():
        verdict.require(share >= LEAST_SHARE_OF_STRUCK, f"{name} did only {share:.0%}")
    return history, verdict
