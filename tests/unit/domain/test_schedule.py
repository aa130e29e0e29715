"""Schedules: their definition, their instants, and what becomes of those that are due."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.domain.cron_oracle import utc

from ksana.domain import schedule as schedule_module
from ksana.domain.cron import LATEST
from ksana.domain.errors import InvalidInput, KsanaError
from ksana.domain.schedule import (
    MAX_FIRES,
    FireDecision,
    MisfirePolicy,
    ScheduleKind,
    ScheduleSpec,
    ScheduleStuck,
    SkippedRange,
    count_instants,
    decide_fire,
    fire_time,
    jitter_of,
    latest_instants,
    next_instant,
    next_instants,
)
from ksana.domain.states import OccurrenceOutcome

TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOON = utc("2026-01-01 12:00")


def once(**fields: Any) -> ScheduleSpec:
    return ScheduleSpec(ScheduleKind.ONCE, **{"run_at": NOON, **fields})


def every(period: timedelta, **fields: Any) -> ScheduleSpec:
    return ScheduleSpec(ScheduleKind.EVERY, every=period, **{"anchor": NOON, **fields})


def cron(text: str, **fields: Any) -> ScheduleSpec:
    return ScheduleSpec(ScheduleKind.CRON, cron=text, **fields)


# The definition -------------------------------------------------------------------------------------------------------


def test_datetimes_become_utc_and_cron_six_fields() -> None:
    spec = cron("*/5 * * * *", start_at=datetime(2026, 1, 1, 13, tzinfo=timezone(HOUR)))
    assert (spec.start_at, spec.cron) == (NOON, "0 */5 * * * *")
    assert spec.start_at is not None
    assert spec.start_at.tzinfo is UTC


def test_an_interval_counts_from_its_start_unless_told() -> None:
    assert every(HOUR, anchor=None, start_at=NOON).anchor == NOON


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("run_at", {"kind": ScheduleKind.ONCE}),
        ("every", {"kind": ScheduleKind.EVERY, "anchor": NOON}),
        ("anchor", {"kind": ScheduleKind.EVERY, "every": HOUR}),
        ("cron", {"kind": ScheduleKind.CRON}),
        ("cron", {"kind": ScheduleKind.ONCE, "run_at": NOON, "cron": "* * * * *"}),
        ("every", {"kind": ScheduleKind.CRON, "cron": "* * * * *", "every": HOUR}),
        ("run_at", {"kind": ScheduleKind.EVERY, "every": HOUR, "anchor": NOON, "run_at": NOON}),
        ("every", {"kind": ScheduleKind.EVERY, "every": timedelta(milliseconds=99), "anchor": NOON}),
        ("every", {"kind": ScheduleKind.EVERY, "every": timedelta(days=40_000), "anchor": NOON}),
        ("cron", {"kind": ScheduleKind.CRON, "cron": "61 * * * *"}),
        ("timezone", {"kind": ScheduleKind.CRON, "cron": "* * * * *", "timezone": "Mars/Olympus"}),
        ("timezone", {"kind": ScheduleKind.ONCE, "run_at": NOON, "timezone": ""}),
        ("run_at", {"kind": ScheduleKind.ONCE, "run_at": NOON.replace(tzinfo=None)}),
        ("start_at", {"kind": ScheduleKind.CRON, "cron": "* * * * *", "start_at": NOON.replace(tzinfo=None)}),
        ("end_at", {"kind": ScheduleKind.CRON, "cron": "* * * * *", "start_at": NOON, "end_at": NOON - TICK}),
        (
            "end_at",
            {"kind": ScheduleKind.CRON, "cron": "* * * * *", "end_at": datetime.max.replace(tzinfo=timezone(-HOUR))},
        ),
        ("run_at", {"kind": ScheduleKind.ONCE, "run_at": NOON, "end_at": NOON - TICK}),
        ("run_at", {"kind": ScheduleKind.ONCE, "run_at": NOON, "start_at": NOON + TICK}),
        ("run_at", {"kind": ScheduleKind.ONCE, "run_at": datetime.max.replace(tzinfo=UTC)}),
        ("anchor", {"kind": ScheduleKind.EVERY, "every": HOUR, "anchor": datetime.min.replace(tzinfo=UTC)}),
        ("jitter", {"kind": ScheduleKind.ONCE, "run_at": NOON, "jitter": -TICK}),
        ("jitter", {"kind": ScheduleKind.ONCE, "run_at": NOON, "jitter": timedelta(days=8)}),
        ("misfire_grace", {"kind": ScheduleKind.ONCE, "run_at": NOON, "misfire_grace": -TICK}),
        ("catchup_limit", {"kind": ScheduleKind.ONCE, "run_at": NOON, "catchup_limit": -1}),
        ("catchup_limit", {"kind": ScheduleKind.ONCE, "run_at": NOON, "catchup_limit": 101}),
        (
            "catchup_limit",
            {"kind": ScheduleKind.ONCE, "run_at": NOON, "misfire": MisfirePolicy.CATCH_UP_LIMITED, "catchup_limit": 0},
        ),
    ],
)
def test_a_definition_that_cannot_be_kept_is_refused_and_the_field_named(field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        ScheduleSpec(**fields)
    assert caught.value.field == field


# Instants -------------------------------------------------------------------------------------------------------------


def test_a_once_has_one_instant() -> None:
    assert next_instants(once(), None, limit=9) == [NOON]
    assert next_instant(once(), NOON - TICK) == NOON
    assert next_instant(once(), NOON) is None
    assert count_instants(once(), NOON - TICK, NOON) == 1
    assert count_instants(once(), NOON, NOON + DAY) == 0
    assert latest_instants(once(), NOON - DAY, NOON + DAY, 5) == [NOON]


def test_an_interval_begins_at_its_anchor_and_never_drifts() -> None:
    spec = every(timedelta(milliseconds=100))
    assert next_instants(spec, None, limit=3) == [NOON, NOON + SECOND / 10, NOON + SECOND / 5]
    assert next_instant(spec, NOON) == NOON + SECOND / 10
    far = NOON + timedelta(days=3650)
    assert next_instant(spec, far - TICK) == far
    assert count_instants(spec, NOON - TICK, far) == 3650 * 864_000 + 1


def test_an_interval_has_no_instant_before_its_anchor() -> None:
    assert next_instant(every(HOUR), NOON - 9 * DAY) == NOON
    assert count_instants(every(HOUR), NOON - 9 * DAY, NOON - TICK) == 0
    assert latest_instants(every(HOUR), NOON - 9 * DAY, NOON - TICK, 5) == []


def test_bounds_are_kept_and_the_end_is_included() -> None:
    spec = every(HOUR, start_at=NOON + 90 * MINUTE, end_at=NOON + 4 * HOUR)
    expected = [NOON + 2 * HOUR, NOON + 3 * HOUR, NOON + 4 * HOUR]
    assert next_instants(spec, None, limit=9) == expected
    assert latest_instants(spec, NOON - DAY, NOON + DAY, 9) == expected
    assert count_instants(spec, NOON - DAY, NOON + DAY) == 3


def test_a_cron_is_read_in_its_zone_and_within_its_bounds() -> None:
    spec = cron(
        "30 2 * * *", timezone="Europe/Zurich", start_at=utc("2026-03-28 01:30"), end_at=utc("2026-03-30 00:30")
    )
    expected = [utc("2026-03-28 01:30"), utc("2026-03-29 01:00"), utc("2026-03-30 00:30")]
    assert next_instants(spec, None, limit=9) == expected
    assert latest_instants(spec, utc("2026-01-01"), utc("2027-01-01"), 2) == expected[1:]
    assert count_instants(spec, utc("2026-01-01"), utc("2027-01-01")) == 3


def test_a_cron_without_a_beginning_begins_in_1970() -> None:
    assert next_instant(cron("@yearly"), None) == utc("1970-01-01")
    assert next_instant(cron("@yearly", anchor=NOON), None) == utc("2027-01-01")


def test_instants_end_with_the_calendar() -> None:
    forever = datetime.max.replace(tzinfo=UTC)
    for spec in (every(timedelta(days=30_000)), cron("@yearly"), every(SECOND, end_at=forever)):
        assert next_instant(spec, LATEST) is None
        assert next_instant(spec, forever) is None
        (last,) = latest_instants(spec, NOON, forever, 1)
        assert last <= LATEST
        assert count_instants(spec, last - TICK, forever) == 1


# Jitter ---------------------------------------------------------------------------------------------------------------


def test_jitter_is_the_same_on_every_instance_and_differs_between_schedules() -> None:
    spec = cron("* * * * *", jitter=30 * SECOND)
    assert jitter_of(spec, 7, NOON) == timedelta(microseconds=13_300_300)
    assert jitter_of(spec, 7, NOON) == jitter_of(replace(spec, end_at=NOON), 7, NOON)
    assert jitter_of(spec, 7, NOON) != jitter_of(spec, 8, NOON)
    assert fire_time(spec, 7, NOON) == NOON + jitter_of(spec, 7, NOON)


def test_jitter_is_spread_evenly_over_its_range() -> None:
    spec = cron("* * * * *", jitter=10 * SECOND)
    delays = [jitter_of(spec, schedule_id, NOON) for schedule_id in range(2000)]
    assert min(delays) >= timedelta(0)
    assert max(delays) <= 10 * SECOND
    for tenth in range(10):
        assert 130 < sum(tenth * SECOND <= delay < (tenth + 1) * SECOND for delay in delays) < 270


def test_without_jitter_an_instant_fires_as_planned() -> None:
    assert fire_time(once(), 1, NOON) == NOON


def test_jitter_never_reaches_the_following_instant() -> None:
    spec = every(10 * SECOND, jitter=HOUR)
    instants = next_instants(spec, None, limit=200)
    for earlier, later in pairwise(instants):
        assert earlier <= fire_time(spec, 1, earlier) < later


# Decisions ------------------------------------------------------------------------------------------------------------


def decide(spec: ScheduleSpec, cursor: datetime, now: datetime) -> FireDecision:
    return decide_fire(spec, 1, cursor, now)


def minutes(*numbers: int) -> tuple[datetime, ...]:
    return tuple(NOON + number * MINUTE for number in numbers)


def skipped(first: int, last: int, reason: str) -> tuple[SkippedRange, ...]:
    start, end = minutes(first, last)
    return (SkippedRange(start, end, last - first + 1, OccurrenceOutcome.SKIPPED, reason),)


@pytest.mark.parametrize("policy", MisfirePolicy)
def test_an_instant_within_its_grace_fires_whatever_the_policy(policy: MisfirePolicy) -> None:
    spec = every(HOUR, misfire=policy)
    decision = decide(spec, NOON, NOON + MINUTE)
    assert decision == FireDecision((NOON,), (), NOON + HOUR, NOON + HOUR)


def test_all_instants_on_time_fire() -> None:
    spec = every(20 * SECOND, misfire=MisfirePolicy.SKIP)
    assert len(decide(spec, NOON, NOON + MINUTE).fires) == 4


def test_fire_now_runs_the_latest_late_instant_for_the_whole_delay() -> None:
    decision = decide(every(MINUTE, misfire_grace=SECOND), NOON, NOON + 10 * MINUTE + 30 * SECOND)
    assert decision.fires == minutes(10)
    assert decision.skipped == skipped(0, 9, "misfire_collapsed")
    assert decision.next_cursor == NOON + 11 * MINUTE


def test_fire_now_lets_an_instant_on_time_be_the_run_for_the_delay() -> None:
    decision = decide(every(MINUTE, misfire_grace=SECOND), NOON, NOON + 10 * MINUTE)
    assert decision.fires == minutes(10)
    assert decision.skipped == skipped(0, 9, "misfire_collapsed")


def test_skip_skips_what_is_late_and_fires_what_is_on_time() -> None:
    spec = every(MINUTE, misfire_grace=SECOND, misfire=MisfirePolicy.SKIP)
    late = decide(spec, NOON, NOON + 10 * MINUTE + 30 * SECOND)
    assert (late.fires, late.skipped) == ((), skipped(0, 10, "misfire_skip"))
    assert late.next_cursor == NOON + 11 * MINUTE
    punctual = decide(spec, NOON, NOON + 10 * MINUTE)
    assert (punctual.fires, punctual.skipped) == (minutes(10), skipped(0, 9, "misfire_skip"))


def test_catch_up_runs_the_latest_few_besides_what_is_on_time() -> None:
    spec = every(MINUTE, misfire_grace=SECOND, misfire=MisfirePolicy.CATCH_UP_LIMITED, catchup_limit=3)
    late = decide(spec, NOON, NOON + 10 * MINUTE + 30 * SECOND)
    assert (late.fires, late.skipped) == (minutes(8, 9, 10), skipped(0, 7, "catchup_limit"))
    punctual = decide(spec, NOON, NOON + 10 * MINUTE)
    assert (punctual.fires, punctual.skipped) == (minutes(7, 8, 9, 10), skipped(0, 6, "catchup_limit"))


def test_catch_up_runs_all_if_they_are_few_enough() -> None:
    spec = every(MINUTE, misfire_grace=SECOND, misfire=MisfirePolicy.CATCH_UP_LIMITED, catchup_limit=3)
    decision = decide(spec, NOON, NOON + 2 * MINUTE + 30 * SECOND)
    assert (decision.fires, decision.skipped) == (minutes(0, 1, 2), ())


def test_a_once_past_its_grace_is_missed_if_it_may_be_skipped() -> None:
    decision = decide(once(misfire=MisfirePolicy.SKIP), NOON, NOON + MINUTE + TICK)
    missed = SkippedRange(NOON, NOON, 1, OccurrenceOutcome.MISSED, "once_missed")
    assert decision == FireDecision((), (missed,), None, None)


@pytest.mark.parametrize("policy", [MisfirePolicy.FIRE_NOW, MisfirePolicy.CATCH_UP_LIMITED])
def test_a_once_past_its_grace_fires_late_otherwise(policy: MisfirePolicy) -> None:
    assert decide(once(misfire=policy), NOON, NOON + DAY) == FireDecision((NOON,), (), None, None)


def test_nothing_is_decided_before_the_fire_time_so_a_clock_set_back_repeats_nothing() -> None:
    spec = every(HOUR)
    fired = decide(spec, NOON, NOON)
    assert fired.next_cursor == NOON + HOUR
    assert decide(spec, NOON + HOUR, NOON - DAY) == FireDecision((), (), NOON + HOUR, NOON + HOUR)


def test_an_instant_waits_for_its_jitter() -> None:
    spec = every(HOUR, jitter=MINUTE)
    due = fire_time(spec, 1, NOON)
    assert due > NOON
    assert decide(spec, NOON, due - TICK) == FireDecision((), (), NOON, due)
    decision = decide(spec, NOON, due)
    assert decision.fires == (NOON,)
    assert decision.next_fire_at == fire_time(spec, 1, NOON + HOUR)


def test_grace_counts_from_the_fire_time() -> None:
    spec = every(HOUR, jitter=30 * MINUTE, misfire=MisfirePolicy.SKIP)
    due = fire_time(spec, 1, NOON)
    assert decide(spec, NOON, due + MINUTE).fires == (NOON,)
    assert decide(spec, NOON, due + MINUTE + TICK).fires == ()


def test_a_burst_is_bounded_and_the_next_decision_goes_on() -> None:
    spec = every(timedelta(milliseconds=100), misfire_grace=DAY)
    now = NOON + 250 * SECOND
    cursor: datetime | None = NOON
    sizes: list[int] = []
    fired: list[datetime] = []
    while cursor is not None and cursor <= now:
        decision = decide(spec, cursor, now)
        sizes.append(len(decision.fires))
        fired += decision.fires
        cursor = decision.next_cursor
    assert sizes == [MAX_FIRES, MAX_FIRES, 501]
    assert fired == next_instants(spec, None, limit=2501)


def test_a_burst_with_catch_up_stays_within_the_same_bound() -> None:
    spec = every(
        SECOND, misfire_grace=HOUR, misfire=MisfirePolicy.CATCH_UP_LIMITED, catchup_limit=100, end_at=NOON + DAY
    )
    decision = decide(spec, NOON, NOON + 3 * HOUR)
    assert len(decision.fires) == MAX_FIRES
    assert decision.next_cursor == decision.fires[-1] + SECOND


@pytest.mark.parametrize("zone", ["UTC", "Europe/Zurich"])
@pytest.mark.parametrize("policy", MisfirePolicy)
def test_a_year_of_missed_seconds_is_one_range(zone: str, policy: MisfirePolicy) -> None:
    spec = cron("* * * * * *", timezone=zone, misfire=policy, misfire_grace=timedelta(0))
    now = NOON + 365 * DAY + SECOND / 2
    decision = decide(spec, NOON, now)
    (outage,) = decision.skipped
    assert outage.first == NOON
    assert outage.count + len(decision.fires) == 365 * 86_400 + 1
    assert decision.next_cursor == NOON + 365 * DAY + SECOND


def test_a_cursor_that_is_no_instant_stands_for_the_next_one() -> None:
    spec = every(HOUR)
    assert decide(spec, NOON + MINUTE, NOON + 30 * MINUTE) == FireDecision((), (), NOON + HOUR, NOON + HOUR)
    assert decide(spec, NOON + MINUTE, NOON + HOUR).fires == (NOON + HOUR,)
    assert decide(replace(spec, end_at=NOON), NOON + HOUR, NOON + DAY) == FireDecision((), (), None, None)


def test_a_schedule_that_would_not_move_on_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_module, "next_instant", lambda _spec, _after: NOON)
    with pytest.raises(ScheduleStuck) as caught:
        decide(every(HOUR), NOON, NOON)
    assert isinstance(caught.value, KsanaError)
    assert caught.value.code == "SCHEDULE_STUCK"


# Properties -----------------------------------------------------------------------------------------------------------

MOMENTS = st.datetimes(NOON.replace(tzinfo=None), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
CRONS = st.sampled_from(
    [
        "* * * * * *",
        "*/7 * * * * *",
        "*/5 * * * *",
        "30 2 * * *",
        "0 0/20 1-3 * * *",
        "0 9 * * MON-FRI",
        "@hourly",
        "0 0 L * *",
    ]
)
PLANS = st.one_of(
    MOMENTS.map(lambda moment: {"kind": ScheduleKind.ONCE, "run_at": moment}),
    st.tuples(st.timedeltas(timedelta(milliseconds=100), 2 * DAY), MOMENTS).map(
        lambda parts: {"kind": ScheduleKind.EVERY, "every": parts[0], "anchor": parts[1]}
    ),
    st.tuples(CRONS, st.sampled_from(["UTC", "America/New_York", "Europe/Zurich", "Australia/Lord_Howe"])).map(
        lambda parts: {"kind": ScheduleKind.CRON, "cron": parts[0], "timezone": parts[1]}
    ),
)
DELAYS = st.one_of(st.timedeltas(timedelta(0), 3 * MINUTE), st.timedeltas(timedelta(0), 400 * DAY))


@st.composite
def specs(draw: st.DrawFn) -> ScheduleSpec:
    plan: dict[str, Any] = dict(draw(PLANS))
    if plan["kind"] is not ScheduleKind.ONCE:
        bounds = sorted(draw(st.lists(MOMENTS, min_size=2, max_size=2)))
        plan["start_at"], plan["end_at"] = (draw(st.sampled_from([None, bound])) for bound in bounds)
    return ScheduleSpec(
        **plan,
        jitter=draw(st.one_of(st.just(timedelta(0)), st.timedeltas(timedelta(0), HOUR))),
        misfire=draw(st.sampled_from(MisfirePolicy)),
        catchup_limit=draw(st.integers(1, 100)),
        misfire_grace=draw(st.one_of(st.just(MINUTE), st.timedeltas(timedelta(0), 2 * HOUR))),
    )


@given(specs(), MOMENTS, DELAYS, st.integers(1, 10**6))
@settings(deadline=None, max_examples=500)
def test_every_due_instant_is_decided_once_and_the_cursor_follows(
    spec: ScheduleSpec, after: datetime, delay: timedelta, schedule_id: int
) -> None:
    cursor = next_instant(spec, after)
    assume(cursor is not None)
    assert cursor is not None
    now = fire_time(spec, schedule_id, cursor) + delay
    decision = decide_fire(spec, schedule_id, cursor, now)
    assert decision == schedule_module._decide_many(spec, schedule_id, cursor, now)  # also where none is late
    last = max([*decision.fires, *(block.last for block in decision.skipped)])

    decided = len(decision.fires) + sum(block.count for block in decision.skipped)
    assert decided == count_instants(spec, cursor - TICK, last)
    assert list(decision.fires) == sorted(set(decision.fires))
    for block in decision.skipped:
        assert count_instants(spec, block.first - TICK, block.last) == block.count
        assert not any(block.first <= instant <= block.last for instant in decision.fires)
        assert now - fire_time(spec, schedule_id, block.last) > spec.misfire_grace
    for instant in decision.fires:
        assert next_instant(spec, instant - TICK) == instant
        assert fire_time(spec, schedule_id, instant) <= now

    assert decision.next_cursor == next_instant(spec, last)
    assert len(decision.fires) <= MAX_FIRES
    if decision.next_cursor is not None:
        assert decision.next_fire_at == fire_time(spec, schedule_id, decision.next_cursor)
        capped = (
            spec.misfire is MisfirePolicy.CATCH_UP_LIMITED and len(decision.fires) >= MAX_FIRES - spec.catchup_limit
        )
        assert decision.next_fire_at > now or len(decision.fires) == MAX_FIRES or capped


@given(specs(), MOMENTS, st.timedeltas(timedelta(0), 30 * DAY), st.integers(0, 20))
@settings(deadline=None, max_examples=300)
def test_counting_listing_and_looking_back_agree(
    spec: ScheduleSpec, after: datetime, length: timedelta, n: int
) -> None:
    until = after + length
    following = next_instants(spec, after, limit=200)
    until = min(until, following[-1]) if len(following) == 200 else until
    inside = [instant for instant in following if instant <= until]
    assert count_instants(spec, after, until) == len(inside)
    assert latest_instants(spec, after, until, n) == inside[max(len(inside) - n, 0) :]


@given(specs(), st.lists(MOMENTS, min_size=2, max_size=12).map(sorted))
@settings(deadline=None, max_examples=100)
def test_looking_now_and_then_loses_nothing(spec: ScheduleSpec, looks: list[datetime]) -> None:
    begin = looks[0]
    cursor = first = next_instant(spec, begin)
    decided = 0
    for now in looks[1:]:
        if cursor is None:
            break
        decision = decide_fire(spec, 1, cursor, now)
        decided += len(decision.fires) + sum(block.count for block in decision.skipped)
        cursor = decision.next_cursor
    if first is not None:
        end = datetime.max.replace(tzinfo=UTC) if cursor is None else cursor - TICK
        assert decided == count_instants(spec, begin, end)
