"""The oracle against instants that were worked out by hand."""

from datetime import UTC, datetime

import pytest

from tests.faults.history import Schedule
from tests.faults.oracle import instants


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def due(cron: str, zone: str, begin: str, end: str) -> list[str]:
    found = instants(Schedule("s", cron=cron, zone=zone), at(begin), at(end))
    return [datetime.fromtimestamp(each, UTC).strftime("%m-%dT%H:%M:%S") for each in found]


@pytest.mark.parametrize(
    ("cron", "zone", "begin", "end", "expected"),
    [
        # Forward: 02:00 becomes 03:00; what is fixed and skipped is due at the first instant after the gap, once.
        ("0 30 2 * * *", "America/New_York", "2025-03-09T05:00", "2025-03-09T09:00", ["03-09T07:00:00"]),
        ("0 0,30 2 * * *", "America/New_York", "2025-03-09T05:00", "2025-03-09T09:00", ["03-09T07:00:00"]),
        ("0 30 2 * * *", "Europe/Zurich", "2025-03-30T00:00", "2025-03-30T03:00", ["03-30T01:00:00"]),
        ("0 15 2 * * *", "Australia/Lord_Howe", "2025-10-04T14:00", "2025-10-04T17:00", ["10-04T15:30:00"]),
        # Backward: what is fixed and comes twice is due the first time.
        ("0 30 1 * * *", "America/New_York", "2025-11-02T04:00", "2025-11-02T08:00", ["11-02T05:30:00"]),
        ("0 30 2 * * *", "Europe/Zurich", "2025-10-26T00:00", "2025-10-26T03:00", ["10-26T00:30:00"]),
        ("0 45 1 * * *", "Australia/Lord_Howe", "2025-04-05T14:00", "2025-04-05T17:00", ["04-05T14:45:00"]),
        # Wildcards: every instant whose local form matches, so nothing in the gap, and both times in the fold.
        ("0 */30 1-3 * * *", "America/New_York", "2025-03-09T06:00", "2025-03-09T08:00",
         ["03-09T06:00:00", "03-09T06:30:00", "03-09T07:00:00", "03-09T07:30:00"]),
        ("0 */30 1 * * *", "America/New_York", "2025-11-02T05:00", "2025-11-02T08:00",
         ["11-02T05:00:00", "11-02T05:30:00", "11-02T06:00:00", "11-02T06:30:00"]),
        ("0 45 * * * *", "Australia/Lord_Howe", "2025-04-05T14:00", "2025-04-05T16:00",
         ["04-05T14:45:00", "04-05T15:15:00"]),
        ("0 15 * * * *", "Australia/Lord_Howe", "2025-10-04T14:00", "2025-10-04T17:00",
         ["10-04T14:45:00", "10-04T16:15:00"]),
    ],
)  # fmt: skip
def test_daylight_saving(cron: str, zone: str, begin: str, end: str, expected: list[str]) -> None:
    assert due(cron, zone, begin, end) == expected


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("*/20 * * * * *", ["01-05T08:00:00", "01-05T08:00:20", "01-05T08:00:40", "01-05T08:01:00"]),
        ("10-30/10 0 8 * * MON", ["01-05T08:00:10", "01-05T08:00:20", "01-05T08:00:30"]),
        ("0 8 * * *", ["01-05T08:00:00"]),
        ("0 0 8 * jan sun", []),
        ("0 0 8 6 * MON", ["01-05T08:00:00"]),
        ("0 0 8 */2 * 1", ["01-05T08:00:00"]),
        ("0 0 8 */2 * 2", []),
    ],
)
def test_fields(cron: str, expected: list[str]) -> None:
    """2026-01-05 is a Monday."""
    assert due(cron, "UTC", "2026-01-05T08:00", "2026-01-05T08:01:01") == expected


def test_the_end_of_the_span_is_not_in_it_but_the_end_of_a_schedule_is() -> None:
    begin = at("2026-01-05T08:00")
    assert instants(Schedule("s", cron="* * * * * *"), begin, begin + 3) == [begin, begin + 1, begin + 2]
    bounded = Schedule("s", cron="* * * * * *", start_wall=begin + 1, end_wall=begin + 2)
    assert instants(bounded, begin, begin + 10) == [begin + 1, begin + 2]


def test_an_interval_is_counted_from_its_start() -> None:
    begin = at("2026-01-05T08:00")
    schedule = Schedule("s", every=0.25, start_wall=begin + 0.1)
    assert instants(schedule, begin, begin + 0.7) == pytest.approx([begin + 0.1, begin + 0.35, begin + 0.6])
    assert instants(Schedule("s", every=10, start_wall=begin), begin + 1, begin + 31) == [
        begin + 10,
        begin + 20,
        begin + 30,
    ]
