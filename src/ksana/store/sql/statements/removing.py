"""Removing rows for good."""

from sqlalchemy import ColumnElement, Table, delete

from ksana.store.sql import schema
from ksana.store.sql.tx import Tx


def remove(tx: Tx, table: Table, *conditions: ColumnElement[bool]) -> int:
    """How many there were."""
    return tx.core_run(delete(table).where(*conditions))


def remove_told_of(tx: Tx, execution_ids: list[int]) -> None:
    """What is kept beside executions."""
    for table in (schema.attempts, schema.callbacks, schema.callback_tokens, schema.execution_logs):
        remove(tx, table, table.c.execution_id.in_(execution_ids))
