"""Days in a zone, and ranges of instants spread over them."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.calendar import InstantRange, day_edges, spread_over_days
from ksana.domain.cron import load_zone
from ksana.domain.schedule import ScheduleKind, ScheduleSpec

HOUR = timedelta(hours=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def test_days_are_as_long_as_the_zone_makes_them() -> None:
    zurich = day_edges(date(2026, 3, 28), date(2026, 3, 31), load_zone("Europe/Zurich"))
    assert zurich[0] == datetime(2026, 3, 27, 23, tzinfo=UTC)
    assert [(end - begin) / HOUR for begin, end in pairwise(zurich)] == [24, 23, 24]


def test_a_day_that_the_clock_leaps_into_begins_with_the_leap_and_one_that_it_leaps_over_is_empty() -> None:
    santiago = day_edges(date(2026, 9, 6), date(2026, 9, 7), load_zone("America/Santiago"))
    assert (santiago[1] - santiago[0]) / HOUR == 23
    apia = day_edges(date(2011, 12, 29), date(2012, 1, 1), load_zone("Pacific/Apia"))
    assert [(end - begin) / HOUR for begin, end in pairwise(apia)] == [24, 0, 24]


def test_a_range_lies_on_the_days_on_which_its_schedule_would_have_fired() -> None:
    spec = ScheduleSpec(kind=ScheduleKind.CRON, cron="0 22,23 * * *")
    part = InstantRange(FIRST + 23 * HOUR, FIRST + 47 * HOUR, 3)
    edges = [FIRST + number * timedelta(days=1) for number in range(4)]
    assert list(spread_over_days(spec, part, edges)) == [(0, 1), (1, 2)]


@given(st.integers(1, 500), st.integers(0, 400), st.integers(0, 30))
def test_none_is_lost_where_the_schedule_was_changed_since(count: int, hours: int, start: int) -> None:
    first = FIRST + start * HOUR
    part = InstantRange(first, first + hours * HOUR, count)
    edges = [FIRST + number * timedelta(days=1) for number in range(20)]
    assert sum(number for _, number in spread_over_days(None, part, edges)) == count
