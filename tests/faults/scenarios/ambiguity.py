"""Moments at which nobody knows what has happened: a COMMIT without an answer, a request whose sender fell silent."""

import time
from pathlib import Path

from tests.faults.arena import Arena, alive
from tests.faults.checker import check
from tests.faults.history import History, Schedule, Verdict
from tests.faults.matching import Limits
from tests.faults.operations import Wanted
from tests.faults.scenarios import SERVERS, scenario
from tests.faults.work import TIMEOUT_SECONDS, once_at, pulse, soon

LEAST = 1_000
"""Answers to COMMIT that are lost, in all."""
ORDERS = 1_500
"""Of each instance, at the most."""
EVERY = 3
"""Each how manieth commit. In turn it is lost after the database has it, and before."""
CALLS = 10
MOST_SECONDS = 300.0
STOPPING = 10.0
"""Seconds before the end that are not judged: the instances are told to stop then."""
LEASE_SECONDS = 20.0


@scenario("F4f", "a thousand commits whose answer is lost", stores=SERVERS, gate=False)
def ambiguous(arena: Arena) -> tuple[History, Verdict]:
    """Each writer finds out by itself what became of its transaction: nothing twice, nothing lost, nothing late."""
    logs = [arena.folder / f"passings{number}" for number in range(2)]
    for log in logs:
        arena.instances.start(1, KSANA_FAILPOINT=_orders(), KSANA_FAILPOINT_LOG=str(log), LOG_LEVEL="warning")
    end = time.time() + MOST_SECONDS
    schedules = _staggered(arena, end)
    arena.create(*schedules)
    _wait(logs, end)
    for instance in arena.instances.all:
        arena.instances.terminate(instance.number)
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    verdict.figures |= {
        "ambiguous": _lost_answers(logs, "commit.after"),
        "broken": _lost_answers(logs, "commit.before"),
    }
    verdict.require(verdict.figures["ambiguous"] >= LEAST, f"only {verdict.figures['ambiguous']} answers were lost")
    return history, verdict


def _orders() -> str:
    """Both kinds, a commit apart; and all passings are written down."""
    after = [f"commit.after:{EVERY * number}:raise" for number in range(1, ORDERS)]
    before = [f"commit.before:{5 * EVERY * number + 1}:raise" for number in range(1, ORDERS // 5)]
    return ",".join(["*:0:count", *after, *before])


def _staggered(arena: Arena, end: float) -> list[Wanted]:
    """Small calls that do not all come at once, so that there are many commits and not a few large ones."""
    at = soon()
    return [
        (
            Schedule(name, every=1.0, start_wall=at + number / CALLS, end_wall=end, duration=STOPPING),
            {"url": arena.target.url(name)},
        )
        for number, name in enumerate(f"e{each}" for each in range(CALLS))
    ]


def _wait(logs: list[Path], end: float) -> None:
    while time.time() < end - 1 and _lost_answers(logs, "commit.after") < LEAST:
        time.sleep(1)


def _lost_answers(logs: list[Path], place: str) -> int:
    """How often the failpoint raised there, by how often it was passed."""
    step = EVERY if place == "commit.after" else 5 * EVERY
    passed = [log.read_text().split().count(place) if log.exists() else 0 for log in logs]
    return sum(number // step for number in passed)


@scenario("F6", "an instance falls silent between the answer of its target and the result", gate=False)
def silent(arena: Arena) -> tuple[History, Verdict]:
    """Another does it again, in a new epoch and with the same key; what the first has to say later changes nothing."""
    arena.instances.start(1, KSANA_FAILPOINT="send.after:1:stop")
    at = soon()
    call = Schedule("call", cron=once_at(at), end_wall=at, duration=LEASE_SECONDS)
    arena.create((call, {"url": arena.target.url("call"), "timeout_seconds": TIMEOUT_SECONDS}))
    arena.target.wait(lambda hits: any(hit.ended for hit in hits), LEASE_SECONDS)
    stopped = _is_stopped(arena)
    arena.instances.freeze(0)  # it is: this writes it down
    arena.instances.start(1)
    arena.create(*pulse(arena, 3, time.time() + LEASE_SECONDS + 8))
    arena.target.wait(lambda hits: sum(hit.schedule == "call" for hit in hits) > 1, 2 * LEASE_SECONDS)
    arena.instances.thaw(0)
    time.sleep(5)
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    verdict.require(stopped, "the failpoint did not stop it: the scenario is void")
    _judge(verdict, history, arena)
    return history, verdict


def _is_stopped(arena: Arena, seconds: float = 5.0) -> bool:
    pid, deadline = arena.instances.all[0].pid, time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        if "\nState:\tT" in Path(f"/proc/{pid}/status").read_text():
            return True
        time.sleep(0.05)
    return False


def _judge(verdict: Verdict, history: History, arena: Arena) -> None:
    hits = [hit for hit in history.hits if hit.schedule == "call"]
    (row,) = [each for each in history.dump.executions if each.schedule == "call"]
    attempts = sorted((each for each in history.dump.attempts if each.execution == row.id), key=lambda each: each.epoch)
    verdict.figures |= {
        "at_target": len(hits),
        "attempts": [(each.epoch, each.status) for each in attempts],
        "fenced": arena.instances.log(0).count("instance.lost"),
    }
    verdict.require(len(hits) == 2, f"the target saw it {len(hits)} times")
    verdict.require(len({hit.key for hit in hits}) == 1, f"with the keys {[hit.key for hit in hits]}")
    told = [each.status for each in attempts]
    verdict.require(told == ["LOST", "SUCCEEDED"], f"its attempts are {told}")
    verdict.require(row.status == "SUCCESS" and row.epoch == attempts[-1].epoch, f"it is {row.status}")
