"""A schedule in words, for people who do not read cron."""

from functools import lru_cache

from cron_descriptor import FormatError, Options, get_description  # type: ignore[import-untyped]

from ksana.api.contracts.cron_chinese import cron_in_chinese
from ksana.api.times import rfc3339
from ksana.domain.cron import parse_cron
from ksana.domain.durations import format_duration
from ksana.domain.schedule import ScheduleSpec

_OPTIONS = Options(locale_code="en_US", use_24hour_time_format=True)
_EITHER, _BOTH = ", or on", ", and only on"


def in_words(spec: ScheduleSpec) -> str:
    """`At 09:00, Monday through Friday`; `Every 5m`; `Once, at 2026-01-31T12:00:00Z`."""
    if spec.cron is not None:
        return cron_in_words(spec.cron)
    if spec.every is not None:
        return f"Every {format_duration(spec.every)}"
    return "" if spec.run_at is None else f"Once, at {rfc3339(spec.run_at)}"


def in_languages(spec: ScheduleSpec) -> dict[str, str] | None:
    """A cron in the console's languages; None of other kinds, which it words itself."""
    return None if spec.cron is None else {"en": _english(spec.cron), "zh": _chinese(spec.cron)}


def _english(cron: str) -> str:
    """The library leaves out that a time is every day's."""
    words = cron_in_words(cron)
    fields = parse_cron(cron, field="cron").fields
    return f"{words}, every day" if fields.fixed and fields.text.endswith(" * * *") else words


@lru_cache(maxsize=4096)
def _chinese(cron: str) -> str:
    return cron_in_chinese(parse_cron(cron, field="cron").fields)


@lru_cache(maxsize=4096)
def cron_in_words(cron: str) -> str:
    """A valid expression in words; the expression itself where the words would be wrong."""
    parsed = parse_cron(cron, field="cron")
    days, weekdays = parsed.normalized.split()[3::2]
    if any("," in part and ("L" in part or "#" in part) for part in (days, weekdays)):
        return parsed.normalized  # the library reads L and # only by themselves
    try:
        words = str(get_description(parsed.normalized, _OPTIONS))
    except (FormatError, ValueError, IndexError, KeyError):
        return parsed.normalized
    # The library says "or" wherever both are given; ours must both match if one of them begins with a star.
    return words.replace(_EITHER, _BOTH) if parsed.fields.both_days else words
