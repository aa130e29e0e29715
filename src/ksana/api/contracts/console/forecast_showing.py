"""What is planned, by target or by hour. For ten thousand schedules some seconds' work: not for the event loop."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any

from ksana.api.contracts.console import activity_showing as showing
from ksana.api.times import rfc3339
from ksana.domain.forecast import Span, planned_by_hour, planned_count, planned_instants
from ksana.domain.schedule import ScheduleSpec
from ksana.store.activity_requests import TargetName
from ksana.store.view_requests import PlannedSchedule

FIRST = 10
"""Instants that are listed of each target."""
LARGEST = 5
"""Targets that are named of each hour."""
Target = tuple[str, str]
ByTarget = dict[Target, list[PlannedSchedule]]


def targets_shown(planned: Iterable[PlannedSchedule], span: Span, size: int, *, limited: bool) -> dict[str, Any]:
    """The targets that have anything planned, soonest first; `size` of them in full."""
    soonest: list[tuple[datetime, Target]] = []
    found = _by_target(planned)
    for target, schedules in found.items():
        firsts = [instant for each in schedules for instant in planned_instants(each.schedule, span, 1)]
        if firsts:
            soonest.append((min(firsts), target))
    shown = [_shown(found[target], span, limited=limited) for _, target in sorted(soonest)[:size]]
    return {"items": shown, "total": len(soonest)}


def _by_target(planned: Iterable[PlannedSchedule]) -> ByTarget:
    found: ByTarget = defaultdict(list)
    for each in planned:
        found[each.kind, each.key].append(each)
    return found


def _shown(schedules: Sequence[PlannedSchedule], span: Span, *, limited: bool) -> dict[str, Any]:
    instants = merge(*(planned_instants(each.schedule, span, FIRST) for each in schedules))
    return {
        "target": _target(schedules[0]),
        "scheduleIds": [each.schedule.key for each in schedules],
        "count": sum(planned_count(each.schedule, span) for each in schedules),
        "countIsExact": not limited,
        "instants": [rfc3339(instant) for instant in islice(instants, FIRST)],
    }


def _target(planned: PlannedSchedule) -> dict[str, Any]:
    name = TargetName(planned.key, planned.name, planned.contract)
    job_id = planned.schedule.job_id
    return showing.target("workflow", planned.key, name) if job_id is None else showing.job_target(job_id, name)


def hours_shown(planned: Sequence[PlannedSchedule], span: Span) -> dict[str, Any]:
    """The hours in which anything is planned, and what takes the most of each."""
    hours: dict[datetime, Counter[Target]] = defaultdict(Counter)
    alike: dict[tuple[ScheduleSpec, datetime], dict[datetime, int]] = {}
    for each in planned:
        # Many schedules have the same expression, and so the same instants.
        key = each.schedule.spec, span.of(each.schedule).first
        if key not in alike:
            alike[key] = planned_by_hour(each.schedule, span)
        for hour, count in alike[key].items():
            hours[hour][each.kind, each.key] += count
    known = {target: _target(schedules[0]) for target, schedules in _by_target(planned).items()}
    return {"hours": [_hour(hour, counts, known) for hour, counts in sorted(hours.items())]}


def _hour(hour: datetime, counts: Counter[Target], known: dict[Target, dict[str, Any]]) -> dict[str, Any]:
    largest = [{"target": known[target], "count": count} for target, count in counts.most_common(LARGEST)]
    return {"at": rfc3339(hour), "count": counts.total(), "targets": largest}
