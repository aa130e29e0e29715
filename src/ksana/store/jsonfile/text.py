"""Instants and durations as document 002 writes them, to and from the microseconds that rows hold."""

from datetime import UTC, datetime, timedelta

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.durations import format_duration, parse_duration

_MICROSECOND = timedelta(microseconds=1)


def instant_text(micros: int | None) -> str:
    """RFC 3339 in UTC, exact to the microsecond; "" for none."""
    return "" if micros is None else from_micros(micros).isoformat().replace("+00:00", "Z")


def instant_micros(text: object) -> int | None:
    """The instant that RFC 3339 text says, None for "". ValueError or TypeError if it says none."""
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise TypeError("not a time: write it as 2026-01-31T12:00:00Z")
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} needs a Z or an offset, as in 2026-01-31T12:00:00Z")
    return to_micros(instant.astimezone(UTC))


def duration_text(micros: int) -> str:
    return format_duration(micros * _MICROSECOND)


def duration_micros(value: object, field: str, default: str) -> int:
    """What it says, or the default if it is not there or "". InvalidInput, naming the field, if it says no duration."""
    return parse_duration(default if value is None or value == "" else value, field=field) // _MICROSECOND
