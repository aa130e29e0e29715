"""Callbacks that come twice, late, or early. (Those that are forged: `forgeries.py`.)"""

import asyncio
import time
from typing import Any

import httpx2

from tests.faults.arena import Arena
from tests.faults.history import History, Verdict
from tests.faults.reports import (
    CONNECTIONS,
    FAILURE,
    PATIENCE,
    SUCCESS,
    TASKS,
    Desk,
    forbid,
    received,
    transitions,
)
from tests.faults.scenarios import scenario

AT_ONCE = 50
OTHERS = ("sqlite", "mysql")
RETRY = {"max_retries": 1, "initial_delay": 0.1, "strategy": "fixed"}
LATE_ANSWERS = {200, 409}
"""After the end: how the run ended. While it goes on: CALLBACK_STALE."""


@scenario("F18", "each callback fifty times at once, to two instances", stores=("postgresql",))
def twice(arena: Arena) -> tuple[History, Verdict]:
    """One counts, whatever the others say; all are told how the run ended."""
    return _twice(arena, 2)


@scenario("F18o", "each callback fifty times at once, on other stores", stores=OTHERS, gate=False)
def twice_elsewhere(arena: Arena) -> tuple[History, Verdict]:
    """As F18."""
    return _twice(arena, 1 if arena.store == "sqlite" else 2)


