"""Asks Ksana for schedules over HTTP, many at a time, and writes down what it was told: acknowledged, refused, or unknown."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx2

from tests.faults.history import Operation, Outcome, Schedule

AT_ONCE = 16
TIMEOUT_SECONDS = 60.0
UNKNOWN = {"COMMIT_UNKNOWN", "INTERNAL", "INTERNAL_ERROR"}
Wanted = tuple[Schedule, dict[str, Any]]
"""A schedule, and what of its job goes beyond that: the address or the command that it calls, and fields of a task."""


class Operator:
    """Whoever uses Ksana."""

    def __init__(self, bases: Callable[[], Sequence[str]]) -> None:
        self._bases = bases
        self.operations: list[Operation] = []

    def create(self, wanted: Iterable[Wanted]) -> list[Operation]:
        """Makes the schedules, with the instances in turn."""
        made = asyncio.run(self._create(list(wanted)))
        self.operations += made
        return made

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(self._bases()[0] + path, timeout=TIMEOUT_SECONDS)

    async def _create(self, wanted: list[Wanted]) -> list[Operation]:
        turns = asyncio.Semaphore(AT_ONCE)
        bases = itertools.cycle(self._bases())
        async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS) as client:

            async def one(schedule: Schedule, job: dict[str, Any], base: str) -> Operation:
                async with turns:
                    return await _create_one(client, base, schedule, job)

            return await asyncio.gather(*(one(schedule, job, next(bases)) for schedule, job in wanted))


async def _create_one(client: httpx2.AsyncClient, base: str, schedule: Schedule, job: dict[str, Any]) -> Operation:
    path, body = (
        ("/jobs", job_of(schedule, job))
        if "cmd" in job or schedule.every
        else ("/api/v1/tasks", task_of(schedule, job))
    )
    sent = time.time()
    try:
        answer = await client.post(base + path, json=body)
    except httpx2.HTTPError:
        return Operation("create", schedule, sent, time.time(), "info")
    return Operation("create", schedule, sent, time.time(), outcome_of(answer), answer.status_code)


def outcome_of(answer: httpx2.Response) -> Outcome:
    if answer.is_success:
        return "ok"
    return "info" if answer.json().get("code") in UNKNOWN else "fail"


def task_of(schedule: Schedule, job: dict[str, Any]) -> dict[str, Any]:
    """Document 003's."""
    task = {
        "name": schedule.name,
        "cron_expr": schedule.cron,
        "timezone": schedule.zone,
        "target_url": job["url"],
        "recovery": "fail" if schedule.at_most_once else "retry",
        "retry_policy": {"max_retries": schedule.retries, "initial_delay": 1, "strategy": "fixed"},
        "max_concurrency": schedule.most_at_once or 1,
        "concurrency_policy": "PARALLEL" if schedule.most_at_once is None else "QUEUE",
        "start_at": _rfc3339(schedule.start_wall),
        "end_at": _rfc3339(schedule.end_wall),
    }
    return task | {name: value for name, value in job.items() if name != "url"}


def job_of(schedule: Schedule, job: dict[str, Any]) -> dict[str, Any]:
    """Document 002's, for intervals and for commands."""
    when: dict[str, Any] = {"misfire_policy": "FIRE_NOW", "misfire_grace": "1m"}
    if schedule.every:
        when |= {"kind": "every", "every": f"{schedule.every:g}s"}
    else:
        when |= {"kind": "cron", "cron": schedule.cron, "timezone": schedule.zone}
    for name, at in (("start_at", schedule.start_wall), ("end_at", schedule.end_wall)):
        when |= {name: _rfc3339(at)} if at is not None else {}
    what = {"type": "shell", "config": {"cmd": job["cmd"]}} if "cmd" in job else {"http": {"url": job["url"]}}
    timeout = f"{schedule.duration + 30:g}s"
    return {
        "id": schedule.name,
        "name": schedule.name,
        "schedule": when,
        "max_retries": schedule.retries,
        "timeout": timeout,
    } | what


def _rfc3339(wall: float | None) -> str | None:
    return None if wall is None else datetime.fromtimestamp(wall, UTC).isoformat().replace("+00:00", "Z")
