"""SQL with many rows in one parameter.

A batch is one statement whatever its size: its rows travel as one JSON array of arrays, which every database can turn into
a table. Where that costs nothing, since there is no server to send them to (SQLite), they travel as values instead.
`Statement` is written once; `{rows}` and the few other marks become what each dialect needs, once per dialect.
"""

import re
from bisect import bisect_left
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, repeat
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.engine.interfaces import Dialect as Driver

from ksana.domain.errors import InvalidInput
from ksana.store.sql.dialects.base import Dialect

MAX_CHUNK_BYTES = 4_000_000
"""MySQL's default packet limit is 16 MB; a row more than this large travels alone."""

MAX_ROW_BYTES = 7_000_000
"""Half of what MySQL takes in one packet by default, since every quote in it is escaped; more is refused, not tried."""

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""How many rows a statement with values has room for: few, so that each is prepared once. What is left of the room is NULL."""

MOST_LISTED_CHARACTERS = 64_000
"""Characters of rows that are parameters of their own."""

MOST_VARIABLES = 2_048
"""How many values such a statement has at the most."""

MAX_TEXT_LENGTH = 16_000
"""Characters of at most four bytes each."""


_OF_ROWS = frozenset({"rows", "size"})
_OF_EXECUTIONS = re.compile(r"\bexecutions\b")
_KNOWN = re.compile(r"\b(executions|workflow_runs)\b")
"""Tables of which rows are known without being asked for."""
_ADDS_AT_MOST = frozenset({"SELECT", "WITH", "INSERT"})


def columns(**types: str) -> tuple[tuple[str, str], ...]:
    """The columns of a row set, in order: `int`, `text`, or `key` for text that an index is searched with."""
    return tuple(types.items())


@dataclass(frozen=True)
class Statement:
    """`template` may use {rows} (as the table `r`) and the dialect's marks ({join}, {for_update}, …)."""

    template: str | Callable[[Dialect, str], str]
    rows: tuple[tuple[str, str], ...] = ()
    listed: "Callable[[Dialect, int], str | None] | None" = None
    """The same for so many rows whose values are parameters of their own, where the dialect has it."""
    many: bool = False
    """It often answers with many rows, and little in each: where each row by itself would be dear, they come as one text."""
    apart: bool = False
    """Whoever asks it sees to what is held back by himself."""
    keeps: bool = False
    """Whoever has it done says what that means for what is known of running executions and workflow runs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prepared", {})
        object.__setattr__(self, "_compiled", {})
        object.__setattr__(self, "_at_once", {})

    def at_once(self, dialect: Dialect, driver: Driver, count: int) -> "Prepared | None":
        """As the driver takes it if so many rows go with it as they are: nearly always. None if they have to be looked at first."""
        known: dict[tuple[str, int], Prepared] = self.__dict__["_at_once"]
        found = known.get((dialect.name, count))
        if found is None and (found := self._for_count(dialect, driver, count)) is not None:
            known[dialect.name, count] = found
        return found

    def _for_count(self, dialect: Dialect, driver: Driver, count: int) -> "Prepared | None":
        if not self.rows:
            return self.for_driver(dialect, driver)
        if not dialect.takes_values or not 0 < count <= most_in_values(len(self.rows)):
            return None
        if count == 1 and self.listed is not None and (sql := self.listed(dialect, 1)) is not None:
            names = tuple(f"{name}_0" for name, _ in self.rows)
            return Prepared(*_compiled(sql, driver), of_one_row=names)
        return self.for_driver(dialect, driver, SIZES[bisect_left(SIZES, count)])

    def for_driver(self, dialect: Dialect, driver: Driver, size: int = 0) -> "Prepared":
        """As the driver takes it; worked out once. `size`: its rows are values, with room for so many."""
        known: dict[tuple[str, int], Prepared] = self.__dict__["_prepared"]
        found = known.get((dialect.name, size))
        if found is None:
            compiled = self._in_words_of(dialect, driver, in_values=size > 0)
            found = known[dialect.name, size] = Prepared(*compiled, size=size, width=len(self.rows))
        return found

    def _in_words_of(self, dialect: Dialect, driver: Driver, *, in_values: bool) -> tuple[str, tuple[str, ...] | None]:
        """Its SQL, and its parameters in order if they have no names. The same for all sizes, and dear: worked out once."""
        known: dict[tuple[str, bool], tuple[str, tuple[str, ...] | None]] = self.__dict__["_compiled"]
        found = known.get((dialect.name, in_values))
        if found is None:
            found = known[dialect.name, in_values] = _compiled(self.render(dialect, size=int(in_values)), driver)
        return found

    def for_few(self, dialect: Dialect, driver: Driver, rows: Sequence[Sequence[Any]]) -> "Prepared | None":
        """With room for these rows as parameters of their own; None if it is better asked in another way."""
        if self.listed is None or not rows or _size(rows) > MOST_LISTED_CHARACTERS:
            return None
        known: dict[tuple[str, int], Prepared] = self.__dict__["_prepared"]
        found = known.get((dialect.name, -len(rows)))
        if found is None and (sql := self.listed(dialect, len(rows))) is not None:
            found = known[dialect.name, -len(rows)] = Prepared(_compiled(sql, driver)[0], None)
        return found

    def in_list(self, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The parameters of these rows."""
        names = [name for name, _ in self.rows]
        return {
            f"{name}_{place}": value for place, row in enumerate(rows) for name, value in zip(names, row, strict=True)
        }

    def render(self, dialect: Dialect, size: int = 0) -> str:
        """In the dialect's SQL, with its parameters as `:name`."""
        table = ""
        if self.rows:
            table = dialect.values_table(self.rows) if size else dialect.rows_table(self.rows)
        if callable(self.template):
            return self.template(dialect, table)
        return self.template.format(rows=table, **dialect.marks)


