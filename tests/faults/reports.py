"""Runs that wait for a callback, made by triggering; and reports on them, right and wrong, one by one or all at once."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from tests.faults.arena import Arena
from tests.faults.history import History, Verdict
from tests.faults.hits import Hit

TASKS, RUNS, CALLBACKS = "/api/v1/tasks", "/api/v1/runs", "/api/v1/callbacks"
NEVER = "0 0 0 1 1 *"
ONCE = {"max_retries": 0}
PATIENCE = 30.0
LOOK_SECONDS = 0.05
CONNECTIONS = 50
SUCCESS = {"status": "SUCCESS", "data": {"rows": 1}}
FAILURE = {"status": "FAILED", "error_message": "the target says no"}


@dataclass(frozen=True)
class Pending:
    """A run whose callback is waited for."""

    run: int
    token: str


class Desk:
    """Asks the instances of an arena in turn."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._client = httpx2.Client(timeout=PATIENCE)
        self._turn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        bases = self._arena.instances.bases()
        self._turn += 1
        return self._client.request(method, bases[self._turn % len(bases)] + path, json=body)

    def task(self, name: str, mode: str, again: str | None = None, **more: Any) -> int:
        """A new one that waits for callbacks; its id."""
        task = {
            "name": name,
            "cron_expr": NEVER,
            "exec_type": "ASYNC",
            "concurrency_policy": "PARALLEL",
            "retry_policy": ONCE,
            "target_url": self._arena.target.url(name, mode, again=again),
            **more,
        }
        answer = self.ask("POST", TASKS, task)
        assert answer.is_success, answer.text
        return int(answer.json()["id"])

    def trigger(self, task: int) -> int:
        answer = self.ask("POST", f"{TASKS}/{task}/trigger")
        assert answer.is_success, answer.text
        return int(answer.json()["run_id"])

    def run(self, run: int) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"{RUNS}/{run}").json()
        return found

    def until(self, run: int, *statuses: str) -> dict[str, Any]:
        """The run, once it is so; AssertionError if it never is."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.run(run))["status"] not in statuses:
            assert time.monotonic() < deadline, f"run {run} is still {found['status']}, not {statuses}"
            time.sleep(LOOK_SECONDS)
        return found

    def pending(self, task: int) -> Pending:
        """A new run whose target has got its token, and that waits."""
        run = self.trigger(task)
        self.until(run, "CALLBACK_PENDING")
        return Pending(run, self.tokens(run)[-1])

    def tokens(self, run: int) -> list[str]:
        """The tokens that the target got, attempt by attempt."""
        return [token_of(hit) for hit in self._arena.target.hits() if hit.run == str(run)]

    def report(self, token: str, body: Any = None) -> httpx2.Response:
        return self.ask("POST", f"{CALLBACKS}/{token}", SUCCESS if body is None else body)

    def at_once(self, token: str, bodies: Sequence[Any]) -> list[httpx2.Response]:
        """All of these reports, at the same time, to all instances."""
        bases = self._arena.instances.bases()
        calls = [(f"{bases[place % len(bases)]}{CALLBACKS}/{token}", body) for place, body in enumerate(bodies)]
        return asyncio.run(_all(calls))


def token_of(hit: Hit) -> str:
    return hit.callback_url.rpartition("/")[2]


async def _all(calls: Iterable[tuple[str, Any]]) -> list[httpx2.Response]:
    limits = httpx2.Limits(max_connections=CONNECTIONS)
    async with httpx2.AsyncClient(timeout=PATIENCE, limits=limits) as client:
        return list(await asyncio.gather(*(client.post(url, json=body) for url, body in calls)))


def transitions(arena: Arena) -> Counter[int]:
    """How often each run has ended, by the journal."""
    rows = arena.database.reader.query("SELECT subject FROM events WHERE type = 'execution.ended'")
    return Counter(int(row.subject.rpartition("/")[2]) for row in rows)


def received(history: History) -> Counter[int]:
    """How many reports on each run counted."""
    return Counter(execution for execution, status in history.dump.callbacks if status == "RECEIVED")


def forbid(verdict: Verdict, what: str, found: Sequence[object]) -> None:
    verdict.require(not found, f"{what}: {len(found)}, as {list(found[:5])}")
