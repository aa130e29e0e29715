"""Clocks that jump: of the only instance, where nobody else knows what time it is; and of one of two, where the database does."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.clock import DAY, HOUR, WallClock
from tests.faults.history import History, Schedule, Verdict
from tests.faults.hits import Hit
from tests.faults.ledger import faults_of, fired, rows_of
from tests.faults.operations import Wanted
from tests.faults.reports import Desk, forbid
from tests.faults.scenarios import SERVERS, scenario
from tests.faults.work import once_at, pulse

EVERY = 5
GRACE = 60
"""Seconds within which an instant is on time, and fires whatever the policy."""
FORWARD = (2 * HOUR, 25 * HOUR, 365 * DAY)
SLOW_SECONDS = 6
PATIENCE = 20.0
POLICIES: dict[str, tuple[str, int, int]] = {
    "now": ("FIRE_NOW", 5, 1),
    "skip": ("SKIP", 5, 0),
    "five": ("CATCH_UP_LIMITED", 5, 5),
    "hundred": ("CATCH_UP_LIMITED", 100, 100),
}
"""A policy, its limit, and how many late instants it may fire."""
ON_TIME = 2.0


@dataclass
class Leap:
    """One jump forward, and the schedules that lived through it."""

    prefix: str
    seconds: int
    made: tuple[float, float]
    """When they were asked for and answered, by the clock that jumps."""
    end: float
    jumped: tuple[float, float] = (0.0, 0.0)
    """From when to when."""
    recovered: float = 0.0


@scenario("F11", "the clock jumps 2 hours, 25 hours and a year ahead", stores=("sqlite",), gate=False, fresh=True)
def forward(arena: Arena) -> tuple[History, Verdict]:
    """A missed range, by policy and cap: every instant is in the ledger, and few of them fire."""
    clock = WallClock(arena.folder)
    clock.start(arena.instances)
    leaps = [_leap(arena, clock, f"j{number}", seconds) for number, seconds in enumerate(FORWARD)]
    history = arena.history()
    verdict = Verdict()
    bursts = [_judge_leap(verdict, history, leap, policy) for leap in leaps for policy in POLICIES]
    slow = [hit for hit in history.hits if hit.schedule.endswith("slow")]
    rows = {row.schedule: row.status for row in history.dump.executions if row.schedule.endswith("slow")}
    verdict.require(len(slow) == len(leaps), f"{len(slow)} attempts of {len(leaps)} calls: a lease was lost")
    verdict.require(set(rows.values()) == {"SUCCESS"}, f"calls that were under way ended {rows}")
    verdict.figures |= {
        "n": sum(row.count for row in history.dump.occurrences),
        "missed": sum(row.count for row in history.dump.occurrences if row.outcome != "FIRED"),
        "lost": 0,
        "duplicated": 0,
        "burst_max": max(bursts),
        "recovery_max": max(leap.recovered for leap in leaps),
        "joined": len(history.dump.instances),
    }
    return history, verdict


def _leap(arena: Arena, clock: WallClock, prefix: str, seconds: int) -> Leap:
    """Schedules that are under way, a jump, and a few seconds more."""
    began = clock.now()
    end = began + 6 + seconds + 12
    slow_at = ceil(began + 2)
    calls: list[Wanted] = [
        (
            Schedule(f"{prefix}-{name}", cron=f"*/{EVERY} * * * * *", end_wall=floor(end)),
            {"url": arena.target.url(f"{prefix}-{name}"), "misfire_policy": policy, "catchup_limit": limit},
        )
        for name, (policy, limit, _) in POLICIES.items()
    ]
    name = f"{prefix}-slow"
    slow = Schedule(name, cron=once_at(slow_at), end_wall=slow_at)
    calls.append((slow, {"url": arena.target.url(name, f"slow/{SLOW_SECONDS}"), "timeout_seconds": 60}))
    arena.create(*calls)
    leap = Leap(prefix, seconds, (began, clock.now()), floor(end))
    names = {schedule.name for schedule, _ in calls}
    arena.target.wait(lambda hits: names <= {hit.schedule for hit in hits}, PATIENCE)
    before = clock.now()
    clock.jump(seconds)
    leap.jumped, jumped = (before, clock.now()), time.monotonic()
    names.discard(slow.name)
    arena.target.wait(
        lambda hits: names <= {hit.schedule for hit in hits if (hit.planned or 0) > leap.jumped[1]}, PATIENCE
    )
    leap.recovered = time.monotonic() - jumped
    _wait_quiet(arena, clock, end)
    return leap


def _wait_quiet(arena: Arena, clock: WallClock, end: float) -> None:
    deadline = time.monotonic() + PATIENCE
    while clock.now() < end + 1 or (arena.database.reader.under_way() and time.monotonic() < deadline):
        time.sleep(0.1)


def _judge_leap(verdict: Verdict, history: History, leap: Leap, policy: str) -> int:
    """How many instants that were jumped over fired all the same."""
    name, cap = f"{leap.prefix}-{policy}", POLICIES[policy][2]
    rows = rows_of(history, name)
    verdict.require(rows and leap.made[0] < rows[0].first <= leap.made[1] + EVERY, f"{name} did not begin at its first")
    first = rows[0].first if rows else leap.end
    instants = [float(at) for at in range(round(first), round(leap.end) + 1, EVERY)]
    forbid(verdict, "I1: the ledger is not what was due", faults_of(history, name, instants))
    burst = sum(leap.jumped[0] < at <= leap.jumped[1] for at in fired(rows))
    most = cap + GRACE // EVERY + 1
    verdict.require(burst <= most, f"{name}: {burst} fired at once after {leap.seconds} s, allowed are {most}")
    verdict.require(leap.recovered < EVERY + 2 * ON_TIME, f"{name}: its next instant came after {leap.recovered:.1f} s")
    return burst


@scenario("F12", "the clock is set back by 1 hour, and by 25", stores=("sqlite",), fresh=True)
def back(arena: Arena) -> tuple[History, Verdict]:
    """What has fired does not fire again; what is new fires on time; and what was next is still next when its time comes."""
    clock = WallClock(arena.folder)
    clock.start(arena.instances)
    verdict, spans = Verdict(), 3.0 if arena.full else 1.0
    with Desk(arena) as desk:
        task = _old(arena, desk)
        for number, seconds in enumerate((HOUR, 24 * HOUR)):
            clock.jump(-seconds)
            _goes_on(verdict, arena, desk, clock, f"new{number}", task, spans)
        clock.jump(25 * HOUR)
        returned = time.monotonic()
        planned = clock.now() + 1
        arena.target.wait(lambda hits: any((hit.planned or 0) > planned for hit in _of(hits, "old")), PATIENCE)
        recovered = time.monotonic() - returned
        desk.ask("PATCH", f"/api/v1/tasks/{task}/disable")
    arena.settle(5)
    history = arena.history()
    rows = rows_of(history, "old")
    instants = [float(at) for at in range(round(rows[0].first), round(rows[-1].last) + 1)]
    forbid(verdict, "the ledger is not what was due", faults_of(history, "old", instants))
    verdict.require(recovered < 3 * ON_TIME, f"what was next came {recovered:.1f} s after its time had come again")
    verdict.require(len(history.dump.instances) == 1, "the instance lost its lease, and joined anew")
    executed = [hit.planned for hit in history.hits]
    verdict.figures |= {
        "n": len(executed),
        "lost": 0,
        "duplicated": len(rows) - len({row.first for row in rows}),
        "recovery_max": recovered,
        "joined": len(history.dump.instances),
    }
    return history, verdict


def _old(arena: Arena, desk: Desk) -> int:
    """A schedule that has fired before the clock is set back; its task."""
    arena.create((Schedule("old", cron="* * * * * *"), {"url": arena.target.url("old")}))
    arena.target.wait(lambda hits: len(_of(hits, "old")) >= 2, PATIENCE)
    tasks = desk.ask("GET", "/api/v1/tasks").json()["items"]
    return int(next(task["id"] for task in tasks if task["name"] == "old"))


def _goes_on(
    verdict: Verdict, arena: Arena, desk: Desk, clock: WallClock, name: str, task: int, seconds: float
) -> None:
    """At the earlier time: a new schedule and a trigger by hand work, and the old schedule waits."""
    before = {hit.planned for hit in _of(arena.target.hits(), "old")}
    end = floor(clock.now() + seconds + 1)
    arena.create((Schedule(name, cron="* * * * * *", end_wall=end), {"url": arena.target.url(name)}))
    made = clock.now()
    run = desk.trigger(task)
    ended = desk.until(run, "SUCCESS", "FAILED")
    verdict.require(ended["status"] == "SUCCESS", f"a run by hand ended {ended['status']}")
    instants = {float(at) for at in range(floor(made) + 1, end + 1)}
    arena.target.wait(lambda hits: instants <= {hit.planned for hit in _of(hits, name)}, seconds + PATIENCE / 2)
    hits = _of(arena.target.hits(), name)
    forbid(verdict, f"instants of {name} that did not fire", sorted(instants - {hit.planned for hit in hits}))
    late = [hit.began_wall + clock.offset - (hit.planned or 0) for hit in hits]
    verdict.require(
        max(late, default=0) < ON_TIME + 3 * arena.stall.longest, f"{name} was {max(late, default=0):.1f} s late"
    )
    again = [hit for hit in _of(arena.target.hits(), "old") if hit.run != str(run) and hit.planned in before]
    verdict.require(len(again) == len(before), f"{len(again)} hits for {len(before)} instants that had fired")


def _of(hits: Sequence[Hit], name: str) -> list[Hit]:
    return [hit for hit in hits if hit.schedule == name]


@scenario("F11db", "the clock of one of two instances jumps", stores=SERVERS, gate=False, fresh=True)
def one_of_two(arena: Arena) -> tuple[History, Verdict]:
    """Nothing happens at all: it is the database's clock that counts."""
    clock = WallClock(arena.folder, offset=-7 * DAY)
    clock.start(arena.instances)
    arena.instances.start(1)
    jumps = (7 * DAY, 2 * HOUR, 23 * HOUR, 364 * DAY, -366 * DAY, 25 * HOUR)
    arena.create(*pulse(arena, 10, time.time() + 4 * len(jumps) + 4))
    for seconds in jumps:
        time.sleep(4)
        clock.jump(seconds)
    time.sleep(4)
    arena.settle()
    history = arena.history()
    verdict = check(history)
    verdict.figures |= {"jumps": len(jumps), "joined": len(history.dump.instances)}
    verdict.require(len(history.dump.instances) == 2, f"{len(history.dump.instances)} instances joined, and not two")
    verdict.require(min(verdict.figures["shares"].values()) > 0, "one of them did nothing: the scenario is void")
    return history, verdict
