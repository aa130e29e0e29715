"""What a list costs does not grow with history: on every database it goes by an index that has its rows in order, and it asks the
same few questions however long its pages are."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, text

from ksana.domain.clock import from_micros
from ksana.domain.execution import Trigger
from ksana.domain.states import ExecutionStatus, RunStatus
from ksana.store.activity_requests import ActivityFilter, ActivityRequest, NewestAfter, Sort
from ksana.store.requests import ExecutionFilter, PageRequest
from ksana.store.sql import activity_streams, paging, reads_activity, reads_failures, reads_overview, reads_runs, schema
from ksana.store.sql.rows import Statement
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import NO_ROWS, Tx
from ksana.store.workflow_requests import RunFilter
from tests.contract.store.test_plans import HISTORY, plan, tables
from tests.contract.store.test_plans import fill as fill_executions
from tests.contract.store.world import World

FIRST, LATER, CURSOR = PageRequest(), PageRequest(4, 10), PageRequest(before_id=HISTORY // 2)
RARE, TWO = frozenset({ExecutionStatus.QUEUED}), frozenset({ExecutionStatus.QUEUED, ExecutionStatus.CALLBACK_PENDING})
ALONE = ExecutionFilter(nodes=False)
FAILED = frozenset({RunStatus.FAILED})
LISTS: dict[str, tuple[Callable[[Tx], object], int]] = {
    "all": (lambda tx: reads_runs.executions(tx, ALONE, FIRST), 2),
    "all, later": (lambda tx: reads_runs.executions(tx, ALONE, LATER), 2),
    "all, by cursor": (lambda tx: reads_runs.executions(tx, ALONE, CURSOR), 1),
    "with nodes": (lambda tx: reads_runs.executions(tx, ExecutionFilter(), FIRST), 2),
    "in a state": (lambda tx: reads_runs.executions(tx, ExecutionFilter(statuses=RARE, nodes=False), FIRST), 2),
    "in a state, by cursor": (
        lambda tx: reads_runs.executions(tx, ExecutionFilter(statuses=RARE, nodes=False), CURSOR),
        1,
    ),
    "in one of two": (lambda tx: reads_runs.executions(tx, ExecutionFilter(statuses=TWO, nodes=False), FIRST), 2),
    "of a job": (lambda tx: reads_runs.executions(tx, ExecutionFilter(job_id=1), FIRST), 2),
    "of a job, by cursor": (lambda tx: reads_runs.executions(tx, ExecutionFilter(job_id=1), CURSOR), 2),
    "of a job in a state": (lambda tx: reads_runs.executions(tx, ExecutionFilter(1, RARE), FIRST), 2),
    "of workflows": (lambda tx: reads_runs.workflow_runs(tx, RunFilter(), FIRST), 2),
    "of a workflow": (lambda tx: reads_runs.workflow_runs(tx, RunFilter("w1"), FIRST), 2),
    "of a workflow in a state": (lambda tx: reads_runs.workflow_runs(tx, RunFilter("w1", FAILED), FIRST), 2),
    "of workflows in a state": (lambda tx: reads_runs.workflow_runs(tx, RunFilter(None, FAILED), CURSOR), 1),
    "of both": (lambda tx: reads_runs.all_runs(tx, ALONE, RunFilter("w1"), LATER), 4),
    "what failed": (lambda tx: reads_failures.failures(tx, 10), 7),
    "what ended lately": (lambda tx: reads_overview.run_history(tx, HISTORY - 100, timedelta(seconds=1)), 4),
    "of both in a state": (
        lambda tx: reads_runs.all_runs(tx, ExecutionFilter(statuses=RARE, nodes=False), RunFilter(None, FAILED), FIRST),
        4,
    ),
}
"""What is asked, and in how many questions at the most."""


def activity(most: int, sort: Sort = Sort.NEWEST, **filters: Any) -> tuple[Callable[[Tx], object], int]:
    question, after = ActivityFilter(**filters), NewestAfter(HISTORY // 2, HISTORY // 2, HISTORY // 2)
    request = ActivityRequest(sort=sort, after=after if sort is Sort.NEWEST else None)
    return lambda tx: reads_activity.activity(tx, question, request), most


SINCE = from_micros(HISTORY // 2)
LISTS |= {
    "activity": activity(4),
    "activity in a state": activity(4, job_statuses=TWO, workflow_statuses=FAILED),
    "activity of a job": activity(3, job_id=1),
    "activity of a job in a state": activity(3, job_id=1, job_statuses=TWO),
    "activity of a workflow": activity(2, workflow_key="w1", workflow_statuses=FAILED),
    "activity of a tenant": activity(3, tenant_id="acme"),
    "activity in a state by trigger": activity(
        6, trigger=Trigger.SCHEDULE, job_statuses=RARE, workflow_statuses=FAILED
    ),
    "activity since": activity(14, since=SINCE, job_statuses=RARE, workflow_statuses=FAILED),
    "the longest": activity(4, Sort.LONGEST, job_statuses=RARE, workflow_statuses=FAILED),
}


class Overheard(Tx):
    """Keeps what is asked."""

    asked: list[tuple[Statement, dict[str, Any]]]

    def query(self, statement: Statement, rows: Iterable[Sequence[Any]] = NO_ROWS, **values: Any) -> list[Any]:
        given = list(rows)
        if given or not statement.rows:
            self.asked.append((statement, {**values, "rows": json.dumps(given)}))
        return super().query(statement, given, **values)


def overhear(store: SqlStore, ask: Callable[[Tx], object], clock: int = 0) -> list[tuple[Statement, dict[str, Any]]]:
    with store._reading.connect() as connection, connection.begin():
        tx = Overheard(connection, store._dialect, clock)
        tx.asked = []
        ask(tx)
    return tx.asked


async def fill(world: World, store: SqlStore) -> None:
    """Runs of jobs, and after them as many of workflows, of which one in a hundred has failed, with a node each."""
    fill_executions(store, [(await world.job()).id for _ in range(20)])
    with store._writing.begin() as connection:
        connection.execute(insert(schema.workflow_runs), [_workflow_run(number) for number in range(HISTORY)])
        connection.execute(insert(schema.executions), [_node(number) for number in range(HISTORY)])
    with store._writing.begin() as connection:
        for table in ("executions", "workflow_runs"):
            connection.execute(text(f"ANALYZE {'TABLE ' if store._dialect.name == 'mysql' else ''}{table}"))


def _workflow_run(number: int) -> dict[str, Any]:
    return {
        "public_id": f"r{number}",
        "workflow_id": 1 + number % 20,
        "workflow_key": f"w{number % 20}",
        "workflow_version": 1,
        "snapshot": "-",
        "depth": 0,
        "triggered_by": "manual",
        "status": "FAILED" if number % 100 == 0 else "SUCCESS",
        "open_nodes": 0,
        "failed_nodes": 0,
        "stopped_nodes": 0,
        "created_at": number,
        "updated_at": number,
    }


def _node(number: int) -> dict[str, Any]:
    return {
        "workflow_run_id": number,
        "node_id": "n",
        "triggered_by": "workflow",
        "worker_queue": "default",
        "status": "SUCCESS",
        "epoch": 1,
        "attempt": 1,
        "open_dependencies": 0,
        "created_at": number,
        "updated_at": number,
    }


def sorts(back_end: str, told: str) -> bool:
    """Whether rows of a table are sorted, or all of them are read; to put branches together, a page of each is."""
    if back_end == "sqlite":
        several = "UNION ALL" in told
        return "SCAN t" in told.replace("SCAN t USING", "") or ("TEMP B-TREE" in told and not several)
    if back_end == "postgresql":
        return "Seq Scan" in told or ("Sort" in told and "Append" not in told)
    found = [table for table in tables(json.loads(told)) if table.get("table_name") == "t"]
    several = '"union_result"' in told
    return any(each["access_type"] == "ALL" for each in found) or ("filesort" in told and not several)


@pytest.fixture
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page looks at a part of the history: for all of it, no index would be worth the while."""
    monkeypatch.setattr(activity_streams, "LOOKED_AT", 200)