def _twice(arena: Arena, instances: int) -> tuple[History, Verdict]:
    """Half of the runs hear the same report again and again, half also its contrary."""
    arena.instances.start(instances)
    verdict, answers = Verdict(), 0
    with Desk(arena) as desk:
        task = desk.task("twice", "silent")
        runs = [desk.pending(task) for _ in range(100 if arena.full else 6)]
        for number, run in enumerate(runs):
            bodies = [SUCCESS, FAILURE if number % 2 else SUCCESS] * (AT_ONCE // 2)
            said = desk.at_once(run.token, bodies)
            answers += len(said)
            _require_one(verdict, desk, run.run, said)
    history = arena.history()
    ended, counted = transitions(arena), received(history)
    double = [run.run for run in runs if ended[run.run] != 1 or counted[run.run] != 1]
    verdict.figures |= {"n": len(runs), "answers": answers, "duplicated": len(double), "lost": 0}
    forbid(verdict, "I10: runs that did not end exactly once", double)
    return history, verdict


def _require_one(verdict: Verdict, desk: Desk, run: int, said: list[httpx2.Response]) -> None:
    """All 200, one of them accepted, all with the state that the run has now; also when it is said once more."""
    again = [
        desk.report(str(each.request.url).rpartition("/")[2], body) for each in said[:1] for body in (SUCCESS, FAILURE)
    ]
    status = desk.run(run)["status"]
    refused = [answer.text for answer in (*said, *again) if answer.status_code != httpx2.codes.OK]
    forbid(verdict, f"reports on run {run} that were refused", refused)
    told = [answer.json() for answer in (*said, *again) if answer.status_code == httpx2.codes.OK]
    accepted = sum(bool(each["accepted"]) for each in told)
    verdict.require(accepted == 1, f"{accepted} reports on run {run} were accepted")
    others = {each["status"] for each in told} - {status}
    verdict.require(not others, f"run {run} is {status}, and some were told {others}")


@scenario("F19", "callbacks after the time-out, after a retry began, after a cancel", stores=("sqlite",))
def late(arena: Arena) -> tuple[History, Verdict]:
    """Nothing changes; what comes too late is kept as evidence."""
    return _late(arena)


@scenario("F19db", "late callbacks, on a server", gate=False)
def late_on_servers(arena: Arena) -> tuple[History, Verdict]:
    """As F19, with two instances."""
    return _late(arena)


def _late(arena: Arena) -> tuple[History, Verdict]:
    arena.instances.start(1 if arena.store == "sqlite" else 2)
    rounds = 20 if arena.full else 3
    verdict, tried = Verdict(), 0
    with Desk(arena) as desk:
        for number in range(rounds):
            tried += _after_the_end(verdict, desk, f"l{number}")
            tried += _after_a_retry(verdict, desk, f"r{number}")
    history = arena.history()
    double = [run for run, times in transitions(arena).items() if times != 1]
    verdict.figures |= {"n": tried, "duplicated": len(double), "lost": 0, "forged": len(verdict.violations)}
    forbid(verdict, "I10: runs that ended more than once", double)
    return history, verdict


def _after_the_end(verdict: Verdict, desk: Desk, name: str) -> int:
    """After the time-out and after a cancel."""
    timed = desk.pending(desk.task(f"{name}t", "silent", callback_timeout_sec=1))
    canceled = desk.pending(desk.task(f"{name}c", "silent"))
    desk.ask("POST", f"/api/v1/runs/{canceled.run}/cancel")
    for run, status in ((canceled, "CANCELED"), (timed, "FAILED_TIMEOUT")):
        desk.until(run.run, status)
        for body in (SUCCESS, FAILURE):
            answer = desk.report(run.token, body)
            found = desk.run(run.run)
            verdict.require(answer.status_code in LATE_ANSWERS, f"{status}: {answer.status_code} {answer.text}")
            verdict.require(not answer.json().get("accepted"), f"{status}: a late report was accepted")
            verdict.require(found["status"] == status, f"run {run.run} was {status} and is {found['status']}")
        kept = [each["status"] for each in desk.run(run.run)["callbacks"]]
        verdict.require(kept == ["IGNORED"] * 2, f"{status}: of two late reports is kept {kept}")
    return 4


def _after_a_retry(verdict: Verdict, desk: Desk, name: str) -> int:
    """The token of the first attempt neither closes nor spoils the second."""
    task = desk.task(name, "status/500", again="silent", retry_policy=RETRY)
    run = desk.pending(task)
    first, second = desk.tokens(run.run)
    verdict.require(first != second == run.token, "both attempts have the same token")
    for body in (SUCCESS, FAILURE):
        answer = desk.report(first, body)
        verdict.require(answer.status_code == httpx2.codes.CONFLICT, f"attempt 1: {answer.status_code} {answer.text}")
        status = desk.run(run.run)["status"]
        verdict.require(status == "CALLBACK_PENDING", f"the token of attempt 1 made attempt 2 {status}")
    closed = desk.report(second)
    verdict.require(closed.json().get("status") == "CALLBACK_SUCCESS", f"attempt 2: {closed.text}")
    return 3


@scenario("F20", "callbacks that come before the 202", stores=("sqlite",))
def early(arena: Arena) -> tuple[History, Verdict]:
    """None is lost: a token is in the database before its target gets it."""
    return _early(arena)


@scenario("F20db", "callbacks that come before the 202, on a server", gate=False)
def early_on_servers(arena: Arena) -> tuple[History, Verdict]:
    """As F20, with two instances: the report may reach the one that did not send."""
    return _early(arena)


def _early(arena: Arena) -> tuple[History, Verdict]:
    arena.instances.start(1 if arena.store == "sqlite" else 2)
    number, began = (1_000 if arena.full else 60), time.monotonic()
    with Desk(arena) as desk:
        runs = asyncio.run(_triggered(arena, desk.task("early", "async-early", timeout_seconds=60), number))
    arena.settle()
    took = time.monotonic() - began
    history = arena.history()
    status = {row.id: row.status for row in history.dump.executions}
    lost = [(run, status.get(run)) for run in runs if status.get(run) != "CALLBACK_SUCCESS"]
    double = [run for run, times in received(history).items() if times != 1]
    refused = [hit.callbacks for hit in history.hits if hit.callbacks != [httpx2.codes.OK]]
    verdict = Verdict()
    verdict.figures |= {
        "n": number,
        "lost": len(lost),
        "duplicated": len(double),
        "per_second": round(number / took, 1),
    }
    forbid(verdict, "early callbacks that were lost", lost)
    forbid(verdict, "runs that two reports ended", double)
    forbid(verdict, "early callbacks that were not taken at once", refused)
    verdict.require(len(set(runs)) == number, "some triggers made no run of their own")
    return history, verdict


async def _triggered(arena: Arena, task: int, number: int) -> list[int]:
    """So many runs at once."""
    bases, limits = arena.instances.bases(), httpx2.Limits(max_connections=CONNECTIONS)
    async with httpx2.AsyncClient(timeout=2 * PATIENCE, limits=limits) as client:

        async def one(place: int) -> int:
            answer = await client.post(f"{bases[place % len(bases)]}{TASKS}/{task}/trigger")
            found: dict[str, Any] = answer.json()
            return int(found["run_id"])

        return list(await asyncio.gather(*(one(place) for place in range(number))))
