"""Durations as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksana.domain.durations import LONGEST, format_duration, parse_duration
from ksana.domain.errors import InvalidInput


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1h30m", timedelta(minutes=90)),
        ("500ms", timedelta(milliseconds=500)),
        ("1.5h", timedelta(minutes=90)),
        ("0.1s", timedelta(milliseconds=100)),
        ("7us", timedelta(microseconds=7)),
        ("7µs", timedelta(microseconds=7)),
        ("7μs", timedelta(microseconds=7)),
        ("2d", timedelta(days=2)),
        (" 10s ", timedelta(seconds=10)),
        ("90", timedelta(seconds=90)),
        ("1.5", timedelta(seconds=1.5)),
        (90, timedelta(seconds=90)),
        (0, timedelta(0)),
        (1.5, timedelta(seconds=1.5)),
        (0.1 + 0.2, timedelta(milliseconds=300)),
        (1e-05, timedelta(microseconds=10)),
        ("PT1H30M", timedelta(minutes=90)),
        ("P1DT2H", timedelta(hours=26)),
        ("P2W", timedelta(weeks=2)),
        ("PT0.25S", timedelta(milliseconds=250)),
        (timedelta(seconds=3), timedelta(seconds=3)),
        ("0.0000019s", timedelta(microseconds=1)),
    ],
)
def test_a_duration_may_be_written_in_many_ways(written: object, meant: timedelta) -> None:
    assert parse_duration(written, field="timeout") == meant


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "x", "P", "PT", "P1DT", "P1Y", "1h30", "1h 30m", "1e3", ".5s", "1.s", "s", "1w", "+5s", "٣s", "٣",
        None, True, [], {}, b"1s", float("nan"), float("inf"), "1" * 65,
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused_and_the_field_named(written: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_duration(written, field="retry.delay")
    assert caught.value.field == "retry.delay"


@pytest.mark.parametrize(
    "written",
    ["-1s", "-90", -1, -0.5, timedelta(seconds=-1), float("-inf"), pytest.param(-(10**5000), id="unprintable")],
)
def test_a_negative_duration_is_refused(written: object) -> None:
    with pytest.raises(InvalidInput, match="negative"):
        parse_duration(written, field="timeout")


@pytest.mark.parametrize(
    "written",
    [
        "876601h",
        "36526d",
        "P5219W",
        LONGEST + timedelta(microseconds=1),
        10**17,
        pytest.param(10**5000, id="unprintable"),
    ],
)
def test_a_duration_over_a_hundred_years_is_refused(written: object) -> None:
    with pytest.raises(InvalidInput, match="longer than a hundred years"):
        parse_duration(written, field="timeout")


@pytest.mark.parametrize(
    ("duration", "written"),
    [
        (timedelta(0), "0s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(milliseconds=1500), "1s500ms"),
        (timedelta(days=2), "48h"),
        (timedelta(microseconds=1), "1us"),
    ],
)
def test_a_duration_is_shown_in_its_shortest_exact_form(duration: timedelta, written: str) -> None:
    assert format_duration(duration) == written


def test_a_negative_duration_cannot_be_shown() -> None:
    with pytest.raises(ValueError, match="negative"):
        format_duration(timedelta(seconds=-1))


@given(st.timedeltas(timedelta(0), LONGEST))
@settings(deadline=None)
def test_what_is_shown_is_read_back_exactly(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration), field="timeout") == duration


@given(
    st.one_of(
        st.text(max_size=70), st.text(alphabet="0123456789.hmsudPTWDHMS-", max_size=20), st.integers(), st.floats()
    )
)
@settings(deadline=None, max_examples=300)
def test_any_value_is_read_within_bounds_or_refused(written: object) -> None:
    try:
        duration = parse_duration(written, field="timeout")
    except InvalidInput:
        return
    assert timedelta(0) <= duration <= LONGEST