@pytest.mark.usefixtures("short_looks")
async def test_every_list_follows_an_index(world: World, store: SqlStore, back_end: str) -> None:
    await fill(world, store)
    astray: dict[str, list[str]] = {}
    for name, (ask, most) in LISTS.items():
        asked = overhear(store, ask)
        assert len(asked) <= most, name
        pages = [each for each in asked if "count(*)" not in each[0].render(store._dialect)]
        # Without a condition it begins at the end of the table, and stops after the page.
        bounded = [each for each in pages if "WHERE" in each[0].render(store._dialect)]
        plans = [plan(store, statement, values) for statement, values in bounded]
        astray[name] = [told for told in plans if sorts(back_end, told)]
    assert {name: plans for name, plans in astray.items() if plans} == {}


async def test_totals_are_counted_by_an_index(world: World, store: SqlStore, back_end: str) -> None:
    await fill(world, store)
    for name in ("in a state", "of a job in a state", "of a workflow in a state", "of both in a state"):
        asked = overhear(store, LISTS[name][0])
        counts = [each for each in asked if "count(*)" in each[0].render(store._dialect)]
        plans = [plan(store, statement, values) for statement, values in counts]
        assert [told for told in plans if sorts(back_end, told)] == [], name
        assert back_end != "sqlite" or all("COVERING INDEX" in told for told in plans), name


