"""Lists, a page at a time. Each follows an index: what it costs depends on the page, not on how much there is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, Row

from ksana.store.requests import MAX_PAGED_ROWS, Page, PageRequest
from ksana.store.sql.dialects.base import Dialect
from ksana.store.sql.rows import Statement
from ksana.store.sql.tx import Tx

T = TypeVar("T")
REMEMBERED = 10_000_000
"""Microseconds for which a list that rows only leave with age is taken to be as long as totals go, once it has been."""
MOST_REMEMBERED = 1_024
_FULL: WeakKeyDictionary[Engine, dict[object, int]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Listing:
    """Which rows of a table (as `t`) in which order. With `states`, one branch for each: a piece of an index that is in order,
    where a list of states would be sorted or filtered."""

    table: str
    order: tuple[str, ...]
    """Columns, those that go down with ` DESC`."""
    conditions: tuple[str, ...] = ()
    states: int = 0
    columns: str = "t.*"
    """With those that it is ordered by."""
    state: str = "state"
    """How the parameters with its states begin: `state_0`, `state_1`, …"""
    index: str = ""
    """The one to follow, where there is a choice."""
    same: tuple[str, ...] = ()
    """What stands before `order` in the index, as in `order`: columns that are NULL in all rows asked for."""
    lasting: bool = False
    """Whether rows leave it only when retention removes them."""

    def branches(self, dialect: Dialect, columns: str, rest: str) -> list[str]:
        """A question for each branch."""
        table = f"{self.table} t{dialect.following(self.index) if self.index else ''}"
        states = [f"t.status = :{self.state}_{number}" for number in range(self.states)] or [""]
        wheres = [" AND ".join(filter(None, (*self.conditions, state))) for state in states]
        return [f"SELECT {columns} FROM {table}{f' WHERE {where}' if where else ''}{rest}" for where in wheres]

    def ordered(self, dialect: Dialect) -> str:
        """` ORDER BY …`, of a branch."""
        return ordering("t", self.order if dialect.sees_what_is_the_same else (*self.same, *self.order))


def ordering(table: str, columns: Iterable[str]) -> str:
    return f" ORDER BY {', '.join(f'{table}.{column}' for column in columns)}"


def state_values(states: Iterable[str], name: str = "state") -> dict[str, str]:
    """The parameters for the states of a listing."""
    return {f"{name}_{number}": str(state) for number, state in enumerate(sorted(states))}


def page_of(
    tx: Tx, listing: Listing, page: PageRequest, read: Callable[[Row[Any]], T], values: dict[str, Any]
) -> Page[T]:
    """One page. Pages by cursor, of which the conditions know, are not counted."""
    by_number = page.before_id is None
    rows = rows_of(tx, listing, page.size, values, page.offset if by_number else 0)
    total = counted(tx, (listing,), page, len(rows), values) if by_number else None
    return Page([read(row) for row in rows], total, page.page, page.size)


def rows_of(tx: Tx, listing: Listing, size: int, values: dict[str, Any], offset: int = 0) -> list[Row[Any]]:
    """So many of its rows."""
    return tx.query(_page(listing), size=size, offset=offset, reach=offset + size, **values)


def counted(tx: Tx, listings: tuple[Listing, ...], page: PageRequest, found: int, values: dict[str, Any]) -> int:
    """How many rows they have together, up to MAX_PAGED_ROWS; the end of the list tells it without counting."""
    if found < page.size and (found or page.page == 1):
        return page.offset + found
    known = _FULL.setdefault(tx.connection.engine, {})
    question = (listings, tuple(values.items()))
    if 0 < known.get(question, 0) - tx.clock <= REMEMBERED:  # a clock that goes back does not make it last
        return MAX_PAGED_ROWS
    total = min(MAX_PAGED_ROWS, int(tx.query(_total(listings), **values)[0][0]))
    if total == MAX_PAGED_ROWS and any(listing.lasting for listing in listings):
        if len(known) >= MOST_REMEMBERED:
            known.clear()
        known[question] = tx.clock + REMEMBERED
    return total


@lru_cache(maxsize=1_024)
def _page(listing: Listing) -> Statement:
    if listing.states > 1:
        return Statement(lambda dialect, _: _page_of_several(listing, dialect))
    rest = " LIMIT :size OFFSET :offset"
    return Statement(lambda dialect, _: listing.branches(dialect, listing.columns, listing.ordered(dialect) + rest)[0])


def _page_of_several(listing: Listing, dialect: Dialect) -> str:
    """Which rows it has, by what the index tells of them; then those rows."""
    keys = dict.fromkeys(("t.id", *(f"t.{column.removesuffix(' DESC')}" for column in listing.order)))
    branches = listing.branches(dialect, ", ".join(keys), f"{listing.ordered(dialect)} LIMIT :reach")
    page = f"SELECT u.id FROM {together(branches)}{ordering('u', listing.order)} LIMIT :size OFFSET :offset"
    join = f"{dialect.marks['join']} {listing.table} t ON t.id = k.id"
    return f"SELECT {listing.columns} FROM ({page}) k {join}{ordering('t', listing.order)}"


@lru_cache(maxsize=1_024)
def _total(listings: tuple[Listing, ...]) -> Statement:
    return Statement(lambda dialect, _: _counts(listings, dialect))


def _counts(listings: tuple[Listing, ...], dialect: Dialect) -> str:
    """Whether one of them has a last row that counts is known sooner than how many it has: past them it need not look."""
    most, counts, reached = MAX_PAGED_ROWS, list[str](), list[str]()
    for listing in listings:
        reached += [f"({each})" for each in listing.branches(dialect, f"{most} AS one", f" LIMIT 1 OFFSET {most - 1}")]
        counts.append(_sum_of(listing.branches(dialect, "1 AS one", f" LIMIT {most}")))
    return f"SELECT coalesce({', '.join(reached)}, {' + '.join(counts)}) AS number"


def number_of(tx: Tx, listing: Listing, values: dict[str, Any], most: int) -> int:
    """How many rows it has, by the index alone, counting no more than `most` of each state."""
    return int(tx.query(_number(listing), most=most, **values)[0][0])


@lru_cache(maxsize=64)
def _number(listing: Listing) -> Statement:
    return Statement(
        lambda dialect, _: f"SELECT {_sum_of(listing.branches(dialect, '1 AS one', ' LIMIT :most'))} AS number"
    )


def _sum_of(branches: list[str]) -> str:
    return " + ".join(f"(SELECT count(*) FROM ({branch}) c{number})" for number, branch in enumerate(branches))


def together(parts: list[str]) -> str:
    """The rows of all of these, as the table `u`."""
    every = " UNION ALL ".join(f"SELECT * FROM ({part}) p{number}" for number, part in enumerate(parts))
    return f"({every}) u"


def containing(part: str) -> str:
    """The pattern of a text with this part in it, for `LIKE … ESCAPE '/'`."""
    escaped = part.replace("/", "//").replace("%", "/%").replace("_", "/_")
    return f"%{escaped}%"
