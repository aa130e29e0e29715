"""Cron in Chinese words. Written by hand: the library's Chinese leaves names in English and the order of words as it is there."""

from collections.abc import Iterable, Sequence

from ksana.domain.cron_fields import LAST_DAY, LAST_WORKDAY, CronFields, Value

_WEEKDAYS = "日一二三四五六日"
_MOST_TIMES = 8
"""Times of day that are told one by one."""


def cron_in_chinese(fields: CronFields) -> str:
    """`每周一至周五 09:00`, `每 15 分钟`, `每月最后一天 18:00`."""
    second, minute, hour, day, month, weekday = fields.text.split()
    date = _date(fields, day, month, weekday)
    times = len(fields.seconds) * len(fields.minutes) * len(fields.hours)
    if fields.fixed and times <= _MOST_TIMES:
        return f"{date or '每天'} {_clock_times(fields)}"
    time = _hours(hour, fields.hours) + _minutes(second, minute, hour, fields) + _seconds(second, fields.seconds)
    if not date and hour != "*" and not hour.startswith("*/"):
        date = "每天"
    return f"{date} {time}".strip()


def _clock_times(fields: CronFields) -> str:
    shows_seconds = fields.seconds != (0,)
    return "、".join(
        f"{hour:02}:{minute:02}" + (f":{second:02}" if shows_seconds else "")
        for hour in fields.hours
        for minute in fields.minutes
        for second in fields.seconds
    )


def _hours(text: str, hours: Sequence[int]) -> str:
    if text == "*":
        return ""
    step = _step(text)
    return f"每 {step} 小时" if step else f"{_spans(hours)} 点"


def _minutes(second: str, minute: str, hour: str, fields: CronFields) -> str:
    if minute == "*":
        return "" if second == "*" or _step(second) else "每分钟"
    step = _step(minute)
    if step:
        return f"每 {step} 分钟"
    if minute == "0" and second == "0":
        return "整点" if hour != "*" else "每小时整点"
    return ("每小时" if hour == "*" else "") + f"第 {_spans(fields.minutes)} 分"


def _seconds(text: str, seconds: Sequence[int]) -> str:
    if text == "0":
        return ""
    step = _step(text)
    return "每秒" if text == "*" else f"每 {step} 秒" if step else f"第 {_spans(seconds)} 秒"


def _date(fields: CronFields, day: str, month: str, weekday: str) -> str:
    """Nothing where it is every day."""
    months = _months(month, fields.months)
    if day == "*" and weekday == "*":
        return f"{months}每天" if months else ""
    in_month, in_week = _days(day, fields.days), _weekdays(fields.weekdays)
    if weekday == "*":
        return (months or "每月") + in_month
    counted = any(isinstance(each, tuple) for each in fields.weekdays)
    every = (months or "每月") if counted else f"{months}每"
    if day == "*":
        return every + in_week
    return f"{months or '每月'}{in_month}{'且为' if fields.both_days else '或'}{'' if fields.both_days else every}{in_week}"


def _months(text: str, months: Sequence[int]) -> str:
    if text == "*":
        return ""
    step = _step(text)
    return f"每 {step} 个月的" if step else f"{_spans(months)} 月"


def _days(text: str, days: Iterable[int]) -> str:
    step = _step(text)
    if step:
        return f"每 {step} 天"
    numbers = [day for day in sorted(days) if day > 0]
    named = [name for day, name in ((LAST_WORKDAY, "最后一个工作日"), (LAST_DAY, "最后一天")) if day in days]
    return "、".join([*([f" {_spans(numbers)} 日"] if numbers else []), *named])


def _weekdays(weekdays: Iterable[Value]) -> str:
    plain = sorted({each % 7 or 7 for each in weekdays if isinstance(each, int)})
    counted = sorted(each for each in weekdays if isinstance(each, tuple))
    return "、".join([*_weekday_spans(plain), *(_counted(weekday, nth) for weekday, nth in counted)])


def _weekday_spans(weekdays: Sequence[int]) -> list[str]:
    return ["至".join(f"周{_WEEKDAYS[each]}" for each in span) for span in _runs(weekdays)]


def _counted(weekday: int, nth: int) -> str:
    return f"{'最后一' if nth == LAST_DAY else f'第{_WEEKDAYS[nth]}'}个周{_WEEKDAYS[weekday]}"


def _step(text: str) -> int | None:
    """The n of `*/n`."""
    base, _, step = text.partition("/")
    return int(step) if base == "*" and step.isdecimal() else None


def _spans(values: Sequence[int]) -> str:
    """`8 至 18`, `1、15`."""
    return "、".join(" 至 ".join(map(str, span)) for span in _runs(values))


def _runs(values: Sequence[int]) -> list[list[int]]:
    """The first and the last of each unbroken run; two in a row are told by themselves."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return [part for run in runs for part in ([[run[0], run[-1]]] if len(run) > 2 else [[each] for each in run])]
