"""Cron expressions: what may be written, and when they fire, in every zone and across every change of the clock."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.domain.cron_oracle import Oracle, utc

from ksana.domain.cron import LATEST, CronExpression, count_between, load_zone, next_after, parse_cron, previous_before
from ksana.domain.cron_zone import EPOCH, stretch_at
from ksana.domain.errors import InvalidInput

SECOND = timedelta(seconds=1)


def fires(text: str, zone_name: str, start: str, stop: str) -> list[str]:
    """The instants from `start` to before `stop`, as text; found forwards, and the same backwards and in number."""
    expression, zone, begin, end = parse_cron(text), load_zone(zone_name), utc(start), utc(stop)
    found = forwards(expression, zone, begin, end)
    assert backwards(expression, zone, begin, end) == found
    assert count_between(expression, zone, begin - SECOND, end - SECOND) == len(found)
    return [f"{instant:%m-%d %H:%M}" + (f":{instant:%S}" if instant.second else "") for instant in found]


def forwards(expression: CronExpression, zone: ZoneInfo, begin: datetime, end: datetime) -> list[datetime]:
    found = []
    instant = next_after(expression, zone, begin - SECOND)
    while instant is not None and instant < end:
        found.append(instant)
        instant = next_after(expression, zone, instant)
    return found


def backwards(expression: CronExpression, zone: ZoneInfo, begin: datetime, end: datetime) -> list[datetime]:
    found = []
    instant = previous_before(expression, zone, end)
    while instant is not None and instant >= begin:
        found.append(instant)
        instant = previous_before(expression, zone, instant)
    return found[::-1]


# What may be written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("*/5 * * * *", "0 */5 * * * *"),
        ("  0  0 12 * *   mon-fri ", "0 0 12 * * MON-FRI"),
        ("@daily", "0 0 0 * * *"),
        ("@Midnight", "0 0 0 * * *"),
        ("@hourly", "0 0 * * * *"),
        ("@weekly", "0 0 0 * * 0"),
        ("@monthly", "0 0 0 1 * *"),
        ("@yearly", "0 0 0 1 1 *"),
        ("@annually", "0 0 0 1 1 *"),
        ("@minutely", "0 * * * * *"),
        ("@secondly", "* * * * * *"),
        ("0 0 L * 5L", "0 0 0 L * 5L"),
        ("0 0 LW jan,FEB MON#1", "0 0 0 LW JAN,FEB MON#1"),
    ],
)
def test_an_expression_is_normalised_to_six_fields(text: str, normalized: str) -> None:
    expression = parse_cron(text)
    assert str(expression) == expression.normalized == normalized
    assert parse_cron(normalized) == expression


@pytest.mark.parametrize(
    ("text", "cron_field", "why"),
    [
        ("60 * * * * *", "second", "60 is not between 0 and 59"),
        ("61 * * * *", "minute", "61 is not between 0 and 59"),
        ("* 24 * * *", "hour", "24 is not between 0 and 23"),
        ("* * 0 * *", "day-of-month", "0 is not between 1 and 31"),
        ("* * * 13 *", "month", "13 is not between 1 and 12"),
        ("* * * * 8", "day-of-week", "8 is not between 0 and 7"),
        ("* * * FOO *", "month", "'FOO' is not a number or one of JAN"),
        ("x * * * *", "minute", "'X' is not a number"),
        ("-5 * * * *", "minute", "'' is not a number"),
        ("* 5-1 * * *", "hour", "range '5-1' runs backwards"),
        ("* * * * FRI-SUN", "day-of-week", "runs backwards"),
        ("1,,2 * * * *", "minute", "a list has an empty item"),
        ("/5 * * * *", "minute", "does not say where to count from"),
        ("*/0 * * * *", "minute", "step '0' is not a number between 1 and 60"),
        ("*/x * * * *", "minute", "step 'X'"),
        ("* */25 * * *", "hour", "step '25' is not a number between 1 and 24"),
        ("* * L/2 * *", "day-of-month", "cannot have a step"),
        ("* * * * L", "day-of-week", "the last Friday"),
        ("* * * * 9L", "day-of-week", "9 is not between 0 and 7"),
        ("* * * * MON#6", "day-of-week", "not between 1 and 5"),
        ("* * * * BAD#1", "day-of-week", "'BAD' is not a number"),
        ("0 0 30 2 *", "day-of-month", "would never fire"),
        ("0 0 31 2,4,6,9,11 *", "day-of-month", "would never fire"),
        ("0 0 30 FEB */2", "day-of-month", "would never fire"),
        (f"{'9' * 200} * * * *", "minute", "is not between 0 and 59"),
    ],
)
def test_an_error_names_the_cron_field_and_says_why(text: str, cron_field: str, why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_cron(text)
    assert caught.value.field == "cron_expr"
    assert caught.value.reason.startswith(f"{cron_field}: ")
    assert why in caught.value.reason


@pytest.mark.parametrize(
    "text",
    ["", " ", "* * * *", "* * * * * * *", "@reboot", "@", "*\t* * * *", "* * * * *\n", "٣ * * * *", "\x00", "*" * 257],
)
def test_what_is_no_expression_at_all_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_cron(text, field="schedule.cron")
    assert caught.value.field == "schedule.cron"


@given(st.text(alphabet="0123456789*/,-#LWMONJAN@ x", max_size=40))
@settings(deadline=None, max_examples=200)
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        expression = parse_cron(text)
    except InvalidInput:
        return
    assert parse_cron(expression.normalized) == expression


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("30 2 * * *", True),
        ("0 0/15 2 * * *", True),
        ("0 0-59 0-23 * * *", True),
        ("* 2 * * *", False),
        ("30 */2 * * *", False),
        ("* 30 2 * * *", False),
        ("0,*/7 2 * * *", False),
    ],
)
def test_an_expression_is_fixed_if_its_times_are_written_without_a_star(text: str, fixed: bool) -> None:
    assert parse_cron(text).fixed is fixed


@pytest.mark.parametrize(
    "name", ["", "Mars/Olympus", "America", "../etc/passwd", "/etc/localtime", "localtime", "A\x00", "Z" * 99]
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_zone(name)
    assert caught.value.field == "timezone"


# Changes of the clock -------------------------------------------------------------------------------------------------


def test_a_fixed_time_in_a_gap_fires_once_right_after_it() -> None:
    assert fires("30 2 * * *", "America/New_York", "2026-03-07", "2026-03-10") == [
        "03-07 07:30",
        "03-08 07:00",
        "03-09 06:30",
    ]
    assert fires("30 2 * * *", "Europe/Zurich", "2026-03-28", "2026-03-31") == [
        "03-28 01:30",
        "03-29 01:00",
        "03-30 00:30",
    ]


def test_a_fixed_time_in_a_fold_fires_only_the_first_time() -> None:
    assert fires("30 1 * * *", "America/New_York", "2026-10-31", "2026-11-03") == [
        "10-31 05:30",
        "11-01 05:30",
        "11-02 06:30",
    ]
    assert fires("30 2 * * *", "Europe/Zurich", "2026-10-24", "2026-10-27") == [
        "10-24 00:30",
        "10-25 00:30",
        "10-26 01:30",
    ]


def test_all_fixed_times_in_one_gap_are_one_instant() -> None:
    assert fires("0 0/15 2 * * *", "America/New_York", "2026-03-08", "2026-03-09") == ["03-08 07:00"]


def test_a_fixed_time_at_the_end_of_a_gap_is_one_instant_with_those_in_it() -> None:
    assert fires("0,30 2,3 * * *", "America/New_York", "2026-03-08", "2026-03-09") == ["03-08 07:00", "03-08 07:30"]
    assert fires("0 3 * * *", "America/New_York", "2026-03-08", "2026-03-09") == ["03-08 07:00"]


def test_a_wildcard_goes_by_what_the_clock_shows() -> None:
    assert fires("*/30 2 * * *", "America/New_York", "2026-03-08", "2026-03-09") == []
    assert fires("*/30 1 * * *", "America/New_York", "2026-11-01", "2026-11-02") == [
        "11-01 05:00",
        "11-01 05:30",
        "11-01 06:00",
        "11-01 06:30",
    ]


def test_a_wildcard_hour_never_pauses_at_a_change() -> None:
    for day in ("2026-03-29", "2026-10-25"):
        assert len(fires("0 * * * *", "Europe/Zurich", day, f"{day} 23:59")) == 24


def test_lord_howe_moves_by_half_an_hour() -> None:
    assert fires("15 2 * * *", "Australia/Lord_Howe", "2026-10-02", "2026-10-05") == [
        "10-02 15:45",
        "10-03 15:30",
        "10-04 15:15",
    ]
    assert fires("45 1 * * *", "Australia/Lord_Howe", "2026-04-03", "2026-04-06") == [
        "04-03 14:45",
        "04-04 14:45",
        "04-05 15:15",
    ]
    assert fires("*/15 1 * * *", "Australia/Lord_Howe", "2026-04-04", "2026-04-05") == [
        "04-04 14:00",
        "04-04 14:15",
        "04-04 14:30",
        "04-04 14:45",
        "04-04 15:00",
        "04-04 15:15",
    ]


def test_sao_paulo_had_no_midnight_on_a_day_of_2018() -> None:
    assert fires("@daily", "America/Sao_Paulo", "2018-11-03", "2018-11-06") == [
        "11-03 03:00",
        "11-04 03:00",
        "11-05 02:00",
    ]
    assert fires("30 0 4 11 *", "America/Sao_Paulo", "2018-11-01", "2018-11-30") == ["11-04 03:00"]


def test_apia_had_no_30_december_in_2011() -> None:
    assert fires("0 12 * * *", "Pacific/Apia", "2011-12-29", "2012-01-01") == [
        "12-29 22:00",
        "12-30 10:00",
        "12-30 22:00",
        "12-31 22:00",
    ]
    assert fires("@daily", "Pacific/Apia", "2011-12-29", "2012-01-01") == ["12-29 10:00", "12-30 10:00", "12-31 10:00"]
    assert fires("0 9 30 12 *", "Pacific/Apia", "2011-01-01", "2012-12-01") == ["12-30 10:00"]
    assert fires("0 */6 30 12 *", "Pacific/Apia", "2011-01-01", "2012-12-01") == []


def test_casablanca_turns_back_for_ramadan() -> None:
    assert fires("30 2 * * *", "Africa/Casablanca", "2026-02-14", "2026-02-17") == [
        "02-14 01:30",
        "02-15 01:30",
        "02-16 02:30",
    ]
    assert fires("30 2 * * *", "Africa/Casablanca", "2026-03-21", "2026-03-24") == [
        "03-21 02:30",
        "03-22 02:00",
        "03-23 01:30",
    ]


def test_kwajalein_lived_most_of_a_day_twice_in_1969() -> None:
    assert fires("0 12 * * *", "Pacific/Kwajalein", "1969-09-29", "1969-10-04") == [
        "09-29 01:00",
        "09-30 01:00",
        "10-02 00:00",
        "10-03 00:00",
    ]
    assert fires("0 12 * * *", "Pacific/Kwajalein", "1993-08-20", "1993-08-22") == [
        "08-20 00:00",
        "08-21 00:00",
        "08-21 12:00",
    ]


def test_an_offset_may_have_seconds() -> None:
    assert fires("0 12 * * *", "Africa/Monrovia", "1972-01-06", "1972-01-08") == ["01-06 12:44:30", "01-07 12:00"]
    assert fires("20 0 * * *", "Africa/Monrovia", "1972-01-07", "1972-01-08") == ["01-07 00:44:30"]


def test_a_change_at_the_very_beginning_of_a_year() -> None:
    # Lisbon left its local time, 36:45 behind, at 1912-01-01 00:00 UTC.
    assert fires("50 23 * * *", "Europe/Lisbon", "1911-12-31", "1912-01-02") == [
        "12-31 00:26:45",
        "01-01 00:00",
        "01-01 23:50",
    ]


# Against brute force --------------------------------------------------------------------------------------------------

CHANGES = [
    ("America/New_York", "2026-03-08 07:00"),
    ("America/New_York", "2026-11-01 06:00"),
    ("Europe/Zurich", "2026-03-29 01:00"),
    ("Europe/Zurich", "2026-10-25 01:00"),
    ("Australia/Lord_Howe", "2026-10-03 15:30"),
    ("Australia/Lord_Howe", "2026-04-04 15:00"),
    ("America/Sao_Paulo", "2018-11-04 03:00"),
    ("America/Sao_Paulo", "2018-02-18 02:00"),
    ("Pacific/Apia", "2011-12-30 10:00"),
    ("Africa/Casablanca", "2026-02-15 02:00"),
    ("Africa/Casablanca", "2026-03-22 02:00"),
    ("Africa/Monrovia", "1972-01-07 00:44:30"),
    ("Europe/Lisbon", "1912-01-01 00:00"),
    ("Pacific/Kiritimati", "1994-12-31 10:00"),
    ("America/Havana", "2026-03-08 05:00"),
    ("Africa/Cairo", "2026-10-29 21:00"),
    ("Asia/Pyongyang", "2018-05-04 15:00"),
    ("America/Caracas", "2007-12-09 07:00"),
    ("Europe/Dublin", "2026-10-25 01:00"),
    ("Antarctica/Troll", "2026-03-29 01:00"),
]


def term(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.integers(1, high - low + 1)
    return st.one_of(
        number.map(str),
        st.just("*"),
        step.map(lambda every: f"*/{every}"),
        span,
        st.tuples(span, step).map(lambda parts: f"{parts[0]}/{parts[1]}"),
        st.tuples(number, step).map(lambda parts: f"{parts[0]}/{parts[1]}"),
    )


def moments(first_year: int, last_year: int) -> st.SearchStrategy[datetime]:
    return st.datetimes(
        datetime(first_year, 1, 1),  # noqa: DTZ001 - Hypothesis wants them naive
        datetime(last_year, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    )


def terms(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(term(low, high), min_size=1, max_size=3).map(",".join)


DAYS = st.one_of(st.just("*"), st.just("*"), terms(1, 31), st.sampled_from(["L", "LW", "1,L", "1-31"]))
MONTHS = st.one_of(st.just("*"), terms(1, 12), st.sampled_from(["JAN-DEC", "FEB,OCT", "MAR-DEC/2"]))
WEEKDAYS = st.one_of(
    st.just("*"),
    st.just("*"),
    terms(0, 7),
    st.sampled_from(["SUN", "MON-FRI", "5L", "7L", "SUN#1", "1#2,SAT#5", "0#4,3"]),
)
HOURS = st.one_of(terms(0, 23), st.sampled_from(["0-4", "1,2,3", "0/1", "2", "0", "23,0,1"]))
TIMES = st.tuples(terms(0, 59), terms(0, 59), HOURS).map(" ".join)
EXPRESSIONS = st.tuples(TIMES, DAYS, MONTHS, WEEKDAYS).map(" ".join)
NEAR_CHANGES = st.tuples(TIMES, st.sampled_from(["* * *", "* * 0-6", "1-31 * *", "1-30 JAN-DEC 0/2", "L * 0,6"])).map(
    " ".join
)


@pytest.mark.parametrize(("zone_name", "change"), CHANGES)
def test_the_listed_changes_are_changes(zone_name: str, change: str) -> None:
    zone, instant = ZoneInfo(zone_name), utc(change)
    assert instant.astimezone(zone).utcoffset() != (instant - SECOND).astimezone(zone).utcoffset()


@given(
    NEAR_CHANGES,
    st.sampled_from(CHANGES),
    st.integers(1, 2 * 3600),
    st.integers(1, 2 * 3600),
    st.lists(st.integers(-7200, 7200), min_size=2, max_size=2).map(sorted),
)
@settings(deadline=None, max_examples=250)
def test_brute_force_finds_the_same_around_every_change(
    text: str, place: tuple[str, str], before: int, after: int, cut: list[int]
) -> None:
    zone, change = ZoneInfo(place[0]), utc(place[1])
    start, stop = change - before * SECOND, change + after * SECOND
    expected = Oracle(text).instants(zone, start, stop)
    expression = parse_cron(text)
    assert forwards(expression, zone, start, stop) == expected
    assert backwards(expression, zone, start, stop) == expected
    low, high = (min(max(change + seconds * SECOND, start - SECOND), stop - SECOND) for seconds in cut)
    assert count_between(expression, zone, low, high) == sum(low < instant <= high for instant in expected)


@given(EXPRESSIONS, moments(1960, 2090), st.integers(0, 40))
@settings(deadline=None, max_examples=300)
def test_brute_force_finds_the_same_days(text: str, begin: datetime, length: int) -> None:
    try:
        expression = parse_cron(text)
    except InvalidInput:
        return
    oracle = Oracle(text)
    start = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    days = [start + timedelta(days=number) for number in range(length)]
    per_day = len(oracle.seconds) * len(oracle.minutes) * len(oracle.hours)
    matching = [day for day in days if oracle.matches_day(day.date())]
    zone, stop = ZoneInfo("UTC"), start + timedelta(days=length)
    assert count_between(expression, zone, start - SECOND, stop - SECOND) == len(matching) * per_day
    if matching:
        first = next_after(expression, zone, start - SECOND)
        last = previous_before(expression, zone, stop)
        assert first is not None
        assert last is not None
        assert (first.date(), last.date()) == (matching[0].date(), matching[-1].date())


# Cronsim 2.8 reads `5-5/2` as `5/2`; Vixie's cron and Ksana as `5`.
@given(EXPRESSIONS.filter(lambda text: not re.search(r"\b(\d+)-\1/", text)), moments(1990, 2060))
@settings(deadline=None, max_examples=150)
def test_cronsim_finds_the_same_in_utc(text: str, begin: datetime) -> None:
    after = begin
    try:
        expression = parse_cron(text)
    except InvalidInput:
        return
    ours = [next_after(expression, ZoneInfo("UTC"), after)]
    theirs = CronSim(text, after)
    for _ in range(3):
        assert ours[-1] is not None
        assert ours[-1] == next(theirs)
        ours.append(next_after(expression, ZoneInfo("UTC"), ours[-1]))


ZONES = sorted(available_timezones() - {"localtime"})


@given(EXPRESSIONS, st.sampled_from(ZONES), moments(1901, 2100))
@settings(deadline=None, max_examples=150)
def test_next_previous_and_count_agree_in_every_zone(text: str, zone_name: str, begin: datetime) -> None:
    try:
        expression = parse_cron(text)
    except InvalidInput:
        return
    zone, after = ZoneInfo(zone_name), begin
    found: list[datetime] = []
    for _ in range(5):
        instant = next_after(expression, zone, found[-1] if found else after)
        assert instant is not None
        found.append(instant)
    for earlier, later in pairwise(found):
        assert later > earlier
        assert previous_before(expression, zone, later) == earlier
        assert count_between(expression, zone, earlier, later) == 1
    assert count_between(expression, zone, after, found[-1]) == 5
    assert count_between(expression, zone, after, found[0] - timedelta(microseconds=1)) == 0


@given(st.sampled_from(ZONES), moments(1900, 2110))
@settings(deadline=None, max_examples=300)
def test_every_stretch_has_the_offset_that_zoneinfo_gives(zone_name: str, moment: datetime) -> None:
    zone, instant = ZoneInfo(zone_name), moment.replace(microsecond=0)
    stretch = stretch_at(zone, (instant - EPOCH) // SECOND)
    assert instant.astimezone(zone).utcoffset() == timedelta(seconds=stretch.offset)
    assert stretch.start <= (instant - EPOCH) // SECOND < stretch.end


# Edges ----------------------------------------------------------------------------------------------------------------


def test_next_is_strictly_later_and_previous_strictly_earlier_to_the_microsecond() -> None:
    expression, zone, noon = parse_cron("0 12 * * *"), load_zone("UTC"), utc("2026-01-01 12:00")
    tick = timedelta(microseconds=1)
    assert next_after(expression, zone, noon - tick) == noon
    assert next_after(expression, zone, noon) == noon + timedelta(days=1)
    assert previous_before(expression, zone, noon + tick) == noon
    assert previous_before(expression, zone, noon) == noon - timedelta(days=1)
    assert count_between(expression, zone, noon - tick, noon) == 1
    assert count_between(expression, zone, noon, noon) == 0
    assert count_between(expression, zone, noon, noon - timedelta(days=9)) == 0


def test_a_29_february_is_found_across_a_century_without_one() -> None:
    zone = load_zone("Europe/Zurich")
    assert next_after(parse_cron("0 12 29 2 *"), zone, utc("2097-01-01")) == utc("2104-02-29 11:00")
    # 29 February on a Monday: 2072, then not for 40 years.
    rarest = parse_cron("0 12 */28 2 MON#5")
    assert next_after(rarest, zone, utc("2072-03-01")) == utc("2112-02-29 11:00")
    assert previous_before(rarest, zone, utc("2112-02-29")) == utc("2072-02-29 11:00")


def test_a_search_ends_at_the_end_of_the_calendar() -> None:
    expression, zone = parse_cron("@yearly"), load_zone("Asia/Tokyo")
    assert next_after(expression, zone, LATEST) is None
    assert next_after(expression, zone, datetime.max.replace(tzinfo=UTC)) is None
    assert previous_before(expression, zone, datetime.min.replace(tzinfo=UTC)) is None
    assert previous_before(expression, zone, datetime.max.replace(tzinfo=UTC)) == utc("9997-12-31 15:00")
    assert next_after(expression, zone, datetime.min.replace(tzinfo=UTC)) == utc("1900-12-31 15:00")


def test_a_year_of_seconds_is_counted_exactly() -> None:
    expression = parse_cron("* * * * * *")
    for zone in ("UTC", "Europe/Zurich", "Australia/Lord_Howe"):
        assert count_between(expression, load_zone(zone), utc("2026-01-01"), utc("2027-01-01")) == 365 * 86_400


def test_a_year_of_fixed_times_has_one_a_day_whatever_the_clock_does() -> None:
    for zone in ("America/New_York", "Europe/Zurich", "Africa/Casablanca", "America/Havana"):
        for text in ("30 2 * * *", "0 1 * * *", "@daily", "59 59 23 * * *"):
            assert (
                count_between(parse_cron(text), load_zone(zone), utc("2026-01-01 12:00"), utc("2027-01-01 12:00"))
                == 365
            )