def _compiled(sql: str, driver: Driver) -> tuple[str, tuple[str, ...] | None]:
    """In the driver's words, and its parameters in order if they have no names there."""
    compiled = text(sql).compile(dialect=driver)
    positions: Sequence[str] | None = getattr(compiled, "positiontup", None)
    return str(compiled), None if positions is None else tuple(positions)


class Prepared:
    """A statement in the words of one driver, to be handed to it without any further work.

    `positions`: its parameters in order, where they have no names. Among them, with `size`, room for so many rows of `width`
    values; or `of_one_row`, the values of the one row that goes with it.
    """

    def __init__(
        self,
        sql: str,
        positions: tuple[str, ...] | None,
        *,
        size: int = 0,
        width: int = 0,
        of_one_row: tuple[str, ...] = (),
    ) -> None:
        self._size, self._width = size, width
        self.sql = sql
        if size:
            row = f"({', '.join(['?'] * width)})"
            self.sql = self.sql.replace("(VALUES ?)", f"(VALUES {', '.join([row] * size)})", 1)
        self._positions = positions
        places = {name: place for place, name in enumerate(of_one_row)}
        self._from_row = tuple((places.get(name, -1), name) for name in positions or ()) if of_one_row else ()
        self.of_executions = bool(_OF_EXECUTIONS.search(self.sql))
        """Whether it may see, or write, what is held back."""
        self.changes = self.sql.split(maxsplit=1)[0] not in _ADDS_AT_MOST and bool(_KNOWN.search(self.sql))
        """Whether it may make what is known of executions or workflow runs untrue. To add some does not."""
        self._any_columns = "*" in self.sql
        # Together, since several threads may come here for the first time at once.
        self._shape: tuple[tuple[str, ...], Callable[[Iterable[Any]], Any]] = ((), tuple)
        self.gathering = ""
        """The same question, to be answered with all rows as one JSON text; as soon as its columns are known."""

    def parameters(self, values: Mapping[str, Any], rows: Sequence[Sequence[Any]] = ()) -> Any:
        """As the driver takes them; `rows` are for a statement that has room for them."""
        if self._positions is None:
            return values
        if self._from_row:
            row = rows[0]
            return [values[name] if place < 0 else row[place] for place, name in self._from_row]
        if not self._size:
            return [values[name] for name in self._positions]
        given: list[Any] = []
        for name in self._positions:
            if name not in _OF_ROWS:
                given.append(values[name])
            elif name == "size":
                given.append(len(rows))
            else:
                given += chain.from_iterable(rows)
                given += repeat(None, self._width * (self._size - len(rows)))
        return given

    def named(self, description: Sequence[Sequence[Any]], rows: Iterable[Sequence[Any]]) -> list[Any]:
        """The rows that came back, with their columns as attributes."""
        known, make = self._shape
        if self._any_columns or not known:  # those of a table may be others in another database
            names = tuple([column[0] for column in description])
            if names != known:
                make = self._learn(names)
        return list(map(make, rows))

    def _learn(self, names: tuple[str, ...]) -> Callable[[Iterable[Any]], Any]:
        make = row_of(names)
        self._shape = names, make
        quoted = ", ".join(f'"{name}"' for name in names)
        self.gathering = f"SELECT json_group_array(json_array({quoted})) FROM ({self.sql})"
        return make

    def gathered(self, text_: str) -> list[Any]:
        """The rows that came back as one text."""
        return list(map(self._shape[1], orjson.loads(text_)))


