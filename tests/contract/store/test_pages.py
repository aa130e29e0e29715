"""What SQLite writes for many jobs with a history: each page of the file that a transaction changes is a write of its own, and
another when the log is carried over. Counts of pages, as the log has them.

With the job before all else in an index, each step of a run was on its job's own page, once each job's past filled one: five
pages a run for what is one now for its instant and one for its end.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import insert

from ksana.domain.ledger import Schedule
from ksana.store.sql import schema
from ksana.store.sql.dialects.sqlite import database_path
from ksana.store.sql.store import SqlStore
from tests.contract.store.world import World

pytestmark = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)

JOBS = 60
PAST = 200
"""Ended runs of each job: more than one page of an index has room for."""
TOGETHER = 30
"""Pages of what all runs are written to alike: the ends of tables, and indexes of what goes on."""
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def schedules(world: World, store: SqlStore) -> list[Schedule]:
    """One for each job, all due in a minute."""
    made = [await world.every(await world.job(), MINUTE) for _ in range(JOBS)]
    past = [_ended(made[number % JOBS], number) for number in range(JOBS * PAST)]
    instants = [_instant(row, execution_id) for execution_id, row in enumerate(past, 1)]
    with store._writing.begin() as connection:
        connection.execute(insert(schema.executions), past)
        connection.execute(insert(schema.occurrences), instants)
    return made


def _ended(schedule: Schedule, at: int) -> dict[str, object]:
    return {
        "job_id": schedule.job_id,
        "schedule_id": schedule.id,
        "planned_for": at,
        "triggered_by": "schedule",
        "worker_queue": "default",
        "status": "SUCCESS",
        "epoch": 1,
        "attempt": 1,
        "open_dependencies": 0,
        "created_at": at,
        "ended_at": at,
        "updated_at": at,
    }


def _instant(run: dict[str, object], execution_id: int) -> dict[str, object]:
    told = {"schedule_id": run["schedule_id"], "planned_for": run["planned_for"], "recorded_at": run["planned_for"]}
    return {**told, "outcome": "FIRED", "instants": 1, "execution_id": execution_id}


async def pages(url: str, work: Callable[[], Awaitable[object]]) -> int:
    """How many that writes."""
    with closing(sqlite3.connect(database_path(url), isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await work()
        _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(frames)


async def test_a_fire_writes_a_page_for_each_ledger_and_few_others(
    world: World, url: str, schedules: list[Schedule]
) -> None:
    world.clock.advance(MINUTE)
    written = await pages(url, world.fire_due)
    assert len(await world.claim()) == JOBS
    assert written <= JOBS + TOGETHER


async def test_a_claim_writes_no_page_for_each_job(world: World, url: str, schedules: list[Schedule]) -> None:
    world.clock.advance(MINUTE)
    await world.fire_due()
    assert await pages(url, world.claim) <= TOGETHER


async def test_ends_write_a_page_for_each_job_and_few_others(
    world: World, store: SqlStore, url: str, schedules: list[Schedule]
) -> None:
    world.clock.advance(MINUTE)
    await world.fire_due()
    claimed = await world.claim()

    async def end_all() -> None:
        assert all(await asyncio.gather(*(store.succeed(world.ending(each)) for each in claimed)))

    assert await pages(url, end_all) <= JOBS + TOGETHER
    assert len(claimed) == JOBS
