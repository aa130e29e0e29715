"""The audit of the whole ledger: each schedule's definitions from its events, its rows, and what is missing between them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from ksana.domain.audit import Frontier, Period, Tally, audit, last_of
from ksana.domain.ledger import Occurrence
from ksana.domain.schedule import ScheduleKind, ScheduleSpec
from ksana.domain.schedule_instants import TICK
from ksana.domain.states import ScheduleStatus
from ksana.store.base import Store
from ksana.store.requests import AuditedSchedule

SCHEDULES_AT_A_TIME = 200
ROWS_AT_A_TIME = 10_000


@dataclass(frozen=True, slots=True)
class Finding:
    """A schedule whose ledger is not whole."""

    schedule_id: int
    key: str
    lost: int
    unplanned: int


@dataclass(slots=True)
class Report:
    since: datetime
    until: datetime
    schedules: int = 0
    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)


async def audit_ledger(store: Store, since: datetime, until: datetime, now: datetime) -> Report:
    """Every instant with since ≤ planned < until that has come, of every schedule there is or was; none from before the
    ledger is kept."""
    since = max(since, await store.ledger_since() or since)
    report = Report(since, until)
    async for audited in _schedules(store):
        tally = await _audit_one(store, audited, since - TICK, min(until - TICK, now))
        report.schedules += 1
        report.tally.add(tally)
        if not tally.sound:
            schedule = audited.schedule
            report.findings.append(Finding(schedule.id, schedule.key, tally.lost, tally.unplanned))
    return report


async def _schedules(store: Store) -> AsyncIterator[AuditedSchedule]:
    after = 0
    while page := await store.audited_schedules(after, SCHEDULES_AT_A_TIME):
        for audited in page:
            yield audited
        after = page[-1].schedule.id


async def _audit_one(store: Store, audited: AuditedSchedule, after: datetime, until: datetime) -> Tally:
    # The cursor first: a row that is written while we read is then waited for, and not missed.
    periods = _periods(audited, after, until)
    if not periods:
        return Tally()
    rows = await _rows(store, audited.schedule.id, periods[0].after, periods[-1].until)
    return audit(periods, rows, _frontier(audited, rows))


def _periods(audited: AuditedSchedule, after: datetime, until: datetime) -> list[Period]:
    """The times of each definition. What was before the first that is still known cannot be judged, and is left out."""
    changes = audited.definitions
    bounds = [at for at, _ in changes] + [max(audited.deleted_at or until, changes[-1][0])]
    periods = [Period(spec, at, to) for (at, spec), (_, to) in zip(changes, pairwise(bounds), strict=True)]
    first = periods[0]
    periods[0] = Period(first.spec, _beginning(first.spec, first.after), first.until)
    clipped = [Period(each.spec, max(each.after, after), min(each.until, until)) for each in periods]
    return [each for each in clipped if each.after < each.until]


def _beginning(spec: ScheduleSpec, made_at: datetime) -> datetime:
    """A `once` may be for a moment that was over when it was made."""
    if spec.kind is ScheduleKind.ONCE and spec.run_at is not None:
        return min(made_at, spec.run_at - TICK)
    return made_at


async def _rows(store: Store, schedule_id: int, after: datetime, until: datetime) -> list[Occurrence]:
    rows: list[Occurrence] = []
    since = after + TICK
    while page := await store.occurrences(schedule_id, since, until + TICK, ROWS_AT_A_TIME):
        rows += page
        since = max(since, last_of(page[-1])) + TICK
    return rows


def _frontier(audited: AuditedSchedule, rows: Sequence[Occurrence]) -> Frontier:
    if audited.deleted_at is not None:
        last = last_of(rows[-1]) if rows else audited.schedule.created_at
        return Frontier(last + TICK, deleted=True)
    if audited.schedule.status is ScheduleStatus.FINISHED:
        return Frontier(None)
    return Frontier(audited.schedule.next_planned_for)
