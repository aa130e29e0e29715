"""From which id on the rows of a table were made at some instant: ids grow with time, so it is found in a few questions."""

from functools import lru_cache

from ksana.store.sql.rows import Statement
from ksana.store.sql.tx import Tx

FAN = 15
"""How many places are looked at with one question."""
NEAR = 256
"""How many ids the answer may be off: it is a bound for a list, whose rows are looked at anyway."""


def first_id(tx: Tx, table: str, at: int) -> int:
    """Rows with a lower id were made before this instant."""
    return _around(tx, table, at)[0] + 1


def last_id(tx: Tx, table: str, at: int) -> int:
    """Rows with a greater id were made at this instant or later."""
    return _around(tx, table, at)[1] - 1


def _around(tx: Tx, table: str, at: int) -> tuple[int, int]:
    """Rows up to the first id were made before, those from the second on not."""
    ends = tx.query(_ends(table))[0]
    if ends.low is None:
        return 0, 1
    low, high = ends.low - 1, ends.high + 1
    while high - low > NEAR:
        step = (high - low) // (FAN + 1)
        places = [low + step * number for number in range(1, FAN + 1)]
        made = tx.query(_made(table, FAN), **{f"place_{number}": place for number, place in enumerate(places)})[0]
        for place, moment in zip(places, made, strict=True):
            if moment is None or moment >= at:
                high = place
                break
            low = place
    return low, high


@lru_cache(maxsize=8)
def _ends(table: str) -> Statement:
    # Two questions in one: asked for both ends at once, SQLite reads the whole table.
    return Statement(f"SELECT (SELECT min(t.id) FROM {table} t) AS low, (SELECT max(t.id) FROM {table} t) AS high")


@lru_cache(maxsize=8)
def _made(table: str, places: int) -> Statement:
    """When the first row at or after each place was made. A question for each, since MariaDB finds an id that another table tells
    by reading all before it."""
    first = f"SELECT t.created_at FROM {table} t WHERE t.id >= :place_{{number}} ORDER BY t.id LIMIT 1"
    return Statement(f"SELECT {', '.join(f'({first.format(number=each)}) AS m{each}' for each in range(places))}")
