"""Runs of one kind as a list follows them: by an index, from the newest down, as far as it looks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import to_micros
from ksana.store.activity_requests import LOOKED_AT, ActivityFilter, RunKind
from ksana.store.requests import ExecutionFilter
from ksana.store.sql.dialects.base import Dialect
from ksana.store.sql.paging import Listing, together
from ksana.store.sql.reads_runs import Values, of_executions, of_workflow_runs
from ksana.store.sql.rows import Statement
from ksana.store.sql.since import first_id, last_id
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import RunFilter

CLOCKS_DIFFER = timedelta(minutes=5) // timedelta(microseconds=1)
"""How far the clocks of two instances may be apart: ids grow with time only so exactly."""
LATEST = timedelta(days=7) // timedelta(microseconds=1)
"""Of one job's runs, which are in the order of what they are for: how long after that one may have been made."""
_KEYS = "t.id, t.created_at, t.planned_for"
_NO_NODE = "coalesce(t.workflow_run_id, 0) = 0"
"""A job's index has its nodes as well, and they are passed over: said so that no database takes the index of nodes for it."""
Key = tuple[int, int]
"""Where a run stands in its stream: the instant that it is for, where that is the order, else 0; and its id."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The runs of one kind that are asked for."""

    kind: RunKind
    base: Listing
    """By what its index knows."""
    given: Values
    narrower: tuple[str, ...] = ()
    """Conditions that no index knows."""
    top: Key | None = None
    """What comes after this one."""
    bottom: Key | None = None
    """What comes before this one, and it."""

    @property
    def by_instant(self) -> bool:
        return self.base.order[0] == "planned_for DESC"

    def key(self, row: Row[Any]) -> Key:
        return (row.planned_for if self.by_instant else 0, row.id)

    def below(self, key: Key) -> "Stream":
        return replace(self, top=key if self.top is None else min(self.top, key))

    def down_to(self, key: Key) -> "Stream":
        return replace(self, bottom=key if self.bottom is None else max(self.bottom, key))

    def listing(self, *, narrowed: bool = True) -> Listing:
        more = self.narrower if narrowed else ()
        return replace(self.base, conditions=(*self.base.conditions, *self._bounds(), *more))

    @property
    def values(self) -> Values:
        """Its parameters, whose names no other kind has unless they mean the same."""
        ends = {"top": self.top, "bottom": self.bottom}
        known = {name: key for name, key in ends.items() if key is not None}
        instants = {f"{self.kind}_{name}_at": key[0] for name, key in known.items() if self.by_instant}
        return self.given | {f"{self.kind}_{name}": key[1] for name, key in known.items()} | instants

    def _bounds(self) -> Iterator[str]:
        """One for each end: of two, a database may go by the one that is further away."""
        for key, name, beyond, equal in ((self.top, "top", "<", "<"), (self.bottom, "bottom", ">", ">=")):
            if key is None:
                continue
            by_id = f"t.id {equal} :{self.kind}_{name}"
            if self.by_instant:
                instant = f":{self.kind}_{name}_at"
                yield f"t.planned_for {beyond}= {instant}"
                yield f"(t.planned_for {beyond} {instant} OR {by_id})"
            else:
                yield by_id


@dataclass(frozen=True, slots=True)
class Bounded:
    """A stream as far as it is looked at: to its end, or to `floor`."""

    stream: Stream
    floor: Key | None


def stream_of(tx: Tx, filters: ActivityFilter, kind: RunKind) -> Stream:
    if kind is RunKind.JOB:
        runs = ExecutionFilter(filters.job_id, filters.job_statuses, nodes=False, documents=False)
        listing, values = of_executions(tx.dialect, runs)
    else:
        flows = RunFilter(filters.workflow_key, filters.workflow_statuses)
        listing, values = of_workflow_runs(flows, "run_state")
    stream = Stream(kind, replace(listing, columns=_KEYS), values)
    if stream.by_instant:
        known = tuple(each for each in listing.conditions if not each.endswith("IS NULL"))
        stream = replace(stream, base=replace(stream.base, conditions=known), narrower=(_NO_NODE,))
    return _narrower(_within(tx, stream, filters), filters)


def _narrower(stream: Stream, filters: ActivityFilter) -> Stream:
    asked: dict[str, tuple[str, Any]] = {
        "trigger": ("t.triggered_by = :trigger", filters.trigger),
        "tenant_id": ("t.tenant_id = :tenant_id", filters.tenant_id),
        "since": ("t.created_at >= :since", None if filters.since is None else to_micros(filters.since)),
        "until": ("t.created_at < :until", None if filters.until is None else to_micros(filters.until)),
    }
    given = {name: each for name, each in asked.items() if each[1] is not None}
    conditions = tuple(condition for condition, _ in given.values())
    values = {name: value for name, (_, value) in given.items()}
    return replace(stream, narrower=(*stream.narrower, *conditions), given=stream.given | values)


def _within(tx: Tx, stream: Stream, filters: ActivityFilter) -> Stream:
    """Between two instants, as nearly as the order of the stream tells."""
    table = stream.base.table
    if filters.since is not None and stream.by_instant:
        stream = stream.down_to((to_micros(filters.since) - LATEST, 0))
    elif filters.since is not None:
        stream = stream.down_to((0, first_id(tx, table, to_micros(filters.since) - CLOCKS_DIFFER)))
    until = None if filters.until is None else to_micros(filters.until) + CLOCKS_DIFFER
    if until is not None and stream.by_instant:
        stream = stream.below((until, 0))
    elif until is not None and until <= tx.clock:
        stream = stream.below((0, last_id(tx, table, until) + 1))
    return stream


def bounded(tx: Tx, stream: Stream) -> Bounded:
    """As many rows of it as are looked at, of each state, and of those what is asked for. (To put the states together first would
    take longer than to look at more rows: nearly all runs end in one or two of them.)"""
    if not stream.narrower:
        return Bounded(stream, None)
    found = tx.query(_floors(stream.listing(narrowed=False)), place=LOOKED_AT - 1, **stream.values)
    floor = max((stream.key(row) for row in found), default=None)
    return Bounded(stream if floor is None else stream.down_to(floor), floor)


@lru_cache(maxsize=256)
def _floors(listing: Listing) -> Statement:
    """Of each branch, the row at that place."""

    def written(dialect: Dialect, _: str) -> str:
        rest = f"{listing.ordered(dialect)} LIMIT 1 OFFSET :place"
        return f"SELECT u.* FROM {together(listing.branches(dialect, 't.id, t.planned_for', rest))}"

    return Statement(written)
