"""Shares in turn: the first that is ready of each share, from one share to the next by the index, however much is ready of each."""

from itertools import groupby, takewhile
from typing import NamedTuple

from ksana.store.sql.rows import Statement
from ksana.store.sql.tx import Tx

# Not min(): PostgreSQL, where it believes that there are few, would read them all.
_NEXT_SHARE = (
    "(SELECT {share} FROM executions t {by_share}"
    " WHERE t.worker_queue = :queue AND {share} > %s AND t.ready_at IS NOT NULL ORDER BY {share} LIMIT 1)"
)
_HEADS = Statement(
    f"WITH RECURSIVE shares (share, number) AS (SELECT {_NEXT_SHARE % ':after'}, 1"
    f" UNION ALL SELECT {_NEXT_SHARE % 's.share'}, s.number + 1 FROM shares s"
    " WHERE s.share IS NOT NULL AND s.number < :most)"
    # A span and not one value: PostgreSQL would else rather go through all that is ready, of whatever share, in order of time.
    " SELECT s.share, (SELECT t.id FROM executions t {by_share} WHERE t.worker_queue = :queue AND {share} >= s.share"
    " AND {share} <= s.share AND t.ready_at <= :now ORDER BY {share}, t.ready_at, t.id LIMIT 1) AS id FROM shares s"
    " WHERE s.share IS NOT NULL ORDER BY s.number",
    many=True,
)
_FROM_SHARE = Statement(
    "SELECT t.id, t.ready_at, {share} AS share FROM executions t {by_share}"
    " WHERE t.worker_queue = :queue AND {share} > :after AND t.ready_at IS NOT NULL"
    " ORDER BY {share}, t.ready_at, t.id LIMIT :block"
)
BLOCK = 64
"""Rows that are read at a time where each step is a statement: shares with little ready take one step together."""


class Head(NamedTuple):
    share: str
    id: int | None
    """The first of it that is ready; None if none is yet."""


class Turns:
    """The shares in turn, each once: from the one after `after` to the last, then from the first on. (Which comes first is the
    database's to say: its order of texts may be another than ours.)"""

    def __init__(self, tx: Tx, queue: str, after: str, now: int) -> None:
        self._tx, self._queue, self._after, self._now = tx, queue, after, now
        self._visited: set[str] = set()
        self._has_turned = not after

    def following(self, most: int) -> list[Head]:
        """The next ones. Fewer than `most`: there are no more."""
        found = self._on(most)
        if len(found) < most and not self._has_turned:
            self._has_turned, self._after = True, ""
            found += self._on(most - len(found))
        return found

    def _on(self, most: int) -> list[Head]:
        found = heads(self._tx, self._queue, self._after, most, self._now)
        mine = list(takewhile(lambda each: each.share not in self._visited, found))
        self._visited.update(each.share for each in mine)
        self._after = mine[-1].share if mine else self._after
        return mine


def heads(tx: Tx, queue: str, after: str, most: int, now: int) -> list[Head]:
    """Of the shares that follow `after`, in order. Fewer than `most`: there are no more."""
    if tx.dialect.seeks_shares:
        return [Head(row.share, row.id) for row in tx.query(_HEADS, queue=queue, after=after, most=most, now=now)]
    return _stepped(tx, queue, after, most, now)


def _stepped(tx: Tx, queue: str, after: str, most: int, now: int) -> list[Head]:
    found: list[Head] = []
    while len(found) < most:
        rows = tx.query(_FROM_SHARE, queue=queue, after=after, block=BLOCK)
        firsts = [next(each) for _, each in groupby(rows, key=lambda row: row.share)]
        found += [Head(row.share, row.id if row.ready_at <= now else None) for row in firsts]
        if len(rows) < BLOCK:
            break
        after = firsts[-1].share
    return found[:most]
