"""What the console's pages ask costs the same however long the history is: on every database each question goes by an index, up
to the place where its rows begin."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Executable, Row, Select, Table, insert, text

from ksana.domain.clock import from_micros
from ksana.store.plan_requests import TaskFilter
from ksana.store.requests import PageRequest
from ksana.store.sql import reads, reads_names, reads_plans, reads_workflows, schema
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from ksana.store.view_requests import TargetKind
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.test_list_plans import Overheard
from tests.contract.store.test_plans import EXPLAIN, HISTORY, plan, tables

MIDDLE, OWNERS = HISTORY // 2, 400
OFTEN_ONCE = "once"
"""A workflow that had many runs, of which none is among the newest."""
QUESTIONS: dict[str, Callable[[Tx], object]] = {
    "a log": lambda tx: reads_workflows.logs(tx, 1, (1, MIDDLE), 10),
    "a log, backwards": lambda tx: reads_workflows.logs_before(tx, 1, (1, MIDDLE), 10),
    "the events of one": lambda tx: reads.events(tx, MIDDLE, 10, "job/1"),
    "a ledger": lambda tx: reads.occurrences(tx, 1, from_micros(MIDDLE), from_micros(HISTORY), 10, newest=False),
    "a ledger, newest": lambda tx: reads.occurrences(tx, 1, from_micros(0), from_micros(MIDDLE), 10, newest=True),
    "the newest runs": lambda tx: reads_workflows.newest_runs(tx, ["w1", OFTEN_ONCE], 10),
    "schedules of workflows": lambda tx: reads_workflows.schedules_of_workflows(tx, [OWNERS + 1, OWNERS + 2]),
    "names": lambda tx: reads_names.names_of(tx, TargetKind.JOB, ["j1", "j2"]),
    "tasks": lambda tx: reads_plans.tasks(tx, TaskFilter(1, keyword="nobody"), PageRequest()),
    "counts": lambda tx: reads_plans.plan_counts(tx, [1, 2]),
}
INDEXES = {
    "the events of one": "ix_events_subject",
    "the newest runs": "ix_workflow_runs_of",
    "tasks": "ix_tenant_tasks_position",
}
BEGINS = {
    "sqlite": re.compile(r"\(execution_id=\? AND \(epoch,seq\)[<>]"),
    "postgresql": re.compile(r"Index Cond: \(\(execution_id = 1\) AND \(ROW\(epoch, seq\)"),
    "mysql": re.compile(r'"used_key_parts": \["execution_id", "epoch", "seq"\]'),
}
"""That a log is read from its place on, and not from its beginning."""


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class AlsoCore(Overheard):
    """Keeps the questions of SQLAlchemy, too, as they are put to the database."""

    put: list[str]

    def core(self, statement: Executable) -> list[Row[Any]]:
        assert isinstance(statement, Select)
        compiled = statement.compile(self.connection, compile_kwargs={"literal_binds": True})
        self.put.append(str(compiled))
        return super().core(statement)


def plans_of(store: SqlStore, ask: Callable[[Tx], object]) -> list[str]:
    with store._reading.connect() as connection, connection.begin():
        tx = AlsoCore(connection, store._dialect, 0)
        tx.asked, tx.put = [], []
        ask(tx)
        explained = [connection.execute(text(EXPLAIN[store._dialect.name] + sql)) for sql in tx.put]
        told = ["\n".join(str(row[-1]) for row in rows) for rows in explained]
    return told + [plan(store, statement, values) for statement, values in tx.asked]


def fill(store: SqlStore) -> None:
    """Of each so many that reading all of them would not be worth the while."""
    numbers, owners = range(1, HISTORY + 1), range(1, OWNERS + 1)
    rows: dict[Table, list[dict[str, Any]]] = {
        schema.jobs: [{"public_id": f"j{each}", "unique_name": f"j{each}"} for each in owners],
        schema.workflows: [{"public_id": f"w{each}", "unique_name": f"w{each}"} for each in owners],
        schema.schedules: [{"public_id": f"s{each}", "workflow_id": each} for each in owners],
        schema.workflow_runs: [
            {"public_id": f"r{n}", "workflow_key": key, "status": "SUCCESS", "triggered_by": "manual"}
            for n, key in enumerate([OFTEN_ONCE] * MIDDLE + [f"w{n % OWNERS}" for n in range(MIDDLE)])
        ],
        schema.tenant_tasks: [
            {"public_id": f"k{n}", "plan_id": n % OWNERS, "tenant_id": f"t{n}", "position": n, "status": "COMPLETED"}
            for n in numbers
        ],
        schema.execution_logs: [{"execution_id": n % 2, "epoch": 1, "seq": n} for n in numbers],
        schema.occurrences: [{"schedule_id": n % 2, "planned_for": n, "outcome": "FIRED"} for n in numbers],
        schema.events: [{"subject": f"job/{n % OWNERS}"} for n in numbers],
    }
    with store._writing.begin() as connection:
        for table, some in rows.items():
            connection.execute(insert(table), [_needed(table) | each for each in some])
    with store._writing.begin() as connection:
        for table in rows:
            connection.execute(text(f"ANALYZE {'TABLE ' if store._dialect.name == 'mysql' else ''}{table.name}"))


def _needed(table: Table) -> dict[str, Any]:
    """Something in each column that must have a value."""
    needed = [each for each in table.c if not each.nullable and each.autoincrement is not True]
    return {each.name: "-" if each.type.python_type is str else 0 for each in needed}


def reads_all(back_end: str, told: str) -> bool:
    """Whether it reads a whole table, other than that of the rows that it was given."""
    if back_end == "mysql":
        found = [table for table in tables(json.loads(told)) if table["table_name"] != "r"]
        return any(table["access_type"] in {"ALL", "index"} for table in found)
    if back_end == "postgresql":
        return "Seq Scan" in told
    return any(f"SCAN {table}" in told for table in ("t", *schema.metadata.tables))


def test_no_question_reads_a_whole_table(store: SqlStore, back_end: str) -> None:
    fill(store)
    plans = {name: plans_of(store, ask) for name, ask in QUESTIONS.items()}
    assert {name: told for name, told in plans.items() if any(reads_all(back_end, each) for each in told)} == {}
    for name, index in INDEXES.items():
        assert all(index in told for told in plans[name]), name
    for name in ("a log", "a log, backwards"):
        assert BEGINS[back_end].search(plans[name][0]), name
