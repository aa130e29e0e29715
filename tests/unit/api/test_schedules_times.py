"""Instants as the contracts read and write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ksana.api.times import parse_instant, rfc3339
from ksana.domain.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        (" 2026-01-31t12:00:00z ", "2026-01-31T12:00:00Z"),
        ("2026-01-31 12:00:00+08:00", "2026-01-31T04:00:00Z"),
        ("2026-01-31T12:00:00.5-00:30", "2026-01-31T12:30:00.500000Z"),
        ("2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00.123456Z"),
    ],
)
def test_an_instant_is_read_whatever_its_offset_and_written_in_utc(text: str, written: str) -> None:
    assert rfc3339(parse_instant(text, field="at")) == written


def test_an_instant_of_another_zone_is_written_in_utc() -> None:
    there = datetime(2026, 1, 1, 8, tzinfo=timezone(timedelta(hours=8)))
    assert rfc3339(there) == rfc3339(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-02-30T12:00:00Z",
        "2026-01-31T24:00:01Z",
        "2026-01-31T12:00:00+99:99",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "\uff12026-01-31T12:00:00Z",
        "\ud800",
    ],
)
def test_what_is_no_instant_is_refused_by_field(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_instant(text, field="schedule.run_at")
    assert refused.value.field == "schedule.run_at"
