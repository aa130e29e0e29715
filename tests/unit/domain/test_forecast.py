"""What schedules have planned: counted, by hour, and never what the ledger has already."""

from datetime import UTC, datetime, timedelta

from ksana.domain.forecast import Span, planned_by_hour, planned_count, planned_instants
from ksana.domain.ledger import Schedule
from ksana.domain.schedule import ScheduleKind, ScheduleSpec, next_instant
from ksana.domain.states import ScheduleStatus

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def schedule(spec: ScheduleSpec, cursor: datetime | None = None) -> Schedule:
    following = cursor or next_instant(spec, NOON - MINUTE)
    return Schedule(1, "s", 1, spec, ScheduleStatus.ACTIVE, following, following, 1, NOON, NOON)


def every(period: timedelta) -> ScheduleSpec:
    return ScheduleSpec(kind=ScheduleKind.EVERY, every=period, anchor=NOON)


def test_the_beginning_counts_and_the_end_does_not() -> None:
    hourly = schedule(every(HOUR))
    assert planned_count(hourly, Span(NOON, NOON + 2 * HOUR)) == 2
    assert planned_instants(hourly, Span(NOON, NOON + 2 * HOUR), 10) == [NOON, NOON + HOUR]
    assert planned_count(hourly, Span(NOON, NOON)) == 0


def test_what_the_ledger_has_already_is_not_planned() -> None:
    moved_on = schedule(every(MINUTE), cursor=NOON + 30 * MINUTE)
    span = Span(NOON, NOON + HOUR)
    assert planned_count(moved_on, span) == 30
    assert planned_instants(moved_on, span, 1) == [NOON + 30 * MINUTE]
    assert planned_count(moved_on, Span(NOON, NOON + MINUTE)) == 0


def test_hours_add_up_to_the_whole_however_often_it_fires() -> None:
    span = Span(NOON + 30 * MINUTE, NOON + 3 * HOUR)
    for spec in (
        every(7 * MINUTE),
        every(timedelta(seconds=1)),
        ScheduleSpec(kind=ScheduleKind.CRON, cron="*/5 * * * *"),
    ):
        one = schedule(spec)
        assert sum(planned_by_hour(one, span).values()) == planned_count(one, span)
    assert planned_by_hour(schedule(every(timedelta(seconds=1))), span) == {
        NOON: 1800,
        NOON + HOUR: 3600,
        NOON + 2 * HOUR: 3600,
    }
