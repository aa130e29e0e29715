"""Durations as people write them: Go style (`1h30m`, `500ms`), seconds (`90`, `1.5`), ISO 8601 (`PT1H30M`, `P1DT2H`)."""

import re
from datetime import timedelta

from ksana.domain.errors import InvalidInput

MICROSECONDS: dict[str, int] = {
    "us": 1,
    "µs": 1,  # micro sign
    "μs": 1,  # Greek mu
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
MAX_TEXT = 64
LONGEST = timedelta(days=36_525)

_GO_PART = re.compile(r"(\d{1,18})(?:\.(\d{1,9}))?(us|µs|μs|ms|s|m|h|d)", re.ASCII)
_SECONDS = re.compile(r"(\d{1,18})(?:\.(\d{1,9}))?", re.ASCII)
_ISO = re.compile(
    r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,9}))?S)?)?",
    re.ASCII,
)
_HINT = "write it as 1h30m, 500ms, seconds, or ISO 8601 (PT1H30M)"


def parse_duration(value: object, *, field: str) -> timedelta:
    """The duration that `value` says; InvalidInput naming `field` if it is none, negative, or over a hundred years.

    Exact to the microsecond: `0.1s` is 100 ms, not a float near it. What is finer than that is cut off.
    """
    if isinstance(value, timedelta):
        return _bounded(value, field)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(field, f"not a duration: {_HINT}")
    if isinstance(value, int) and value.bit_length() > 63:  # and so before Python refuses to print it
        raise InvalidInput(field, "a duration cannot be negative" if value < 0 else "longer than a hundred years")
    # Six decimals: a sum such as 0.1 + 0.2 has seventeen.
    text = (f"{value:.6f}" if isinstance(value, float) else str(value)).strip()
    if text.startswith("-"):
        raise InvalidInput(field, "a duration cannot be negative")
    if not text or len(text) > MAX_TEXT:
        raise InvalidInput(field, f"not a duration: {_HINT}")
    micros = _seconds(text)
    if micros is None:
        micros = _iso(text) if text[0] == "P" else _go(text)
    if micros is None:
        raise InvalidInput(field, f"not a duration: {text!r}; {_HINT}")
    if micros > LONGEST // timedelta(microseconds=1):
        raise InvalidInput(field, f"{text!r} is longer than a hundred years")
    return timedelta(microseconds=micros)


def format_duration(value: timedelta) -> str:
    """Go style, shortest exact form: `1h30m`, `500ms`, `0s`."""
    rest = value // timedelta(microseconds=1)
    if rest < 0:
        raise ValueError("a duration cannot be negative")
    parts: list[str] = []
    for unit in ("h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, MICROSECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _bounded(value: timedelta, field: str) -> timedelta:
    if value < timedelta(0):
        raise InvalidInput(field, "a duration cannot be negative")
    if value > LONGEST:
        raise InvalidInput(field, "longer than a hundred years")
    return value


def _scaled(whole: str | None, fraction: str | None, unit: int) -> int:
    scaled_fraction = int((fraction or "0").ljust(9, "0")) * unit // 1_000_000_000
    return int(whole or 0) * unit + scaled_fraction


def _seconds(text: str) -> int | None:
    found = _SECONDS.fullmatch(text)
    return _scaled(found[1], found[2], MICROSECONDS["s"]) if found else None


def _go(text: str) -> int | None:
    total, position = 0, 0
    while position < len(text):
        part = _GO_PART.match(text, position)
        if not part:
            return None
        total += _scaled(part[1], part[2], MICROSECONDS[part[3]])
        position = part.end()
    return total


def _iso(text: str) -> int | None:
    found = _ISO.fullmatch(text)
    if not found or text in {"P", "PT"} or text.endswith("T"):
        return None
    weeks, days, hours, minutes, seconds, fraction = found.groups()
    whole_days = int(weeks or 0) * 7 + int(days or 0)
    whole_minutes = (whole_days * 24 + int(hours or 0)) * 60 + int(minutes or 0)
    return whole_minutes * MICROSECONDS["m"] + _scaled(seconds, fraction, MICROSECONDS["s"])