async def test_the_end_of_a_list_is_not_counted(world: World, store: SqlStore) -> None:
    await fill(world, store)
    none = ExecutionFilter(statuses=frozenset({ExecutionStatus.CANCELED}))
    [(page, _)] = overhear(store, lambda tx: reads_runs.executions(tx, none, FIRST))
    assert "count" not in page.render(store._dialect)


@pytest.fixture
def short_totals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Totals go as far as a hundred."""
    monkeypatch.setattr(paging, "MAX_PAGED_ROWS", 100)
    paging._total.cache_clear()
    yield
    paging._total.cache_clear()


@pytest.mark.usefixtures("short_totals")
async def test_a_list_that_is_long_enough_is_not_counted_again_at_once(world: World, store: SqlStore) -> None:
    await fill(world, store)
    ended = ExecutionFilter(statuses=frozenset({ExecutionStatus.SUCCESS}))
    totals: list[int | None] = []

    def ask(tx: Tx) -> None:
        totals.append(reads_runs.executions(tx, ended, FIRST).total)

    asked = [len(overhear(store, ask, clock)) for clock in (1, 2, paging.REMEMBERED + 1)]
    assert (asked, totals) == ([2, 1, 2], [100, 100, 100])


@pytest.mark.usefixtures("short_totals")
async def test_a_list_that_work_leaves_is_always_counted(world: World, store: SqlStore) -> None:
    fill_executions(store, [(await world.job()).id])
    with store._writing.begin() as connection:
        connection.execute(text("UPDATE executions SET status = 'QUEUED'"))
    queued = ExecutionFilter(statuses=RARE)
    asked = [len(overhear(store, lambda tx: reads_runs.executions(tx, queued, FIRST), clock)) for clock in (1, 2)]
    assert asked == [2, 2]


async def test_the_plans_would_show_a_sort(world: World, store: SqlStore, back_end: str) -> None:
    await fill(world, store)
    sorted_ = Statement("SELECT t.* FROM executions t WHERE t.attempt > 0 ORDER BY t.created_at LIMIT 20")
    assert sorts(back_end, plan(store, sorted_, {}))
