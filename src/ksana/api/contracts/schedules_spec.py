"""A schedule between its definition and what two contracts write: one way in, one way out, two sets of names.

Both ways go through *parts*: a mapping by the names of the domain, with texts for instants and durations. A part that is
missing, null or empty says nothing, and gets the contract's default.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from ksana.api.contracts.shapes import renamed
from ksana.api.times import parse_instant, rfc3339_or_none
from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.schedule import MisfirePolicy, ScheduleKind, ScheduleSpec

Parts = Mapping[str, Any]
Kind = Literal["once", "every", "cron"]
Policy = Literal["FIRE_NOW", "SKIP", "CATCH_UP_LIMITED"]
MOST_CATCHUP = 100
BY_KIND = {ScheduleKind.ONCE: "run_at", ScheduleKind.EVERY: "every", ScheduleKind.CRON: "cron"}
_NOTHING = timedelta(0)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a schedule gets where it says nothing."""

    misfire: MisfirePolicy = MisfirePolicy.FIRE_NOW
    misfire_grace: timedelta = timedelta(minutes=1)
    catchup_limit: int = 5


@dataclass(frozen=True, slots=True)
class Wording:
    """A contract's names for the parts, and its defaults for a kind and an interval."""

    names: Mapping[str, str]
    defaults: Callable[[ScheduleKind, timedelta | None], Defaults]


def read_spec(given: Parts, wording: Wording, *, now: datetime, previous: ScheduleSpec | None = None) -> ScheduleSpec:
    """The definition that these parts say; `previous` is the one that it replaces. InvalidInput in the contract's names."""
    parts = {name: value for name, value in given.items() if value is not None and value != ""}
    with renamed(wording.names):
        kind = ScheduleKind(parts["kind"])
        every, start_at = _duration(parts, "every"), _instant(parts, "start_at")
        defaults = wording.defaults(kind, every)
        return ScheduleSpec(
            kind=kind,
            run_at=_instant(parts, "run_at"),
            every=every,
            cron=parts.get("cron"),
            timezone=parts.get("timezone", "UTC"),
            anchor=_anchor(every, start_at, previous, now) if kind is ScheduleKind.EVERY else None,
            start_at=start_at,
            end_at=_instant(parts, "end_at"),
            jitter=_duration(parts, "jitter") or _NOTHING,
            misfire=MisfirePolicy(parts.get("misfire", defaults.misfire)),
            catchup_limit=parts.get("catchup_limit", defaults.catchup_limit),
            misfire_grace=_duration(parts, "misfire_grace", defaults.misfire_grace),
        )


def parts_of(spec: ScheduleSpec) -> dict[str, Any]:
    """Every part of a definition; None where it has none."""
    return {
        "kind": spec.kind.value,
        "run_at": rfc3339_or_none(spec.run_at),
        "every": None if spec.every is None else format_duration(spec.every),
        "cron": spec.cron,
        "timezone": spec.timezone,
        "start_at": rfc3339_or_none(spec.start_at),
        "end_at": rfc3339_or_none(spec.end_at),
        "jitter": format_duration(spec.jitter),
        "misfire": spec.misfire.value,
        "catchup_limit": spec.catchup_limit,
        "misfire_grace": format_duration(spec.misfire_grace),
    }


def own_parts_of(spec: ScheduleSpec, wording: Wording) -> dict[str, Any]:
    """The parts that are not the contract's defaults: reading these gives the same definition."""
    defaults = wording.defaults(spec.kind, spec.every)
    usual = {
        "timezone": "UTC",
        "jitter": format_duration(_NOTHING),
        "misfire": defaults.misfire.value,
        "catchup_limit": defaults.catchup_limit,
        "misfire_grace": format_duration(defaults.misfire_grace),
    }
    parts = parts_of(spec)
    return {name: value for name, value in parts.items() if value is not None and usual.get(name) != value}


def merged(spec: ScheduleSpec, given: Parts, wording: Wording) -> dict[str, Any]:
    """The parts of a definition with some given anew. Another kind drops what only the old kind has."""
    present = own_parts_of(spec, wording)
    if given.get("kind") not in {None, spec.kind.value}:
        present.pop(BY_KIND[spec.kind])
    return present | {name: value for name, value in given.items() if name != "kind" or value}


def _anchor(
    every: timedelta | None, start_at: datetime | None, previous: ScheduleSpec | None, now: datetime
) -> datetime:
    """From where the grid counts: `start_at`, else its creation. A change that leaves the interval keeps the grid."""
    if previous is None or previous.anchor is None or previous.every != every:
        return start_at or now
    kept = previous.start_at == start_at or (start_at is None and previous.anchor <= now)
    return previous.anchor if kept else start_at or now


def _instant(parts: Parts, name: str) -> datetime | None:
    return parse_instant(parts[name], field=name) if name in parts else None


def _duration(parts: Parts, name: str, default: Any = None) -> Any:
    return parse_duration(parts[name], field=name) if name in parts else default
