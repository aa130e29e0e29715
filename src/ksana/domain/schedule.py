"""What a schedule does when its time has come, decided as a value; the store writes it in one transaction.

The cursor is the planned instant that is next; it is looked at from its fire time (cursor + jitter) on. Then
every instant whose fire time has come is *due*, and each is either fired or part of a skipped range:

  on time   now - fire time <= misfire_grace: fired, whatever the policy
  late      FIRE_NOW           one run for the whole delay: if an on-time instant is due, it is that run and
                               all late ones are skipped, else the latest late one fires
            SKIP               all are skipped; the instant of a `once` is MISSED
            CATCH_UP_LIMITED   the latest `catchup_limit` fire, the earlier ones are skipped

Fire times ascend with their instants, so that the late ones come first and what is skipped is one unbroken
range, counted and never listed: a decision costs the same however long nobody looked. It fires at most
MAX_FIRES; if more are due, the cursor stands at the next, and the next decision goes on.

`schedule_spec` is the definition, `schedule_instants` its instants; both are imported from here.
"""

from datetime import datetime, timedelta
from itertools import islice, takewhile

from ksana.domain.errors import KsanaError
from ksana.domain.schedule_instants import (
    TICK,
    count_instants,
    fire_time,
    instants_after,
    jitter_of,
    latest_instants,
    next_instant,
    next_instants,
)
from ksana.domain.schedule_spec import MisfirePolicy, ScheduleKind, ScheduleSpec, document_002_misfire
from ksana.domain.states import OccurrenceOutcome
from ksana.domain.values import immutable

__all__ = [
    "MAX_FIRES",
    "FireDecision",
    "MisfirePolicy",
    "ScheduleKind",
    "ScheduleSpec",
    "ScheduleStuck",
    "SkippedRange",
    "count_instants",
    "decide_fire",
    "document_002_misfire",
    "fire_time",
    "instants_after",
    "jitter_of",
    "latest_instants",
    "next_instant",
    "next_instants",
    "passed_over",
]

MAX_FIRES = 1_000


class ScheduleStuck(KsanaError):
    """The instant after the last one decided is not later than it. Park the schedule: it would fire for ever."""

    code = "SCHEDULE_STUCK"


@immutable
class SkippedRange:
    """`count` consecutive instants that are not run, from `first` to `last`."""

    first: datetime
    last: datetime
    count: int
    outcome: OccurrenceOutcome
    reason: str


@immutable
class FireDecision:
    """What becomes of the due instants, and where the cursor stands then; None if no instant is left."""

    fires: tuple[datetime, ...]
    skipped: tuple[SkippedRange, ...]
    next_cursor: datetime | None
    next_fire_at: datetime | None


def decide_fire(spec: ScheduleSpec, schedule_id: int, cursor: datetime, now: datetime) -> FireDecision:
    """What to run and what to skip at `now`, for a schedule whose next planned instant is `cursor`.

    Nothing, with the cursor unmoved, if its fire time has not come: the clock was set back. A cursor that is not
    an instant of the schedule, because that was changed, stands for the first one after it. Raises ScheduleStuck
    if the instant after those decided is not later than they are.
    """
    first = next_instant(spec, cursor - TICK)
    if first is None:
        return _decision(spec, schedule_id, None)
    delay = now - fire_time(spec, schedule_id, first)
    if delay < timedelta(0):
        return _decision(spec, schedule_id, first)
    if delay > spec.misfire_grace:
        return _decide_many(spec, schedule_id, first, now)
    # None is late: nearly every decision, of one instant or a few, at a quarter of the cost of those with some that are.
    fires, following = [first], _following(spec, first)
    room = _room(spec)
    while following is not None and fire_time(spec, schedule_id, following) <= now and len(fires) < room:
        fires.append(following)
        following = _following(spec, following)
    return _decision(spec, schedule_id, following, fires=tuple(fires))


