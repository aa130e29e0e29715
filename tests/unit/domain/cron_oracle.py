"""When a cron expression fires, by brute force: a watchman looks at a wall clock every second. No code of `ksana.domain.cron`.

He keeps the latest time that the clock has shown. For a fixed expression he fires if anything matches among the times
that it shows for the first time now, which are one in an ordinary second, many after a gap, and none in a fold.
"""

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)
MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
WEEKDAYS = {name: number for number, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])}


@dataclass(frozen=True)
class Oracle:
    """`text` has six fields, in capitals."""

    text: str

    @cached_property
    def fixed(self) -> bool:
        return "*" not in "".join(self.text.split()[:3])

    @cached_property
    def seconds(self) -> set[int]:
        return {second for second in range(60) if _listed(self.text.split()[0], second, 0, 59)}

    @cached_property
    def minutes(self) -> set[int]:
        return {minute for minute in range(60) if _listed(self.text.split()[1], minute, 0, 59)}

    @cached_property
    def hours(self) -> set[int]:
        return {hour for hour in range(24) if _listed(self.text.split()[2], hour, 0, 23)}

    @cached_property
    def _days(self) -> dict[date, bool]:
        return {}

    def matches(self, shown: datetime) -> bool:
        if shown.second not in self.seconds or shown.minute not in self.minutes or shown.hour not in self.hours:
            return False
        day = shown.date()
        if day not in self._days:
            self._days[day] = self.matches_day(day)
        return self._days[day]

    def matches_day(self, day: date) -> bool:
        days, months, weekdays = self.text.split()[3:]
        if not _listed(months, day.month, 1, 12, MONTHS):
            return False
        in_month = any(_is_day(term, day) for term in days.split(","))
        in_week = any(_is_weekday(term, day) for term in weekdays.split(","))
        if days.startswith("*") or weekdays.startswith("*"):
            return in_month and in_week
        return in_month or in_week

    def instants(self, zone: ZoneInfo, start: datetime, stop: datetime) -> list[datetime]:
        """Every instant from `start` to before `stop`. In the day before `start` the clock must not have been changed."""
        found = []
        now = start
        latest = _clock(zone, start) - SECOND
        while now < stop:
            shown = _clock(zone, now)
            candidates = _between(latest, shown) if self.fixed else [shown]
            if any(self.matches(candidate) for candidate in candidates):
                found.append(now)
            latest = max(latest, shown)
            now += SECOND
        return found


def _clock(zone: ZoneInfo, now: datetime) -> datetime:
    """What the wall clock shows."""
    return now.astimezone(zone).replace(tzinfo=None, fold=0)


def _between(latest: datetime, shown: datetime) -> list[datetime]:
    """The times after `latest` until `shown`."""
    return [latest + number * SECOND for number in range(1, (shown - latest) // SECOND + 1)]


def _listed(terms: str, value: int, low: int, high: int, names: dict[str, int] | None = None) -> bool:
    return any(_in_term(term, value, low, high, names or {}) for term in terms.split(","))


def _in_term(term: str, value: int, low: int, high: int, names: dict[str, int]) -> bool:
    def number(text: str) -> int:
        return names[text] if text in names else int(text)

    span, _, step = term.partition("/")
    first, last = low, high
    if span != "*":
        begin, _, end = span.partition("-")
        first = number(begin)
        last = number(end) if end else (high if step else first)
    return first <= value <= last and (value - first) % int(step or 1) == 0


def _is_day(term: str, day: date) -> bool:
    last = calendar.monthrange(day.year, day.month)[1]
    if term == "L":
        return day.day == last
    if term == "LW":
        workdays = [number for number in range(1, last + 1) if day.replace(day=number).weekday() < 5]
        return day.day == workdays[-1]
    return _in_term(term, day.day, 1, 31, {})


def _is_weekday(term: str, day: date) -> bool:
    weekday = day.isoweekday()
    numbers = {weekday, weekday % 7}
    if "#" in term:
        name, _, which = term.partition("#")
        return (
            WEEKDAYS.get(name, int(name) if name.isdigit() else -1) in numbers and (day.day - 1) // 7 == int(which) - 1
        )
    if term.endswith("L"):
        return int(term[:-1]) in numbers and (day + timedelta(days=7)).month != day.month
    return any(_in_term(term, number, 0, 7, WEEKDAYS) for number in numbers)


def utc(text: str) -> datetime:
    """`2026-03-08 07:00` or with seconds, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
