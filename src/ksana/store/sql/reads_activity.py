"""Runs of jobs and of workflows in one list, by age or by length.

By age, each kind is a stream that follows an index from its newest run down; the two are merged by when their next runs were
made. A page ends where each stream has come to, so that the next one goes on there, however deep that is. Where a question has
parts that no index knows, a stream looks at LOOKED_AT rows and ends the page there, with what it has found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Row

from ksana.store.activity_requests import (
    LOOKED_AT,
    ActivityFilter,
    ActivityPage,
    ActivityRequest,
    LengthAfter,
    NewestAfter,
    RunKind,
    Sort,
)
from ksana.store.requests import MAX_PAGED_ROWS, PageRequest
from ksana.store.sql.activity_streams import Bounded, Key, Stream, bounded, stream_of
from ksana.store.sql.dialects.base import Dialect
from ksana.store.sql.paging import Listing, counted, ordering, rows_of, together
from ksana.store.sql.reads_runs import TASK, WORKFLOW, Values, these
from ksana.store.sql.rows import Statement
from ksana.store.sql.tx import Tx

KINDS = {RunKind.JOB: TASK, RunKind.WORKFLOW: WORKFLOW}
_KINDS = {number: kind for kind, number in KINDS.items()}
_BEFORE_ALL: Key = (0, 0)


def activity(tx: Tx, filters: ActivityFilter, request: ActivityRequest) -> ActivityPage:
    streams = [stream_of(tx, filters, kind) for kind in RunKind if filters.of_kind(kind)]
    if not streams:
        return ActivityPage([], None, 0, total_is_exact=True)
    if request.sort is Sort.NEWEST:
        return _by_age(tx, streams, request)
    return _by_length(tx, streams, request)


def _total(tx: Tx, parts: Sequence[Bounded], request: ActivityRequest, found: int) -> tuple[int | None, bool]:
    """How many there are, and whether that is all; of later pages it is not asked."""
    if request.after is not None:
        return None, False
    values: Values = {}
    for part in parts:
        values |= part.stream.values
    listings = tuple(part.stream.listing() for part in parts)
    total = counted(tx, listings, PageRequest(size=request.size), found, values)
    return total, total < MAX_PAGED_ROWS and all(part.floor is None for part in parts)


# By age ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Flow:
    """A stream on one page."""

    kind: RunKind
    rows: list[Row[Any]]
    floor: Key | None
    stream: Stream
    last: Key | None
    """Where it stands; None: before its first run."""
    taken: int = 0

    @property
    def head(self) -> Row[Any] | None:
        return self.rows[self.taken] if self.taken < len(self.rows) else None

    @property
    def cut(self) -> bool:
        """Whether nobody knows what comes next."""
        return self.head is None and self.floor is not None

    def take(self) -> tuple[int, int]:
        row = self.rows[self.taken]
        self.taken += 1
        self.last = self.stream.key(row)
        return KINDS[self.kind], row.id

    def standing(self) -> Key | None:
        """Where the next page goes on; `_BEFORE_ALL`: nowhere."""
        if self.head is not None:
            return self.last
        return _BEFORE_ALL if self.floor is None else self.floor


def _by_age(tx: Tx, streams: Sequence[Stream], request: ActivityRequest) -> ActivityPage:
    after = request.after if isinstance(request.after, NewestAfter) else NewestAfter()
    stands = {RunKind.JOB: _key(after.job, after.planned_for), RunKind.WORKFLOW: _key(after.workflow, None)}
    flows: list[Flow] = []
    parts: list[Bounded] = []
    for stream in streams:
        stand = stands[stream.kind]
        if stand == _BEFORE_ALL:
            continue
        part = bounded(tx, stream if stand is None else stream.below(stand))
        rows = rows_of(tx, part.stream.listing(), request.size + 1, part.stream.values)
        flows.append(Flow(stream.kind, rows, part.floor, stream, stand))
        parts.append(part)
    keys = _merged(flows, request.size)
    total, exact = _total(tx, parts, request, sum(len(flow.rows) for flow in flows))
    return ActivityPage(these(tx, keys), _next(flows), total, exact)


def _key(run_id: int | None, instant: int | None) -> Key | None:
    return None if run_id is None else (instant or 0, run_id)


def _merged(flows: Sequence[Flow], size: int) -> list[tuple[int, int]]:
    """The newest of them, as far as it is known which those are."""
    keys: list[tuple[int, int]] = []
    while len(keys) < size and not any(flow.cut for flow in flows):
        heads = [(flow.head.created_at, flow) for flow in flows if flow.head is not None]
        if not heads:
            break
        keys.append(max(heads, key=lambda each: each[0])[1].take())
    return keys


def _next(flows: Sequence[Flow]) -> NewestAfter | None:
    stands = {flow.kind: flow.standing() for flow in flows}
    if all(stand == _BEFORE_ALL for stand in stands.values()):
        return None
    job, workflow = (stands.get(kind, _BEFORE_ALL) for kind in (RunKind.JOB, RunKind.WORKFLOW))
    return NewestAfter(
        None if job is None else job[1],
        None if workflow is None else workflow[1],
        None if job is None or not job[0] else job[0],
    )


# By length ------------------------------------------------------------------------------------------------------------


def _by_length(tx: Tx, streams: Sequence[Stream], request: ActivityRequest) -> ActivityPage:
    """Of the newest LOOKED_AT, also by length of what still runs: so far."""
    after = request.after if isinstance(request.after, LengthAfter) else None
    longest = request.sort is Sort.LONGEST
    parts = [bounded(tx, stream) for stream in streams]
    values: Values = {"at": tx.clock, "unstarted": -1 if longest else 2**62}
    if after is not None:
        values |= {"at": after.at, "took": after.took, "kind": KINDS[after.kind], "last": after.id}
    for part in parts:
        values |= part.stream.values
    asked = tuple((KINDS[part.stream.kind], part.stream.listing()) for part in parts)
    rows = tx.query(_lengths(asked, longest=longest, later=after is not None), size=request.size + 1, **values)
    total, exact = _total(tx, parts, request, len(rows))
    page = rows[: request.size]
    last = page[-1] if len(rows) > len(page) else None
    following = None if last is None else LengthAfter(values["at"], last.took, _KINDS[last.kind], last.id)
    return ActivityPage(these(tx, [(row.kind, row.id) for row in page]), following, total, exact)


@lru_cache(maxsize=256)
def _lengths(parts: tuple[tuple[int, Listing], ...], *, longest: bool, later: bool) -> Statement:
    took = "coalesce(coalesce(t.ended_at, :at) - t.started_at, :unstarted) AS took"
    further = f"w.took {'<' if longest else '>'} :took"
    tied = "w.took = :took AND (w.kind > :kind OR (w.kind = :kind AND w.id < :last))"
    where = f" WHERE ({further} OR ({tied}))" if later else ""

    def written(dialect: Dialect, _: str) -> str:
        branches: list[str] = []
        for kind, listing in parts:
            rest = f"{listing.ordered(dialect)} LIMIT {LOOKED_AT}"
            branches += listing.branches(dialect, f"{kind} AS kind, t.id, t.created_at, {took}", rest)
        newest = ordering("u", ("created_at DESC", "kind", "id DESC"))
        window = f"SELECT u.* FROM {together(branches)}{newest} LIMIT {LOOKED_AT}"
        order = ordering("w", ("took DESC" if longest else "took", "kind", "id DESC"))
        return f"SELECT w.kind, w.id, w.took FROM ({window}) w{where}{order} LIMIT :size"

    return Statement(written)
