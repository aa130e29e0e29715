"""Runs of both kinds in one list: whatever is asked for is found once, in order, page by page."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import insert

from ksana.domain.clock import from_micros
from ksana.domain.execution import Execution, Trigger
from ksana.domain.job import Contract
from ksana.domain.states import ExecutionStatus, RunStatus
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.activity_requests import (
    LOOKED_AT,
    ActivityFilter,
    ActivityPage,
    ActivityRequest,
    RunKind,
    Sort,
    TargetName,
)
from ksana.store.requests import NewJob
from ksana.store.sql import activity_streams, schema, since
from ksana.store.sql.store import SqlStore
from tests.contract.store.world import ANNA, World, http_spec

HOUR = 3_600_000_000
START = 1_700_000_000_000_000
JOBS, FLOWS = 60, 40
E, R = ExecutionStatus, RunStatus
STATES = (E.SUCCESS, E.SUCCESS, E.FAILED, E.TIMEOUT, E.RUNNING)
RUN_STATES = (R.SUCCESS, R.FAILED, R.RUNNING)
Row = dict[str, Any]


def job_run(number: int) -> Row:
    """One of two jobs, every hour, for the instant itself; each takes another time, and the last have not begun."""
    status = STATES[number % len(STATES)]
    made = START + number * HOUR
    begun = None if number >= JOBS - 3 else made + 1_000
    return {
        "id": number + 1,
        "job_id": 1 + number % 2,
        "workflow_run_id": None,
        "node_id": None,
        "planned_for": made,
        "triggered_by": "manual" if number % 7 == 0 else "schedule",
        "worker_queue": "default",
        "status": status,
        "epoch": 1,
        "attempt": 1,
        "open_dependencies": 0,
        "created_at": made,
        "started_at": begun,
        "ended_at": None if begun is None or status is E.RUNNING else begun + (number * 37) % 50 * 1_000_000,
        "updated_at": made,
    }


def node(number: int) -> Row:
    """Of the first job, and newer than its runs: it is in the way."""
    return job_run(number) | {
        "id": JOBS + 1 + number,
        "job_id": 1,
        "planned_for": START + (JOBS + number) * HOUR,
        "created_at": START + (JOBS + number) * HOUR,
        "workflow_run_id": 1,
        "node_id": f"n{number}",
        "triggered_by": "workflow",
    }


def workflow_run(number: int) -> Row:
    """Between the jobs' runs, and one at the same moment as one of them."""
    made = START + number * HOUR + (0 if number == 5 else HOUR // 2)
    status = RUN_STATES[number % len(RUN_STATES)]
    return {
        "id": number + 1,
        "public_id": f"r{number}",
        "workflow_id": 1 + number % 2,
        "workflow_key": f"w{number % 2}",
        "workflow_version": 1,
        "snapshot": "-",
        "depth": 0,
        "tenant_id": "acme" if number % 10 == 3 else None,
        "plan_id": 1 if number % 10 == 3 else None,
        "triggered_by": "plan" if number % 10 == 3 else "manual",
        "status": status,
        "open_nodes": 0,
        "failed_nodes": 0,
        "stopped_nodes": 0,
        "created_at": made,
        "started_at": made,
        "ended_at": None if status is R.RUNNING else made + (number * 13) % 50 * 1_000_000,
        "updated_at": made,
    }


JOB_ROWS, FLOW_ROWS = [job_run(number) for number in range(JOBS)], [workflow_run(number) for number in range(FLOWS)]
TEN, THIRTY = from_micros(START + 10 * HOUR), from_micros(START + 30 * HOUR)
Chosen = Callable[[Row, bool], bool]


def _any(_row: Row, _job: bool) -> bool:
    return True


FILTERS: dict[str, tuple[ActivityFilter, Chosen]] = {
    "all": (ActivityFilter(), _any),
    "of jobs": (ActivityFilter(frozenset({RunKind.JOB})), lambda _, job: job),
    "of workflows": (ActivityFilter(frozenset({RunKind.WORKFLOW})), lambda _, job: not job),
    "in some states": (
        ActivityFilter(
            job_statuses=frozenset({E.FAILED, E.TIMEOUT}), workflow_statuses=frozenset({R.FAILED, R.RUNNING})
        ),
        lambda row, job: row["status"] in ({E.FAILED, E.TIMEOUT} if job else {R.FAILED, R.RUNNING}),
    ),
    "of a job": (ActivityFilter(job_id=1), lambda row, job: job and row["job_id"] == 1),
    "of a job in a state": (
        ActivityFilter(job_id=1, job_statuses=frozenset({E.FAILED, E.RUNNING})),
        lambda row, job: job and row["job_id"] == 1 and row["status"] in {E.FAILED, E.RUNNING},
    ),
    "of a job between two instants": (
        ActivityFilter(job_id=1, since=TEN, until=THIRTY),
        lambda row, job: job and row["job_id"] == 1 and START + 10 * HOUR <= row["created_at"] < START + 30 * HOUR,
    ),
    "of a workflow": (ActivityFilter(workflow_key="w1"), lambda row, job: not job and row["workflow_key"] == "w1"),
    "of a tenant": (ActivityFilter(tenant_id="acme"), lambda row, job: not job and row["tenant_id"] == "acme"),
    "by hand": (ActivityFilter(trigger=Trigger.MANUAL), lambda row, _: row["triggered_by"] == "manual"),
    "from an instant": (ActivityFilter(since=TEN), lambda row, _: row["created_at"] >= START + 10 * HOUR),
    "between two instants": (
        ActivityFilter(since=TEN, until=THIRTY, job_statuses=frozenset({E.SUCCESS})),
        lambda row, job: (
            START + 10 * HOUR <= row["created_at"] < START + 30 * HOUR and (not job or row["status"] == E.SUCCESS)
        ),
    ),
    "of a job and a workflow": (ActivityFilter(job_id=1, workflow_key="w1"), lambda _row, _job: False),
}


async def fill(store: SqlStore) -> None:
    for number in (1, 2):
        await store.create_job(NewJob(key=f"job-{number}", spec=http_spec(f"job {number}"), actor=ANNA))
    with store._writing.begin() as connection:
        connection.execute(insert(schema.executions), JOB_ROWS + [node(number) for number in range(JOBS)])
        connection.execute(insert(schema.workflow_runs), FLOW_ROWS)


def name(run: Execution | WorkflowRun) -> str:
    return run.key if isinstance(run, WorkflowRun) else str(run.id)


def expected(chosen: Chosen, order: Callable[[Row], Any]) -> list[str]:
    jobs = [(str(row["id"]), row) for row in JOB_ROWS if chosen(row, True)]
    flows = [(row["public_id"], row) for row in FLOW_ROWS if chosen(row, False)]
    return [key for key, _ in sorted(jobs + flows, key=lambda each: order(each[1]))]


async def walk(store: SqlStore, filters: ActivityFilter, sort: Sort, size: int) -> list[ActivityPage]:
    pages = [await store.activity(filters, ActivityRequest(size, sort))]
    while pages[-1].next is not None:
        pages.append(await store.activity(filters, ActivityRequest(size, sort, pages[-1].next)))
    return pages


@pytest.fixture(params=["whole", "in pieces"])
def looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rows a page looks at; where that is few, a time is searched for among few ids, too."""
    if request.param == "whole":
        return LOOKED_AT
    monkeypatch.setattr(activity_streams, "LOOKED_AT", 12)
    monkeypatch.setattr(since, "NEAR", 4)
    monkeypatch.setattr(since, "FAN", 3)
    return 12


async def test_every_run_that_is_asked_for_comes_once_newest_first(store: SqlStore, looks: int) -> None:
    await fill(store)
    for asked, (filters, chosen) in FILTERS.items():
        pages = await walk(store, filters, Sort.NEWEST, 7)
        found = [name(run) for page in pages for run in page.items]
        wanted = expected(chosen, lambda row: (-row["created_at"], "public_id" in row))
        assert found == wanted, asked
        assert all(len(page.items) == 7 for page in pages[:-1]) or looks < 100, asked
        first = pages[0].total
        assert first == len(wanted) if pages[0].total_is_exact else first is not None and first <= len(wanted), asked
        assert pages[0].total_is_exact or looks < 100, asked
        assert [page.total for page in pages[1:]] == [None] * (len(pages) - 1), asked


async def test_the_longest_and_the_shortest_come_first(world: World, store: SqlStore) -> None:
    await fill(store)
    world.clock.advance(timedelta(days=1))
    now = int(world.clock.now().timestamp() * 1_000_000)

    def length(row: Row, sign: int) -> tuple[bool, int, bool, int]:
        took = None if row["started_at"] is None else (row["ended_at"] or now) - row["started_at"]
        return took is None, sign * (took or 0), "public_id" in row, -row["id"]

    for asked in ("all", "in some states", "of a job", "by hand"):
        filters, chosen = FILTERS[asked]
        for sort, sign in ((Sort.LONGEST, -1), (Sort.SHORTEST, 1)):
            pages = await walk(store, filters, sort, 9)
            found = [name(run) for page in pages for run in page.items]
            assert found == expected(chosen, partial(length, sign=sign)), (asked, sort)
            assert pages[0].total == len(found)


async def test_what_begins_meanwhile_moves_nothing_on_later_pages(store: SqlStore) -> None:
    await fill(store)
    first = await store.activity(ActivityFilter(), ActivityRequest(30))
    newer = [job_run(JOBS + 100 + number) | {"id": 1_000 + number} for number in range(5)]
    with store._writing.begin() as connection:
        connection.execute(insert(schema.executions), newer)
    second = await store.activity(ActivityFilter(), ActivityRequest(100, after=first.next))
    found = [name(run) for run in [*first.items, *second.items]]
    assert found == expected(_any, lambda row: (-row["created_at"], "public_id" in row))


async def test_names_are_told_also_of_what_was_deleted(world: World, store: SqlStore) -> None:
    kept, gone = await world.job(name="kept"), await world.job(name="gone")
    runs = [await world.enqueue(kept), await world.enqueue(gone)]
    await store.delete_job(gone.id, ANNA)
    names = await store.target_names(runs)
    assert names.jobs[kept.id] == TargetName(kept.key, "kept", Contract.CRONJOB)
    assert names.jobs[gone.id] == TargetName(str(gone.id), "gone", Contract.CRONJOB, deleted=True)
