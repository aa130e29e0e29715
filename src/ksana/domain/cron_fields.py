"""Cron expressions as text: what may be written, and which values each field stands for.

Read by hand, term by term, without regular expressions: every number is in range before anything is expanded, and
an error names the cron field and says why. The language is cronsim's, and the tests compare with it.
"""

from dataclasses import dataclass
from enum import IntEnum

from ksana.domain.errors import InvalidInput

MAX_TEXT = 256
LAST_DAY = -1
LAST_WORKDAY = -2

MACROS: dict[str, str] = {
    "@YEARLY": "0 0 0 1 1 *",
    "@ANNUALLY": "0 0 0 1 1 *",
    "@MONTHLY": "0 0 0 1 * *",
    "@WEEKLY": "0 0 0 * * 0",
    "@DAILY": "0 0 0 * * *",
    "@MIDNIGHT": "0 0 0 * * *",
    "@HOURLY": "0 0 * * * *",
    "@MINUTELY": "0 * * * * *",
    "@SECONDLY": "* * * * * *",
}


class Field(IntEnum):
    SECOND = 0
    MINUTE = 1
    HOUR = 2
    DAY = 3
    MONTH = 4
    WEEKDAY = 5


Value = int | tuple[int, int]

_NAMES = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
_RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class _FieldError(Exception):
    """Why a term of a field cannot be used."""


@dataclass(frozen=True, slots=True)
class CronFields:
    """The values each field stands for. `days` may hold LAST_DAY and LAST_WORKDAY. `weekdays` are 0 to 7, both
    of them Sunday, or pairs of a weekday and which one of the month it is, LAST_DAY for the last.
    """

    text: str
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: tuple[int, ...]
    weekdays: frozenset[Value]
    both_days: bool
    """Whether day-of-month and day-of-week must both match, or either. As in Debian's cron: both if one of them
    begins with `*`."""
    fixed: bool
    """Whether second, minute and hour are written without `*`; `cron.py` says what hangs on it."""


def parse_fields(text: str, *, field: str) -> CronFields:
    """The fields of a cron expression; InvalidInput on `field` if it is none, its message naming the cron field."""
    parts = _split(text, field)
    try:
        values = [_values(Field(index), part) for index, part in enumerate(parts)]
    except _FieldError as problem:
        raise InvalidInput(field, str(problem)) from None
    seconds, minutes, hours, days, months, weekdays = values
    return CronFields(
        text=" ".join(parts),
        seconds=_numbers(seconds),
        minutes=_numbers(minutes),
        hours=_numbers(hours),
        days=frozenset(_numbers(days)),
        months=_numbers(months),
        weekdays=frozenset(weekdays),
        both_days=parts[3].startswith("*") or parts[5].startswith("*"),
        fixed=not any("*" in part for part in parts[:3]),
    )


def _split(text: str, field: str) -> list[str]:
    """The six parts, upper-case, macros resolved and a missing second filled in."""
    if len(text) > MAX_TEXT:
        raise InvalidInput(field, f"is longer than {MAX_TEXT} characters")
    if not (text.isascii() and text.isprintable()):
        raise InvalidInput(field, "must be plain ASCII without control characters")
    written = text.strip().upper()
    if written.startswith("@"):
        if written not in MACROS:
            raise InvalidInput(field, f"{written.lower()} is not one of {', '.join(MACROS).lower()}")
        written = MACROS[written]
    parts = written.split()
    if len(parts) == 5:
        parts.insert(0, "0")
    if len(parts) != 6:
        raise InvalidInput(field, f"has {len(parts)} fields, not five (minute first) or six (second first)")
    return parts


def _values(field: Field, text: str) -> set[Value]:
    values: set[Value] = set()
    for term in text.split(","):
        try:
            values.update(_term(field, term))
        except _FieldError as problem:
            raise _FieldError(f"{_NAMES[field]}: {problem}") from None
    return values


def _numbers(values: set[Value]) -> tuple[int, ...]:
    return tuple(sorted(value for value in values if isinstance(value, int)))


def _term(field: Field, term: str) -> set[Value]:
    """One of * a a-b, with or without /step; or, as a day, L LW; or, as a weekday, a#n aL. Else _FieldError."""
    base, slash, step = term.partition("/")
    if not base:
        raise _FieldError(f"{term!r} does not say where to count from" if slash else "a list has an empty item")
    counted = _counted_in_month(field, base)
    if counted is not None:
        if slash:
            raise _FieldError(f"{term!r} cannot have a step")
        return {counted}
    first, last = _span(field, base)
    if slash:
        # As in Vixie's cron, `a/step` goes on to the end of the field.
        last = last if base == "*" or "-" in base else _RANGES[field][1]
    return set(range(first, last + 1, _step(field, step) if slash else 1))


def _counted_in_month(field: Field, base: str) -> Value | None:
    if field is Field.DAY:
        return {"L": LAST_DAY, "LW": LAST_WORKDAY}.get(base)
    if field is not Field.WEEKDAY:
        return None
    weekday, numbered, nth = base.partition("#")
    if numbered:
        if nth not in {"1", "2", "3", "4", "5"}:
            raise _FieldError(f"{base!r}: the number after # is not between 1 and 5")
        return _number(field, weekday), int(nth)
    if not base.endswith("L"):
        return None
    if not base[:-1].isdigit():
        raise _FieldError(f"{base!r}: L follows the number of a weekday, as in 5L, the last Friday")
    return _number(field, base[:-1]), LAST_DAY


def _span(field: Field, base: str) -> tuple[int, int]:
    if base == "*":
        return _RANGES[field]
    begin, dash, end = base.partition("-")
    first = _number(field, begin)
    last = _number(field, end) if dash else first
    if last < first:
        raise _FieldError(f"range {base!r} runs backwards")
    return first, last


def _step(field: Field, step: str) -> int:
    low, high = _RANGES[field]
    size = high - low + 1
    if not step.isdigit() or not 1 <= int(step) <= size:
        raise _FieldError(f"step {step!r} is not a number between 1 and {size}")
    return int(step)


def _number(field: Field, text: str) -> int:
    names = {Field.MONTH: _MONTHS, Field.WEEKDAY: _WEEKDAYS}.get(field, ())
    low, high = _RANGES[field]
    if text in names:
        return names.index(text) + low
    if not text.isdigit():
        raise _FieldError(f"{text!r} is not a number" + (f" or one of {', '.join(names)}" if names else ""))
    if not low <= int(text) <= high:
        raise _FieldError(f"{text} is not between {low} and {high}")
    return int(text)
