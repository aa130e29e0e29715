"""Targets that are slow, silent, endless or hostile: their slots come free in time, and nobody else notices."""

import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.history import History, Schedule, Verdict
from tests.faults.matching import Limits
from tests.faults.memory import Memory
from tests.faults.operations import Wanted
from tests.faults.scenarios import scenario
from tests.faults.work import once_at, pulse, soon

SLOW_SECONDS, SLOW_JOBS = 10, 200
FAST_JOBS = 10
FAST_LATE_SECONDS = 1.0
TIMEOUT_SECONDS = 3
FREED_SECONDS = 1.0
GROWTH_MEGABYTES = 20.0
MODES = ("never", "drip", "reset", "bytes/10000000000", "gzip/30", "redirect")
ROUNDS, APART = 3, 1.0
"""One call after the other, so often; then four of each at once, which are more than there are workers."""


@scenario("F16", "a slow target: 200 jobs of 10 s, and fast ones beside", stores=("sqlite", "postgresql"), gate=False)
def slow_target(arena: Arena) -> tuple[History, Verdict]:
    """A host that is called may not take all the workers, so that the others are as punctual as ever."""
    number = SLOW_JOBS if arena.full else 40
    seconds = 60 if arena.full else 10
    arena.instances.start(1)
    at = soon(8)
    slow = [
        (
            Schedule(name, cron=once_at(at), end_wall=at, duration=SLOW_SECONDS, judged=False),
            {"url": _other_host(arena, name, f"slow/{SLOW_SECONDS}"), "timeout_seconds": 60},
        )
        for name in (f"slow{each:03}" for each in range(number))
    ]
    arena.create(*slow, *pulse(arena, FAST_JOBS, at + seconds))
    time.sleep(max(0.0, at + seconds + 2 - time.time()))
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    _punctual(history, verdict, since=at)
    begun = sum(hit.schedule.startswith("slow") for hit in history.hits)
    verdict.figures |= {"slow_begun": begun, "slow_most_at_once": _most_at_once(history, "slow")}
    verdict.require(begun >= min(number, 10), "hardly any slow call began: the scenario is void")
    return history, verdict


def _other_host(arena: Arena, name: str, mode: str) -> str:
    """The same target under another name: for Ksana, another host."""
    return arena.target.url(name, mode).replace("127.0.0.1", "localhost")


def _punctual(history: History, verdict: Verdict, since: float) -> None:
    late = sorted(
        hit.began_wall - hit.planned
        for hit in history.hits
        if hit.schedule.startswith("pulse") and hit.planned is not None and hit.planned >= since
    )
    p99 = late[int(len(late) * 0.99)] if late else float("inf")
    verdict.figures |= {"fast": len(late), "fast_late_p99": round(p99, 3), "fast_late_max": round(late[-1], 3)}
    most = FAST_LATE_SECONDS + 3 * history.stall
    verdict.require(p99 <= most, f"fast jobs were {p99:.1f} s late (p99), and may be {most:.1f} s")


def _most_at_once(history: History, prefix: str) -> int:
    hits = [hit for hit in history.hits if hit.schedule.startswith(prefix)]
    now = time.monotonic()
    return max(
        (sum(each.began <= hit.began < (each.ended or now) for each in hits) for hit in hits),
        default=0,
    )


@scenario(
    "F17",
    "targets that never answer, drip, reset, send without end, bombs and circles",
    stores=(
        "postgresql",
    ),  # SQLite keeps the pages that it has written, 64 MB of them: its growth says nothing of ours
    gate=False,
)
def hostile_targets(arena: Arena) -> tuple[History, Verdict]:
    """The deadline is over everything, what is read has an end, and no slot is lost."""
    arena.instances.start(1)
    begin = soon(12)  # by then its memory is what it is when it works
    at_once = begin + APART * ROUNDS * len(MODES) + 5
    end = at_once + 10
    one_by_one = [
        _hostile(arena, f"{mode.partition('/')[0]}-{turn}", mode, begin + APART * (turn * len(MODES) + number))
        for turn in range(ROUNDS)
        for number, mode in enumerate(MODES)
    ]
    together = [_hostile(arena, f"{mode.partition('/')[0]}-x{n}", mode, at_once) for mode in MODES for n in range(4)]
    arena.create(*pulse(arena, FAST_JOBS, end), *one_by_one, *together)
    growth = _growth(arena, (begin, begin + APART * len(MODES) + TIMEOUT_SECONDS, at_once - 1, end))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    _freed(history, verdict)
    _punctual(history, verdict, since=begin)
    # What one large answer needs is taken once; several at once need it several times, and that is as much as there are workers.
    verdict.figures |= dict(zip(("growth_first", "growth_megabytes", "growth_at_once"), growth, strict=True))
    verdict.require(growth[1] < GROWTH_MEGABYTES, f"it grew by {growth[1]} MB")
    return history, verdict


def _growth(arena: Arena, times: Sequence[float]) -> list[float]:
    """By how many megabytes the instance grew from each of these times to the next."""
    found = []
    for begin, end in pairwise(times):
        time.sleep(max(0.0, begin - time.time()))
        memory = Memory(arena.instances.all[0].pid)
        time.sleep(max(0.0, end - time.time()))
        found.append(memory.growth)
    return found


def _hostile(arena: Arena, name: str, mode: str, at: float) -> Wanted:
    schedule = Schedule(name, cron=once_at(at), end_wall=at, duration=TIMEOUT_SECONDS, most_at_once=1, judged=False)
    return schedule, {"url": _other_host(arena, name, mode), "timeout_seconds": TIMEOUT_SECONDS}


def _freed(history: History, verdict: Verdict) -> None:
    """How long each kind kept its slot."""
    kinds = tuple(mode.partition("/")[0] for mode in MODES)
    names = {row.id: row.schedule for row in history.dump.executions}
    kept: dict[str, float] = defaultdict(float)
    states: dict[str, set[str]] = defaultdict(set)
    for row in history.dump.attempts:
        kind = next((each for each in kinds if names.get(row.execution, "").startswith(each)), None)
        if kind is not None:
            kept[kind] = max(kept[kind], round(row.ended_wall - row.began_wall, 2))
            states[kind].add(row.status)
    verdict.figures |= {"kept_seconds": dict(kept), "ends": {kind: sorted(each) for kind, each in states.items()}}
    most = TIMEOUT_SECONDS + FREED_SECONDS + 3 * history.stall
    verdict.require(set(kept) == set(kinds), f"only {sorted(kept)} were called")
    verdict.require(max(kept.values()) <= most, f"slots were kept for {dict(kept)}, and may be for {most:.1f} s")
