"""Instances that die, or are told to stop, in the middle of their work."""

import time

from tests.faults.arena import Arena, alive
from tests.faults.checker import check
from tests.faults.history import History, Verdict
from tests.faults.matching import Limits
from tests.faults.scenarios import scenario
from tests.faults.work import again, begun, busiest, commands, long_ones, pulse, soon

WORK_SECONDS = 8.0
PATIENCE = 40.0
ROUND_SECONDS = 25.0
CHILDREN_SECONDS = 5.0
FULL_MINUTES = 3.0
GRACE_SECONDS = 2.0
READY_SECONDS = 1.0
"""Promised where nothing else runs: measured against the first start, which had nothing to recover."""
HANDED_BACK_SECONDS = 2.0


@scenario("F1", "kill -9 one of two instances in the middle of its work")
def kill_one_of_two(arena: Arena) -> tuple[History, Verdict]:
    """The other one does it again, once; what must not run twice does not; and no command outlives its instance."""
    arena.instances.start(2)
    rounds = _rounds(arena)
    arena.create(*pulse(arena, 3, time.time() + (60 * _minutes(arena) if arena.full else 25)))
    interrupted = 0
    left: list[int] = []
    for number in range(rounds):
        names, orphans = _kill_once(arena, f"r{number}-")
        interrupted += len(names)
        left += orphans
    arena.settle()
    history = arena.history()
    history.orphans += left
    verdict = check(history, Limits(idle=3.0))
    verdict.figures["interrupted"] = interrupted
    verdict.require(interrupted, "nothing was interrupted: the scenario is void")
    return history, verdict


def _minutes(arena: Arena) -> float:
    return arena.minutes or FULL_MINUTES


def _rounds(arena: Arena) -> int:
    return max(1, int(_minutes(arena) * 60 / ROUND_SECONDS)) if arena.full else 1


def _kill_once(arena: Arena, prefix: str) -> tuple[set[str], list[int]]:
    """What was interrupted and had to be done again; and processes that were left behind."""
    at = soon()
    kinds = (f"{prefix}http", f"{prefix}once", f"{prefix}shell")
    work = [
        *long_ones(arena, kinds[0], 8, at, WORK_SECONDS),
        *long_ones(arena, kinds[1], 4, at, WORK_SECONDS, at_most_once=True),
        *commands(arena, kinds[2], 3, at, WORK_SECONDS),
    ]
    arena.create(*work)
    begun(arena, work)
    victim, names = busiest(arena, kinds)
    children = [pid for hit in arena.target.hits() if hit.schedule in names for pid in hit.pids]
    arena.instances.kill(victim)
    orphans = _left_over(children)
    names = {name for name in names if not name.startswith(kinds[1])}
    again(arena, names, PATIENCE)
    arena.instances.restart(victim)
    time.sleep(max(0.0, at + WORK_SECONDS + 1 - time.time()))
    return names, orphans


def _left_over(pids: list[int]) -> list[int]:
    deadline = time.monotonic() + CHILDREN_SECONDS
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@scenario("F29", "SIGTERM to one of two instances in the middle of its work", gate=False)
def stop_one_of_two(arena: Arena) -> tuple[History, Verdict]:
    """It takes nothing new, ends what it can in its time, and hands the rest back at once."""
    arena.instances.start(2)
    at = soon()
    work = [
        *long_ones(arena, "short", 4, at, 1.5),
        *long_ones(arena, "long", 8, at, WORK_SECONDS),
        *commands(arena, "shell", 2, at, WORK_SECONDS),
    ]
    arena.create(*work, *pulse(arena, 3, at + 9))
    begun(arena, work)
    victim, names = busiest(arena, ("long", "shell"))
    _, code = arena.instances.terminate(victim)
    again(arena, names, PATIENCE)
    arena.instances.restart(victim)
    time.sleep(max(0.0, at + 9 - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0, takeover=GRACE_SECONDS + HANDED_BACK_SECONDS))
    verdict.figures |= {"interrupted": len(names), "exit_code": code}
    verdict.require(code == 0, f"it ended with {code}")
    verdict.require(names, "nothing was interrupted: the scenario is void")
    return history, verdict


@scenario("F2", "kill -9 a single instance on SQLite, and restart", stores=("sqlite",), gate=False)
def kill_the_only_one(arena: Arena) -> tuple[History, Verdict]:
    """It is back at once, and so is all that it had begun: nobody else can have it."""
    rounds = 20 if arena.full else 2
    began = time.monotonic()
    arena.instances.start(1)
    first = time.monotonic() - began
    arena.create(*pulse(arena, 20, time.time() + 6 * rounds + 2))
    ready: list[float] = []
    for number in range(rounds):
        at = soon(1)
        work = long_ones(arena, f"r{number}-", 5, at, 6, at_most_once=False)
        arena.create(*work)
        begun(arena, work)
        time.sleep(arena.choose.uniform(0, 1))
        arena.instances.kill(0)
        time.sleep(arena.choose.uniform(0, 2))
        began = time.monotonic()
        arena.instances.restart(0)
        ready.append(time.monotonic() - began)
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0, takeover=6.0))
    verdict.figures |= {"rounds": rounds, "ready_first": first, "ready_max": max(ready)}
    slow = f"it answered {max(ready):.1f} s after it was restarted, and {first:.1f} s after its first start"
    verdict.require(max(ready) <= max(READY_SECONDS, 2 * first), slow)
    return history, verdict