def passed_over(spec: ScheduleSpec, cursor: datetime | None, now: datetime, reason: str) -> SkippedRange | None:
    """The instants from `cursor` to `now`, which are not to be run for that reason; None if there are none."""
    if cursor is None or cursor > now:
        return None
    count = count_instants(spec, cursor - TICK, now)
    if count == 0:
        return None
    first, last = next_instant(spec, cursor - TICK), latest_instants(spec, cursor - TICK, now, 1)
    # The only instant of a `once` is not passed over, it is missed.
    outcome = OccurrenceOutcome.MISSED if spec.kind is ScheduleKind.ONCE else OccurrenceOutcome.SKIPPED
    return SkippedRange(first or cursor, last[-1], count, outcome, reason)


def _decide_many(spec: ScheduleSpec, schedule_id: int, first: datetime, now: datetime) -> FireDecision:
    before = first - TICK
    # The last late instant; `before` if none is late.
    late_until = _last_fired_by(spec, schedule_id, before, now - spec.misfire_grace - TICK)
    due_until = _last_fired_by(spec, schedule_id, before, now)
    on_time = _on_time(spec, late_until, due_until)
    late = count_instants(spec, before, late_until)
    kept = latest_instants(spec, before, late_until, _late_quota(spec, on_time))
    skipped = () if late == len(kept) else (_skipped(spec, first, late_until, kept, late - len(kept)),)
    following = _following(spec, on_time[-1] if on_time else late_until)
    return _decision(spec, schedule_id, following, fires=(*kept, *on_time), skipped=skipped)


def _last_fired_by(spec: ScheduleSpec, schedule_id: int, before: datetime, moment: datetime) -> datetime:
    """The last instant later than `before` whose fire time has come by `moment`; `before` if there is none."""
    latest = latest_instants(spec, before, moment, 2)
    # Jitter can hold back only the latest: the one before it fires before the latest is planned.
    if latest and fire_time(spec, schedule_id, latest[-1]) > moment:
        latest.pop()
    return latest[-1] if latest else before


def _on_time(spec: ScheduleSpec, late_until: datetime, due_until: datetime) -> list[datetime]:
    due = takewhile(lambda instant: instant <= due_until, instants_after(spec, late_until))
    return list(islice(due, _room(spec)))


def _room(spec: ScheduleSpec) -> int:
    """For how many that are on time."""
    return MAX_FIRES - (spec.catchup_limit if spec.misfire is MisfirePolicy.CATCH_UP_LIMITED else 0)


def _late_quota(spec: ScheduleSpec, on_time: list[datetime]) -> int:
    """How many late instants, the latest ones, fire all the same."""
    if spec.misfire is MisfirePolicy.CATCH_UP_LIMITED:
        return spec.catchup_limit
    return 1 if spec.misfire is MisfirePolicy.FIRE_NOW and not on_time else 0


def _skipped(
    spec: ScheduleSpec, first: datetime, late_until: datetime, kept: list[datetime], count: int
) -> SkippedRange:
    """The late instants but those that are kept, which are the latest."""
    last = late_until
    if kept:
        (last,) = latest_instants(spec, first - TICK, kept[0] - TICK, 1)
    outcome, reason = _skip_reason(spec)
    return SkippedRange(first, last, count, outcome, reason)


def _skip_reason(spec: ScheduleSpec) -> tuple[OccurrenceOutcome, str]:
    if spec.misfire is MisfirePolicy.FIRE_NOW:
        return OccurrenceOutcome.SKIPPED, "misfire_collapsed"
    if spec.misfire is MisfirePolicy.CATCH_UP_LIMITED:
        return OccurrenceOutcome.SKIPPED, "catchup_limit"
    if spec.kind is ScheduleKind.ONCE:
        return OccurrenceOutcome.MISSED, "once_missed"
    return OccurrenceOutcome.SKIPPED, "misfire_skip"


def _following(spec: ScheduleSpec, last: datetime) -> datetime | None:
    following = next_instant(spec, last)
    if following is not None and following <= last:
        raise ScheduleStuck(f"the instant after {last.isoformat()} would be {following.isoformat()}")
    return following


def _decision(
    spec: ScheduleSpec,
    schedule_id: int,
    cursor: datetime | None,
    *,
    fires: tuple[datetime, ...] = (),
    skipped: tuple[SkippedRange, ...] = (),
) -> FireDecision:
    fires_at = None if cursor is None else fire_time(spec, schedule_id, cursor)
    return FireDecision(fires=fires, skipped=skipped, next_cursor=cursor, next_fire_at=fires_at)
