"""What the hot statements cost does not grow with history: on every database each of them goes by an index."""

import json
from typing import Any

from sqlalchemy import insert, text

from ksana.domain.states import ACTIVE, HOLDS_SLOT
from ksana.store.sql import schema
from ksana.store.sql.rows import Statement, in_values
from ksana.store.sql.statements import (
    callbacks,
    claiming,
    cluster,
    enqueuing,
    firing,
    known_jobs,
    recovery,
    settling,
    slots,
)
from ksana.store.sql.store import SqlStore
from tests.contract.store.world import World

HISTORY = 4_000
PAIRS = json.dumps([[1, 1], [2, 1]])
TRIPLES = json.dumps([[1, 1, 1]])
STATEMENTS: dict[str, tuple[Statement, dict[str, Any]]] = {
    "what is ready": (claiming._READY, {"queue": "default", "now": HISTORY, "look": 10}),
    "the jobs of what is ready": (known_jobs._MET, {"rows": TRIPLES}),
    "their limits": (claiming._LIMITS, {"rows": PAIRS}),
    "who holds their slots": (slots._HOLDERS, {"rows": json.dumps(slots.job_states([1, 2], HOLDS_SLOT))}),
    "whether they still do": (slots._STILL_HOLDING, {"rows": PAIRS}),
    "who is queued": (slots._OLDEST_QUEUED, {"job_id": 1, "places": 2}),
    "which jobs have a queue": (slots._WITH_QUEUE, {"rows": PAIRS}),
    "how much is active": (enqueuing._ACTIVE_COUNTS, {"rows": json.dumps(slots.job_states([1, 2], ACTIVE))}),
    "the fence of an attempt": (settling._LOCK_CLAIMS, {"rows": PAIRS}),
    "the fence of a schedule": (firing._LOCK_DUE, {"rows": TRIPLES}),
    "which callbacks are overdue": (callbacks._OVERDUE, {"now": HISTORY, "most": 10}),
    "whose owner is gone": (recovery._ORPHANS, {"most": 10}),
    "who holds a lock": (cluster._HELD, {"name": "leader"}),
}
EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN ", "postgresql": "EXPLAIN ", "mysql": "EXPLAIN FORMAT=JSON "}
_WHOLE = {
    "sqlite": ("SCAN t",),
    "postgresql": ("Seq Scan on executions", "Seq Scan on schedules", "Seq Scan on jobs", "Seq Scan on locks"),
    "mysql": (),
}


def fill(store: SqlStore, job_ids: list[int]) -> None:
    """Runs of which one in a hundred is in each state that is looked for, and the rest are history."""
    states = {1: "SCHEDULED", 2: "RUNNING", 3: "CALLBACK_PENDING", 4: "QUEUED"}
    rows = [
        {
            "job_id": job_ids[number % len(job_ids)],
            "planned_for": number,
            "triggered_by": "schedule",
            "worker_queue": "default",
            "status": (status := states.get(number % 100, "SUCCESS")),
            "ready_at": number if status == "SCHEDULED" else None,
            "deadline_at": number if status == "CALLBACK_PENDING" else None,
            "owner": "one" if status == "RUNNING" else None,
            "epoch": 1,
            "attempt": 1,
            "open_dependencies": 0,
            "created_at": number,
            "updated_at": number,
        }
        for number in range(HISTORY)
    ]
    analyze = {"sqlite": "ANALYZE", "postgresql": "ANALYZE executions"}.get(
        store._dialect.name, "ANALYZE TABLE executions"
    )
    with store._writing.begin() as connection:
        connection.execute(insert(schema.executions), rows)
    with store._writing.begin() as connection:
        connection.execute(text(analyze))


def plan(store: SqlStore, statement: Statement, values: dict[str, Any]) -> str:
    """As the database tells it: its last column, line by line. With rows as they are really given to it."""
    explain, given = EXPLAIN[store._dialect.name], {**values, "clock": 0}
    with store._writing.begin() as connection:
        if not (statement.rows and store._dialect.takes_values):
            told = connection.execute(text(explain + statement.render(store._dialect)), given)
        else:
            rows = [row[: len(statement.rows)] for row in json.loads(values["rows"])]
            ((size, part),) = in_values(rows)
            prepared = statement.for_driver(store._dialect, connection.dialect, size)
            parameters = prepared.parameters(given, part)
            told = connection.exec_driver_sql(explain + prepared.sql, tuple(parameters))
        return "\n".join(str(row[-1]) for row in told)


def reads_all(back_end: str, told: str) -> bool:
    if back_end == "mysql":
        found = [table for table in tables(json.loads(told)) if table.get("table_name") == "t"]
        return any(table["access_type"] in {"ALL", "index"} for table in found)
    return any(sign in told for sign in _WHOLE[back_end])


def tables(part: object) -> list[dict[str, Any]]:
    """Every table of MySQL's plan, however deep it lies."""
    if isinstance(part, list):
        return [found for each in part for found in tables(each)]
    if not isinstance(part, dict):
        return []
    own = [part["table"]] if isinstance(part.get("table"), dict) else []
    return own + [found for each in part.values() for found in tables(each)]


async def test_no_hot_statement_reads_a_whole_table(world: World, store: SqlStore, back_end: str) -> None:
    fill(store, [(await world.job()).id for _ in range(20)])
    plans = {name: plan(store, statement, values) for name, (statement, values) in STATEMENTS.items()}
    assert [name for name, told in plans.items() if reads_all(back_end, told)] == []


async def test_the_plans_would_show_it(world: World, store: SqlStore, back_end: str) -> None:
    fill(store, [(await world.job()).id])
    whole = Statement("SELECT t.* FROM executions t WHERE t.attempt > 5")
    assert reads_all(back_end, plan(store, whole, {}))
