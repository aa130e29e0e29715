"""Steps that can be taken again: a migration that was killed half-way goes on where it stopped (MySQL commits each one)."""

from typing import Any

import sqlalchemy as sa
from alembic import op


def create_table(name: str, *parts: Any, integer_id: bool = True) -> None:
    """The table with our options, unless it is there already."""
    if sa.inspect(op.get_bind()).has_table(name):
        return
    op.create_table(
        name,
        *parts,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        sqlite_autoincrement=integer_id,
    )


def create_index(name: str, table: str, *columns: str, sparse_by: str | None = None) -> None:
    """The index, unless it is there already; `sparse_by`: only rows in which that is not NULL, where this can be had."""
    if any(index["name"] == name for index in sa.inspect(op.get_bind()).get_indexes(table)):
        return
    condition = sa.text(f"{sparse_by} IS NOT NULL") if sparse_by else None
    op.create_index(name, table, list(columns), sqlite_where=condition, postgresql_where=condition)


def add_column(table: str, column: "sa.Column[Any]") -> None:
    """The column, unless it is there already."""
    if column.name not in column_names(table):
        op.add_column(table, column)


def drop_index(name: str, table: str) -> None:
    """No such index, from now on."""
    if any(index["name"] == name for index in sa.inspect(op.get_bind()).get_indexes(table)):
        op.drop_index(name, table)


def drop_table(name: str) -> None:
    """No such table, from now on."""
    if sa.inspect(op.get_bind()).has_table(name):
        op.drop_table(name)


def column_names(table: str) -> set[str]:
    return {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}
