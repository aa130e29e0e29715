"""The store: firing 10,000 of 100,000 schedules at one instant, and claiming 100 from 1,000 and from 1,000,000 executions.

make bench                             SQLite in a temporary folder
make bench ARGS="--executions 100000"  a smaller history
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from sqlalchemy import event, insert, text

from bench.report import Line
from ksana.domain.clock import to_micros
from ksana.domain.execution import Claim
from ksana.domain.job import ConcurrencyPolicy, Contract, Job, JobSpec
from ksana.domain.ledger import Firing
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, decide_fire
from ksana.engine.clock import SystemClock
from ksana.store.requests import ClaimRequest, Ending, NewJob, StoreOptions
from ksana.store.sql import codec, migrate, open_store, schema
from ksana.store.sql.store import SqlStore

START = datetime(2026, 1, 1, tzinfo=UTC)
DUE = 10_000
SCHEDULES = 100_000
CLAIM = 100
REPEATS = 15
T = TypeVar("T")


def measure(executions: int) -> list[Line]:
    return asyncio.run(_measure(executions))


async def _measure(executions: int) -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
        fired, commits = await _fire(Path(folder))
        small, large = await _claims(Path(folder), (1_000, executions))
    ratio = statistics.median(large) / statistics.median(small)
    return [
        Line(
            f"fire {DUE:,} of {SCHEDULES:,} schedules",
            f"{fired:.2f} s, {commits} commit",
            "< 2 s, 1",
            fired < 2 and commits == 1,
        ),
        Line(f"claim {CLAIM} of 1,000 executions", _spread(small), "", None),
        Line(f"claim {CLAIM} of {executions:,} executions", _spread(large), "", None),
        Line("ratio of the two", f"{ratio:.2f} x", "<= 1.5 x", ratio <= 1.5),
    ]


def _spread(seconds: list[float]) -> str:
    millis = [1_000 * value for value in seconds]
    return f"{statistics.median(millis):.2f} ms (min {min(millis):.2f}, max {max(millis):.2f})"


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


async def _fire(folder: Path) -> tuple[float, int]:
    """Seconds and commits for all that are due at one instant."""
    store, job = await _opened(folder / "fire.db")
    with store._writing.begin() as connection:
        connection.execute(insert(schema.schedules), [_schedule(job, number) for number in range(SCHEDULES)])
    due = await store.due_schedules(START, SCHEDULES)
    firings = [
        Firing(item.id, item.version, START, decide_fire(item.spec, item.id, START, START)) for item in due.schedules
    ]
    commits: list[object] = []
    event.listen(store._writing, "commit", commits.append)
    seconds, fired = await _timed(lambda: store.fire(firings, START))
    assert sum(len(item.execution_ids) for item in fired) == DUE
    await store.close()
    return seconds, len(commits)


def _schedule(job: Job, number: int) -> dict[str, object]:
    """The first DUE of them are due at START, the others later."""
    spec = ScheduleSpec(kind=ScheduleKind.EVERY, every=timedelta(seconds=10), anchor=START)
    due = to_micros(START if number < DUE else START + timedelta(hours=1))
    return {
        "public_id": f"s{number}",
        "job_id": job.id,
        "kind": "every",
        "spec": codec.schedule_spec_json(spec),
        "status": "ACTIVE",
        "next_planned_for": due,
        "next_fire_at": due,
        "version": 1,
        "created_at": 0,
        "updated_at": 0,
    }


async def _claims(folder: Path, sizes: tuple[int, ...]) -> list[list[float]]:
    """Seconds for each of several claims of CLAIM, with so many executions of which all but a few have ended; the sizes take
    turns, so that whatever else the machine does meets them alike."""
    stores = [await _with_history(folder / f"{size}.db", size) for size in sizes]
    for store in stores:
        for _ in range(3):
            await _claim_once(store)
    taken: list[list[float]] = [[] for _ in sizes]
    for _ in range(REPEATS):
        for seconds, store in zip(taken, stores, strict=True):
            seconds.append(await _claim_once(store))
    for store in stores:
        await store.close()
    return taken


async def _with_history(path: Path, executions: int) -> SqlStore:
    store, job = await _opened(path)
    with store._writing.begin() as connection:
        connection.execute(text(_HISTORY), {"job": job.id, "ended": executions - CLAIM, "ready": CLAIM})
    return store


async def _claim_once(store: SqlStore) -> float:
    now = datetime.now(UTC)
    seconds, claimed = await _timed(lambda: store.claim(ClaimRequest("bench", CLAIM), now))
    assert len(claimed) == CLAIM
    # The same ones go back, so that every claim finds the same history.
    claims = [Claim(item.execution.id, item.execution.epoch) for item in claimed]
    await asyncio.gather(*(store.retry(Ending(claim, now), now) for claim in claims))
    return seconds


async def _timed(work: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    began = time.perf_counter()
    answer = await work()
    return time.perf_counter() - began, answer


_HISTORY = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :ended + :ready)
INSERT INTO executions (job_id, planned_for, triggered_by, worker_queue, status, ready_at, epoch, attempt, open_dependencies,
                        created_at, started_at, ended_at, updated_at)
SELECT :job, n, 'schedule', 'default', CASE WHEN n > :ended THEN 'SCHEDULED' ELSE 'SUCCESS' END,
       CASE WHEN n > :ended THEN n END, 1, 1, 0, n, n, CASE WHEN n > :ended THEN NULL ELSE n END, n
FROM numbers
"""