def row_of(names: tuple[str, ...]) -> Callable[[Iterable[Any]], Any]:
    """What makes a row of its values, with these columns as attributes."""
    made: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024 - known only now
    return partial(tuple.__new__, made)  # as its _make, of which nothing is written in Python


def update_by_id(table: str, rows: tuple[tuple[str, str], ...], **assignments: str) -> Statement:
    """Sets columns of the rows with `r.id`, which the transaction has locked before: the fence is where they were locked.

    A value is an SQL expression in which columns are written `t.x` (as stored) or `r.x` (as given).
    """
    return Statement(
        lambda dialect, source: dialect.update_joined(table, assignments, source),
        rows,
        lambda dialect, count: dialect.update_listed(table, assignments, rows, count),
    )


def keeping(statement: Statement) -> Statement:
    """The same, of which whoever has it done says what it means for what is known."""
    return replace(statement, keeps=True)


def update_by(on: str, table: str, rows: tuple[tuple[str, str], ...], **assignments: str) -> Statement:
    """As `update_by_id`, of a table with another key: `on` compares it."""
    return Statement(lambda dialect, source: dialect.update_joined(table, assignments, source, on), rows)


LATER = "CASE WHEN t.updated_at < :at THEN :at ELSE t.updated_at + 1 END"
"""For an `updated_at` that others compare: it grows with every change, also when the clock goes back."""


def insert_rows(table: str, rows: tuple[tuple[str, str], ...]) -> Statement:
    names = ", ".join(name for name, _ in rows)
    values = ", ".join(f"r.{name}" for name, _ in rows)
    return Statement(
        lambda dialect, source: f"INSERT {dialect.or_fail} INTO {table} ({names}) SELECT {values} FROM {source}", rows
    )


def id_rows(ids: Iterable[int]) -> list[tuple[int]]:
    """For a row set of ids alone: each once, in order."""
    return [(row_id,) for row_id in sorted(set(ids))]


def _size(rows: Sequence[Sequence[Any]]) -> int:
    return sum(len(value) for row in rows for value in row if isinstance(value, str))


def chunks(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[str, int]]:
    """The rows as JSON arrays of at most MAX_CHUNK_BYTES, each with the number of its rows."""
    given = list(rows)
    if not given:
        return
    whole = orjson.dumps(given)
    if len(whole) <= MAX_CHUNK_BYTES:
        yield whole.decode(), len(given)
    else:
        yield from _cut(given)


@cache
def most_in_values(width: int) -> int:
    """How many rows of so many columns a statement has room for. To prepare it takes ten times as long as to run it, for each of
    its variables; and several small ones are as quick as a large one."""
    return next(size for size in reversed(SIZES) if size == 1 or size * width <= MOST_VARIABLES)


def in_values(rows: Sequence[Sequence[Any]]) -> list[tuple[int, Sequence[Sequence[Any]]]]:
    """The rows in parts that a statement with values has room for, each with the room that it takes."""
    if not rows:
        return []
    most = most_in_values(len(rows[0]))
    parts = [rows] if len(rows) <= most else [rows[start : start + most] for start in range(0, len(rows), most)]
    return [(SIZES[bisect_left(SIZES, len(part))], part) for part in parts]


def _cut(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[str, int]]:
    parts: list[bytes] = []
    size = 0
    for row in rows:
        part = fitting_row(orjson.dumps(row))
        if parts and size + len(part) > MAX_CHUNK_BYTES:
            yield _joined(parts), len(parts)
            parts, size = [], 0
        parts.append(part)
        size += len(part)
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
        # What `storable` keeps out, JSON writes as an escape (NUL) or not at all (lone surrogates).
        document = orjson.dumps(value, None, orjson.OPT_NON_STR_KEYS)
    except TypeError as error:
        raise InvalidInput("json", f"cannot be kept: {error}") from error
    return (document if len(document) <= MAX_ROW_BYTES else fitting_row(document)).decode()
