"""Which wall-clock seconds a cron expression matches, in a world without time zones.

A wall-clock second is a number: seconds since 1970-01-01 00:00:00 on the same wall. A day either matches or
not, and every matching day has the same times, so that the next, the previous and the number of matches need
no walk: sorted values and bisection within a day, and the matching days of a month, which depend only on its
length and its first weekday.
"""

from bisect import bisect_left, bisect_right
from calendar import isleap
from dataclasses import dataclass, field
from datetime import MAXYEAR, date

from ksana.domain.cron_fields import LAST_DAY, LAST_WORKDAY, CronFields, parse_fields
from ksana.domain.errors import InvalidInput

DAY = 86_400
HORIZON_YEARS = 50
"""How far a search goes. A day that can match at all does so every 40 years at the latest: 29 February on a
given weekday, across a century that is no leap year."""

_EPOCH = date(1970, 1, 1).toordinal()
_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class CronExpression:
    """A parsed cron expression. Equal if its normalised text is; `parse_cron` makes it."""

    normalized: str
    fields: CronFields = field(compare=False, repr=False)
    _months: dict[tuple[int, int, int], tuple[int, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Matching days by month, first weekday and length, filled as they are asked for: 91 at most."""

    def __str__(self) -> str:
        return self.normalized

    @property
    def fixed(self) -> bool:
        """Whether second, minute and hour are written without `*`."""
        return self.fields.fixed

    def ever_matches(self) -> bool:
        """Whether there is any day it matches."""
        # 28 years hold every kind of year: common or leap, beginning on any weekday.
        return any(self._days_of(year, month) for year in range(2000, 2028) for month in self.fields.months)

    def next_local(self, second: int) -> int | None:
        """The first match at or after a wall-clock second; None if there is none for HORIZON_YEARS."""
        day, rest = divmod(second, DAY)
        if self._matches_day(day):
            found = self._time_from(rest)
            if found is not None:
                return day * DAY + found
        following = self._day_from(day + 1)
        return None if following is None else following * DAY + self._time_first()

    def previous_local(self, second: int) -> int | None:
        """The last match at or before a wall-clock second; None if there is none for HORIZON_YEARS."""
        day, rest = divmod(second, DAY)
        if self._matches_day(day):
            found = self._time_until(rest)
            if found is not None:
                return day * DAY + found
        preceding = self._day_until(day - 1)
        return None if preceding is None else preceding * DAY + self._time_last()

    def count_local(self, start: int, stop: int) -> int:
        """The number of matches from `start` to before `stop`."""
        if stop <= start:
            return 0
        days = self._days(start // DAY, stop // DAY)
        return days * self._per_day() + self._before(stop) - self._before(start)

    def _before(self, second: int) -> int:
        """Matches on the same day before this second."""
        day, rest = divmod(second, DAY)
        if not self._matches_day(day):
            return 0
        fields = self.fields
        minutes, second = divmod(rest, 60)
        hour, minute = divmod(minutes, 60)
        count = bisect_left(fields.hours, hour) * len(fields.minutes) * len(fields.seconds)
        if hour in fields.hours:
            count += bisect_left(fields.minutes, minute) * len(fields.seconds)
            if minute in fields.minutes:
                count += bisect_left(fields.seconds, second)
        return count

    # Times of a day --------------------------------------------------------------------------------

    def _per_day(self) -> int:
        return len(self.fields.hours) * len(self.fields.minutes) * len(self.fields.seconds)

    def _time_first(self) -> int:
        return self.fields.hours[0] * 3600 + self.fields.minutes[0] * 60 + self.fields.seconds[0]

    def _time_last(self) -> int:
        return self.fields.hours[-1] * 3600 + self.fields.minutes[-1] * 60 + self.fields.seconds[-1]

    def _time_from(self, rest: int) -> int | None:
        hours, minutes, seconds = self.fields.hours, self.fields.minutes, self.fields.seconds
        whole, second = divmod(rest, 60)
        hour, minute = divmod(whole, 60)
        if hour in hours:
            if minute in minutes and second <= seconds[-1]:
                return whole * 60 + seconds[bisect_left(seconds, second)]
            if minute < minutes[-1]:
                return hour * 3600 + minutes[bisect_right(minutes, minute)] * 60 + seconds[0]
        if hour < hours[-1]:
            return hours[bisect_right(hours, hour)] * 3600 + minutes[0] * 60 + seconds[0]
        return None

    def _time_until(self, rest: int) -> int | None:
        hours, minutes, seconds = self.fields.hours, self.fields.minutes, self.fields.seconds
        whole, second = divmod(rest, 60)
        hour, minute = divmod(whole, 60)
        if hour in hours:
            if minute in minutes and second >= seconds[0]:
                return whole * 60 + seconds[bisect_right(seconds, second) - 1]
            if minute > minutes[0]:
                return hour * 3600 + minutes[bisect_left(minutes, minute) - 1] * 60 + seconds[-1]
        if hour > hours[0]:
            return hours[bisect_left(hours, hour) - 1] * 3600 + minutes[-1] * 60 + seconds[-1]
        return None

    # Days, as numbers since 1970-01-01 -------------------------------------------------------------

    def _matches_day(self, day: int) -> bool:
        written = date.fromordinal(day + _EPOCH)
        return written.day in self._days_of(written.year, written.month)

    def _day_from(self, day: int) -> int | None:
        start = date.fromordinal(day + _EPOCH)
        days = self._days_of(start.year, start.month)
        if days and start.day <= days[-1]:
            return day - start.day + days[bisect_left(days, start.day)]
        for year in range(start.year, min(start.year + HORIZON_YEARS, MAXYEAR) + 1):
            for month in self.fields.months:
                if (year > start.year or month > start.month) and (days := self._days_of(year, month)):
                    return date(year, month, days[0]).toordinal() - _EPOCH
        return None

    def _day_until(self, day: int) -> int | None:
        start = date.fromordinal(day + _EPOCH)
        days = self._days_of(start.year, start.month)
        if days and start.day >= days[0]:
            return day - start.day + days[bisect_right(days, start.day) - 1]
        for year in range(start.year, max(start.year - HORIZON_YEARS, 1) - 1, -1):
            for month in reversed(self.fields.months):
                if (year < start.year or month < start.month) and (days := self._days_of(year, month)):
                    return date(year, month, days[-1]).toordinal() - _EPOCH
        return None

    def _days(self, start: int, stop: int) -> int:
        """The number of matching days from `start` to before `stop`."""
        first, last = date.fromordinal(start + _EPOCH), date.fromordinal(stop + _EPOCH)
        count = bisect_left(self._days_of(last.year, last.month), last.day)
        count -= bisect_left(self._days_of(first.year, first.month), first.day)
        for months in range(first.year * 12 + first.month - 1, last.year * 12 + last.month - 1):
            count += len(self._days_of(months // 12, months % 12 + 1))
        return count

    def _days_of(self, year: int, month: int) -> tuple[int, ...]:
        """The days of that month that match, ascending."""
        if month not in self.fields.months:
            return ()
        length = 29 if month == 2 and isleap(year) else _LENGTHS[month]
        key = month, date(year, month, 1).weekday(), length
        days = self._months.get(key)
        if days is None:
            days = self._months[key] = _matching_days(self.fields, first_weekday=key[1], length=length)
        return days


def parse_cron(text: str, *, field: str = "cron_expr") -> CronExpression:
    """A cron expression of five or six fields, or a macro such as `@daily`.

    InvalidInput on `field` if it cannot be read, the message naming the cron field; or if no day ever matches.
    """
    fields = parse_fields(text, field=field)
    expression = CronExpression(fields.text, fields)
    if not expression.ever_matches():
        raise InvalidInput(field, "day-of-month: none of the months ever has such a day: it would never fire")
    return expression


def _matching_days(fields: CronFields, *, first_weekday: int, length: int) -> tuple[int, ...]:
    """The matching days of a month that begins on that weekday (Monday is 0) and has that many days."""
    found = []
    for day in range(1, length + 1):
        weekday = (first_weekday + day - 1) % 7 + 1
        in_month = _matches_day_of_month(fields, day, weekday, length)
        in_week = _matches_day_of_week(fields, day, weekday, length)
        if (in_month and in_week) if fields.both_days else (in_month or in_week):
            found.append(day)
    return tuple(found)


def _matches_day_of_month(fields: CronFields, day: int, weekday: int, length: int) -> bool:
    if day in fields.days or (day == length and LAST_DAY in fields.days):
        return True
    # The last of Monday to Friday: the month's last day, or the Friday that at most two days follow.
    last_workday = (day == length and weekday <= 5) or (day >= length - 2 and weekday == 5)
    return last_workday and LAST_WORKDAY in fields.days


def _matches_day_of_week(fields: CronFields, day: int, weekday: int, length: int) -> bool:
    for number in {weekday, weekday % 7}:
        if number in fields.weekdays or (number, (day + 6) // 7) in fields.weekdays:
            return True
        if day + 7 > length and (number, LAST_DAY) in fields.weekdays:
            return True
    return False
