"""SQL with many rows in one parameter.

A batch is one statement whatever its size: its rows travel as one JSON array of arrays, which every database can turn into
a table. `Statement` is written once; `{rows}` and the few other marks become what each dialect needs, once per dialect.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import TextClause, text

from ksana.domain.errors import InvalidInput
from ksana.store.sql.dialects.base import Dialect

MAX_CHUNK_BYTES = 4_000_000
"""MySQL's default packet limit is 16 MB; a row more than this large travels alone."""

MAX_ROW_BYTES = 7_000_000
"""Half of what MySQL takes in one packet by default, since every quote in it is escaped; more is refused, not tried."""

MAX_TEXT_LENGTH = 16_000
"""Characters of at most four bytes each."""


def columns(**types: str) -> tuple[tuple[str, str], ...]:
    """The columns of a row set, in order: `int`, `text`, or `key` for text that an index is searched with."""
    return tuple(types.items())


@dataclass(frozen=True)
class Statement:
    """`template` may use {rows} (as the table `r`) and the dialect's marks ({join}, {for_update}, …)."""

    template: str | Callable[[Dialect, str], str]
    rows: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rendered", {})

    def for_dialect(self, dialect: Dialect) -> TextClause:
        rendered: dict[str, TextClause] = self.__dict__["_rendered"]
        if dialect.name not in rendered:
            rendered[dialect.name] = text(self._render(dialect))
        return rendered[dialect.name]

    def _render(self, dialect: Dialect) -> str:
        table = dialect.rows_table(self.rows) if self.rows else ""
        if callable(self.template):
            return self.template(dialect, table)
        return self.template.format(rows=table, **dialect.marks)


def update_by_id(table: str, rows: tuple[tuple[str, str], ...], **assignments: str) -> Statement:
    """Sets columns of the rows with `r.id`, which the transaction has locked before: the fence is where they were locked.

    A value is an SQL expression in which columns are written `t.x` (as stored) or `r.x` (as given).
    """
    return Statement(lambda dialect, source: dialect.update_joined(table, assignments, source), rows)


def update_by(on: str, table: str, rows: tuple[tuple[str, str], ...], **assignments: str) -> Statement:
    """As `update_by_id`, of a table with another key: `on` compares it."""
    return Statement(lambda dialect, source: dialect.update_joined(table, assignments, source, on), rows)


LATER = "CASE WHEN t.updated_at < :at THEN :at ELSE t.updated_at + 1 END"
"""For an `updated_at` that others compare: it grows with every change, also when the clock goes back."""


def insert_rows(table: str, rows: tuple[tuple[str, str], ...]) -> Statement:
    names = ", ".join(name for name, _ in rows)
    values = ", ".join(f"r.{name}" for name, _ in rows)
    return Statement(f"INSERT INTO {table} ({names}) SELECT {values} FROM {{rows}}", rows)


def chunks(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[str, int]]:
    """The rows as JSON arrays of at most MAX_CHUNK_BYTES, each with the number of its rows."""
    parts: list[bytes] = []
    size = 0
    for row in rows:
        part = fitting_row(orjson.dumps(row))
        if parts and size + len(part) > MAX_CHUNK_BYTES:
            yield _joined(parts), len(parts)
            parts, size = [], 0
        parts.append(part)
        size += len(part)
    if parts:
        yield _joined(parts), len(parts)


def fitting_row(part: bytes) -> bytes:
    """InvalidInput if no database should be asked to take it."""
    if len(part) > MAX_ROW_BYTES:
        raise InvalidInput("json", f"is too large to be kept: {len(part)} bytes, and at most {MAX_ROW_BYTES} are")
    return part


def _joined(parts: list[bytes]) -> str:
    return (b"[" + b",".join(parts) + b"]").decode()


def storable(value: str | None) -> str | None:
    """Text that every database takes: NUL and lone surrogates, which PostgreSQL and JSON refuse, become U+FFFD."""
    if value is None:
        return None
    if value.isascii() and "\0" not in value:
        return value
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def brief(value: str | None) -> str | None:
    """Text for people, cut to what a TEXT of 64 KB holds on MySQL: of what is longer, MariaDB keeps a wrong part, in silence."""
    text_ = storable(value)
    return text_ if text_ is None else text_[:MAX_TEXT_LENGTH]


def to_json(value: Any) -> str | None:
    """JSON text for a column; None stays NULL."""
    if value is None:
        return None
    try:
        return storable(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode())
    except TypeError as error:
        raise InvalidInput("json", f"cannot be kept: {error}") from error
