"""The ledger checked against the schedule: every planned instant worked out anew, and looked for.

Nothing here trusts a cursor or a counter: what should be there follows from the definition alone. A range of instants is
counted, not listed, so that a month of a per-second schedule takes no longer than its rows.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ksana.domain.ledger import Occurrence
from ksana.domain.schedule import ScheduleSpec, count_instants
from ksana.domain.schedule_instants import TICK
from ksana.domain.states import OccurrenceOutcome


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which a schedule had one definition: instants later than `after`, and not later than `until`."""

    spec: ScheduleSpec
    after: datetime
    until: datetime


@dataclass(slots=True)
class Tally:
    """What became of the planned instants. `planned` is the sum of all others but `unplanned`."""

    planned: int = 0
    ran: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """By reason."""
    missed: int = 0
    waiting: int = 0
    """Due, but not decided: its schedule is paused or parked, or the moment has only just come."""
    dropped: int = 0
    """Their schedule was deleted before they were decided."""
    lost: int = 0
    """No row says what became of them. Must be 0."""
    unplanned: int = 0
    """Rows for instants that the schedule does not have. Must be 0."""

    @property
    def sound(self) -> bool:
        return self.lost == 0 and self.unplanned == 0

    def add(self, other: "Tally") -> None:
        for name in ("planned", "ran", "missed", "waiting", "dropped", "lost", "unplanned"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.skipped.update(other.skipped)


@dataclass(frozen=True, slots=True)
class Frontier:
    """From where on a schedule need not have rows: its cursor if it still goes on, or what followed its last row when it was
    deleted."""

    since: datetime | None
    """None: everything must be there."""
    deleted: bool = False


def audit(periods: Sequence[Period], rows: Iterable[Occurrence], frontier: Frontier) -> Tally:
    """What became of all instants of these periods, by the rows of their time, in order."""
    tally = Tally()
    pending = list(rows)
    for period in periods:
        mine = [row for row in pending if last_of(row) > period.after and row.planned_for <= period.until]
        _audit_period(period, mine, frontier, tally)
    return tally


def _audit_period(period: Period, rows: list[Occurrence], frontier: Frontier, tally: Tally) -> None:
    tally.planned += count_instants(period.spec, period.after, period.until)
    reached = period.after
    for row in rows:
        tally.lost += count_instants(period.spec, reached, row.planned_for - TICK)
        last = last_of(row)
        planned = count_instants(period.spec, max(reached, row.planned_for - TICK), min(last, period.until))
        if period.after < row.planned_for and last <= period.until:  # of one that reaches beyond, only a part is ours
            tally.unplanned += max(0, row.count - planned)
        _count(row, min(row.count, planned), tally)
        reached = max(reached, last)
    _audit_rest(period, reached, frontier, tally)


def last_of(row: Occurrence) -> datetime:
    """The last instant that a row is about."""
    return row.last_planned_for or row.planned_for


def _count(row: Occurrence, instants: int, tally: Tally) -> None:
    if row.outcome is OccurrenceOutcome.FIRED:
        tally.ran += instants
    elif row.outcome is OccurrenceOutcome.MISSED:
        tally.missed += instants
    else:
        tally.skipped[row.reason or "unknown"] += instants


def _audit_rest(period: Period, reached: datetime, frontier: Frontier, tally: Tally) -> None:
    """After the last row: lost, unless the schedule has not come there yet."""
    edge = period.until if frontier.since is None else min(period.until, max(reached, frontier.since - TICK))
    tally.lost += count_instants(period.spec, reached, edge)
    rest = count_instants(period.spec, max(reached, edge), period.until)
    if frontier.deleted:
        tally.dropped += rest
    else:
        tally.waiting += rest
