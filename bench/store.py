"""The store: firing 10,000 of 100,000 schedules that are due at one instant, in one transaction (SQLite).

make bench ARGS="--only store"
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from sqlalchemy import insert

from bench.options import Options
from bench.report import Line, at_most
from bench.spread import Spread
from ksana.domain.clock import to_micros
from ksana.domain.job import ConcurrencyPolicy, Contract, Job, JobSpec
from ksana.domain.ledger import Firing
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, decide_fire
from ksana.engine.clock import SystemClock
from ksana.store.requests import NewJob, StoreOptions
from ksana.store.sql import codec, migrate, open_store, schema
from ksana.store.sql.store import SqlStore

START = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = 2.0
T = TypeVar("T")


def measure(options: Options) -> list[Line]:
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> list[Line]:
    seconds: list[float] = []
    for _ in range(options.times):
        with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
            took, commits = await _fire(Path(folder), options.due, options.schedules)
        assert commits == 1
        seconds.append(took)
    name = f"fire {options.due:,} of {options.schedules:,} schedules, in one commit"
    return [Line.of(name, Spread.of(seconds), "s", at_most(SECONDS))]


async def _opened(path: Path) -> tuple[SqlStore, Job]:
    url = f"sqlite:///{path}"
    migrate.upgrade(url, StoreOptions())
    store = open_store(url, options=StoreOptions(), clock=SystemClock())
    spec = JobSpec(
        name="bench",
        type="http",
        config={"url": "http://127.0.0.1/"},
        concurrency=ConcurrencyPolicy.PARALLEL,
        contract=Contract.CRONJOB,
    )
    return store, await store.create_job(NewJob(key="bench", spec=spec))


async def _fire(folder: Path, due: int, schedules: int) -> tuple[float, int]:
    """Seconds and commits for all that are due at one instant."""
    store, job = await _opened(folder / "fire.db")
    with store._writing.begin() as connection:
        connection.execute(insert(schema.schedules), [_schedule(job, number, due) for number in range(schedules)])
    found = await store.due_schedules(START, schedules)
    firings = [
        Firing(item.id, item.version, START, decide_fire(item.spec, item.id, START, START)) for item in found.schedules
    ]
    before = store.writer.ended
    seconds, fired = await _timed(lambda: store.fire(firings, START))
    assert sum(len(item.execution_ids) for item in fired) == due
    commits = store.writer.ended - before
    await store.close()
    return seconds, commits


def _schedule(job: Job, number: int, due: int) -> dict[str, object]:
    """The first of them are due at START, the others later."""
    spec = ScheduleSpec(kind=ScheduleKind.EVERY, every=timedelta(seconds=10), anchor=START)
    at = to_micros(START if number < due else START + timedelta(hours=1))
    return {
        "public_id": f"s{number}",
        "job_id": job.id,
        "kind": "every",
        "spec": codec.schedule_spec_json(spec),
        "status": "ACTIVE",
        "next_planned_for": at,
        "next_fire_at": at,
        "version": 1,
        "created_at": 0,
        "updated_at": 0,
    }


async def _timed(work: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    began = time.perf_counter()
    answer = await work()
    return time.perf_counter() - began, answer
