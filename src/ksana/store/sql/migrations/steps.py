"""Steps that can be taken again: a migration that was killed half-way goes on where it stopped, as each is committed by itself.

None shuts others out for longer than a moment, however large the table: see `turns.py`.
"""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.ddl.base import AddColumn
from sqlalchemy.exc import DBAPIError

from ksana.store.sql.migrations.turns import beside, in_turn

_REFUSED = {1800, 1845, 1846}
"""MySQL: it knows no such algorithm, or cannot do this with it."""


def create_table(name: str, *parts: Any, integer_id: bool = True) -> None:
    """The table with our options, unless it is there already."""
    if sa.inspect(op.get_bind()).has_table(name):
        return
    in_turn(
        op.get_bind(),
        name,
        lambda: op.create_table(
            name,
            *parts,
            mysql_engine="InnoDB",
            mysql_charset="utf8mb4",
            mysql_collate="utf8mb4_bin",
            sqlite_autoincrement=integer_id,
        ),
    )


def create_index(name: str, table: str, *columns: str, sparse_by: str | None = None) -> None:
    """The index, unless it is there already; `sparse_by`: only rows in which that is not NULL, where this can be had."""
    if _on("postgresql"):
        _drop_unfinished(name, table)
    if _has_index(name, table):
        return
    if _on("mysql", "mariadb"):
        _alter(table, f"ADD INDEX {name} ({', '.join(columns)})", "ALGORITHM=INPLACE, LOCK=NONE")
        return
    condition = sa.text(f"{sparse_by} IS NOT NULL") if sparse_by else None
    concurrently = _on("postgresql") and _has_pages(table)

    def create() -> None:
        op.create_index(
            name,
            table,
            list(columns),
            sqlite_where=condition,
            postgresql_where=condition,
            postgresql_concurrently=concurrently,
        )

    (beside if concurrently else in_turn)(op.get_bind(), table, create)


def make_sparse(name: str, table: str, *columns: str, by: str) -> None:
    """The index keeps only rows in which `by` is not NULL from now on, where this can be had. Nobody is without it meanwhile."""
    _remake(_Wanted(name, table, columns, by), f"{name}_sparse")


def reorder(name: str, table: str, *columns: str, sparse_by: str) -> None:
    """The index has its columns in this order from now on. Nobody is without it meanwhile."""
    _remake(_Wanted(name, table, columns, sparse_by), f"{name}_reordered")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An index as it is to be."""

    name: str
    table: str
    columns: tuple[str, ...]
    sparse_by: str

    def create(self, name: str) -> None:
        create_index(name, self.table, *self.columns, sparse_by=self.sparse_by)


def _remake(index: _Wanted, interim: str) -> None:
    if _is_as(index):
        return
    if _on("mysql", "mariadb"):
        dropped = [f"DROP INDEX {index.name}"] if _has_index(index.name, index.table) else []
        added = f"ADD INDEX {index.name} ({', '.join(index.columns)})"
        _alter(index.table, ", ".join([*dropped, added]), "ALGORITHM=INPLACE, LOCK=NONE")
        return
    if _on("sqlite"):  # nobody else has the file, and no index can be given another name
        drop_index(index.name, index.table)
        index.create(index.name)
        return
    index.create(interim)

    def replace() -> None:
        op.drop_index(index.name, index.table, if_exists=True)
        op.execute(f"ALTER INDEX {interim} RENAME TO {index.name}")

    in_turn(op.get_bind(), index.table, replace)


def add_column(table: str, *columns: "sa.Column[Any]") -> None:
    """The columns, unless they are there already; all at once, as each time counts for those who use the table."""
    known = column_names(table)
    missing = [column for column in columns if column.name not in known]
    if not missing:
        return
    if _on("mysql", "mariadb"):
        _alter(table, ", ".join(_added(table, column) for column in missing), "ALGORITHM=INSTANT")
        return
    in_turn(op.get_bind(), table, lambda: _add(table, missing))


def _add(table: str, columns: "list[sa.Column[Any]]") -> None:
    for column in columns:
        op.add_column(table, column)


def drop_index(name: str, table: str) -> None:
    """No such index, from now on."""
    if _has_index(name, table):
        in_turn(op.get_bind(), table, lambda: op.drop_index(name, table))


def drop_table(name: str) -> None:
    """No such table, from now on."""
    if sa.inspect(op.get_bind()).has_table(name):
        in_turn(op.get_bind(), name, lambda: op.drop_table(name))


def column_names(table: str) -> set[str]:
    """None, if there is no such table."""
    inspector = sa.inspect(op.get_bind())
    return {each["name"] for each in inspector.get_columns(table)} if inspector.has_table(table) else set()


def _on(*names: str) -> bool:
    return op.get_bind().dialect.name in names


def _has_index(name: str, table: str) -> bool:
    return any(index["name"] == name for index in sa.inspect(op.get_bind()).get_indexes(table))


def _is_as(wanted: _Wanted) -> bool:
    for each in sa.inspect(op.get_bind()).get_indexes(wanted.table):
        if each["name"] == wanted.name:
            sparse = any(option.endswith("_where") for option in each.get("dialect_options", {}))
            return each["column_names"] == list(wanted.columns) and (sparse or _on("mysql", "mariadb"))
    return False


def _added(table: str, column: "sa.Column[Any]") -> str:
    sa.Table(table, sa.MetaData(), column)
    statement = str(AddColumn(table, column).compile(dialect=op.get_bind().dialect))
    return statement.removeprefix(f"ALTER TABLE {table} ")


def _alter(table: str, change: str, how: str) -> None:
    """MySQL: in the way that lets others write; where the server cannot, in the one that it takes itself."""
    connection = op.get_bind()
    try:
        in_turn(connection, table, lambda: connection.execute(sa.text(f"ALTER TABLE {table} {change}, {how}")))
    except DBAPIError as error:
        if error.orig is None or error.orig.args[0] not in _REFUSED:
            raise
        in_turn(connection, table, lambda: connection.execute(sa.text(f"ALTER TABLE {table} {change}")))


def _has_pages(table: str) -> bool:
    """PostgreSQL: whether there is anything to read; for a new table, to wait for all transactions is not worth it."""
    size = op.get_bind().execute(sa.text("SELECT pg_relation_size(to_regclass(:table))"), {"table": table})
    return bool(size.scalar_one())


def _drop_unfinished(name: str, table: str) -> None:
    """PostgreSQL: what is left of an index whose making was interrupted. It is written to, but never read."""
    connection = op.get_bind()
    query = (
        "SELECT CAST(CAST(i.indexrelid AS regclass) AS text) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = to_regclass(:table) AND c.relname = :name AND NOT i.indisvalid"
    )
    found = connection.execute(sa.text(query), {"table": table, "name": name}).scalar_one_or_none()
    if found is not None:
        beside(connection, table, lambda: connection.execute(sa.text(f"DROP INDEX CONCURRENTLY {found}")))
