"""What is to be shown outside: a row with each change, removed once it is shown. None is passed over, however late it commits."""

from collections.abc import Sequence

from sqlalchemy import func, select

from ksana.domain.clock import from_micros
from ksana.domain.errors import KsanaError
from ksana.domain.events import EventType
from ksana.store.plan_requests import OutboxRow
from ksana.store.sql import schema
from ksana.store.sql.rows import Statement, columns, insert_rows
from ksana.store.sql.tx import Tx

_ADD = insert_rows("outbox", columns(at="int", type="text", plan_id="int", task_id="int"))
_DONE = Statement(
    "DELETE FROM outbox WHERE id IN (SELECT r.id FROM {rows})",
    columns(id="int"),
)
_rows = schema.outbox.c


def add(tx: Tx, at: int, happened: Sequence[tuple[EventType, int, int | None]]) -> None:
    """Each with its plan, and its task unless it is about the plan."""
    if happened:
        tx.run(_ADD, [(at, kind, plan_id, task_id) for kind, plan_id, task_id in happened])


def read(tx: Tx, limit: int) -> list[OutboxRow]:
    """The oldest, in order."""
    found = tx.core(select(schema.outbox).order_by(_rows.id).limit(limit))
    return [OutboxRow(row.id, from_micros(row.at), row.type, row.plan_id, row.task_id) for row in found]


def done(tx: Tx, batches: list[tuple[int, ...]]) -> list[int | KsanaError]:
    return [tx.changed(_DONE, [(each,) for each in sorted(batch)]) for batch in batches]


def oldest(tx: Tx) -> int | None:
    found = tx.core(select(func.min(_rows.at)))
    return None if found[0][0] is None else int(found[0][0])
