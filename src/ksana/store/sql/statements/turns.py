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
    "SELECT {share} AS share, t.id, t.ready_at FROM executions t {by_share}"
    " WHERE t.worker_queue = :queue AND {share} > :after AND t.ready_at IS NOT NULL"
    " ORDER BY {share}, t.ready_at, t.id LIMIT :block"
)
BLOCK = 64
"""Rows that are read at a time where each step is a statement: shares with little ready take one step together."""
MUCH = 4
"""Where so many of a block are of one share, or more, the first of each are looked for one by one."""
WALKS = (8, 16, 32, 64)
"""How many shares are looked for by one message."""


def _step(number: int) -> str:
    after = ":after" if number == 1 else f"@share{number - 1}"
    return (
        f"SELECT {{share}}, t.id, t.ready_at INTO @share{number}, @id{number}, @ready{number} FROM executions t {{by_share}}"
        f" WHERE t.worker_queue = :queue AND {{share}} > {after} AND t.ready_at IS NOT NULL"
        " ORDER BY {share}, t.ready_at, t.id LIMIT 1"
    )


def _walk(steps: int) -> Statement:
    """From one share to the next, so many times; where each is told by variables, since no statement goes by an index from what
    another row of it has."""
    forgotten = ", ".join(f"@share{step} = NULL, @id{step} = NULL, @ready{step} = NULL" for step in range(1, steps + 1))
    return Statement(";\n".join([f"SET {forgotten}", *(_step(step) for step in range(1, steps + 1))]))


def _walked(steps: int) -> Statement:
    """What a walk has found."""
    return Statement("SELECT " + ", ".join(f"@share{step}, @id{step}, @ready{step}" for step in range(1, steps + 1)))


_WALKS = {steps: (_walk(steps), _walked(steps)) for steps in WALKS}


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
    found: list[_First] = []
    much = False
    while len(found) < most:
        if much:
            steps = next((each for each in WALKS if each >= most - len(found)), WALKS[-1])
            firsts = _follow(tx, queue, after, steps)
            more, much = len(firsts) == steps, False
        else:
            rows = tx.query(_FROM_SHARE, queue=queue, after=after, block=BLOCK)
            firsts = [next(each) for _, each in groupby(map(_First._make, rows), key=lambda each: each.share)]
            more, much = len(rows) == BLOCK, MUCH * len(firsts) <= BLOCK
        found += firsts
        if not more:
            break
        after = firsts[-1].share
    return [Head(each.share, each.id if each.ready_at <= now else None) for each in found[:most]]


class _First(NamedTuple):
    """The first that will be ready of a share."""

    share: str
    id: int
    ready_at: int


def _follow(tx: Tx, queue: str, after: str, steps: int) -> list[_First]:
    """The first of each of the next shares; fewer than `steps`: there are no more."""
    walk, walked = _WALKS[steps]
    tx.run(walk, queue=queue, after=after)
    [row] = tx.query(walked)
    firsts = (_First(*row[place : place + 3]) for place in range(0, 3 * steps, 3))
    return list(takewhile(lambda each: each.share is not None, firsts))
