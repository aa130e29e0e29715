"""The checker finds each mistake that is planted into a clean history, and nothing in the clean one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.checker import check
from tests.faults.history import (
    AttemptRow,
    Band,
    Dump,
    Execution,
    History,
    InstanceRow,
    Occurrence,
    Operation,
    Schedule,
)
from tests.faults.hits import Hit
from tests.faults.matching import Limits

START = 1_800_000_000.0
SCHEDULES = (
    Schedule("often", cron="*/10 * * * * *", most_at_once=1),
    Schedule("careful", cron="*/30 * * * * *", at_most_once=True, most_at_once=1),
)
PLANNED = [("often", START + 10 * each) for each in range(1, 10)] + [
    ("careful", START + 30 * each) for each in (1, 2, 3)
]
LIMITS = Limits(idle=2.0)


def clean() -> History:
    """Two schedules over a hundred seconds: each instant has a run, with one attempt that took half a second. The clocks agree."""
    dump = Dump(
        START + 100,
        frozenset(schedule.name for schedule in SCHEDULES),
        [_execution(number, *fire) for number, fire in enumerate(PLANNED, 1)],
        [AttemptRow(number, 1, "SUCCEEDED", "a", at, at + 0.5) for number, (_, at) in enumerate(PLANNED, 1)],
        [Occurrence(name, at, at, 1, "FIRED", None) for name, at in PLANNED],
        [InstanceRow("a", "host:1", "ALIVE", 9.0), InstanceRow("b", "host:2", "ALIVE", 9.0)],
    )
    return History(
        operations=[Operation("create", schedule, START, START + 0.2, "ok", 201) for schedule in SCHEDULES],
        hits=[_hit(number, *fire) for number, fire in enumerate(PLANNED, 1)],
        bands=[],
        dump=dump,
        ended_seen={1: "SUCCESS"},
        read_wall=START + 100,
        wall_minus_mono=0.0,
        pids={1: "i0", 2: "i1"},
    )


def _execution(number: int, name: str, at: float) -> Execution:
    return Execution(number, name, at, "schedule", "SUCCESS", None, 1, 1, at, at + 0.5)


def _hit(number: int, name: str, at: float, *, began: float | None = None, attempt: int = 1) -> Hit:
    began = at + 0.1 if began is None else began
    return Hit(
        f"{number}/{attempt}",
        name,
        at,
        str(number),
        attempt,
        f"key{number}",
        "http",
        "fast",
        began,
        began,
        began + 0.3,
        "answered",
    )


def rows(history: History, **changed: object) -> None:
    history.dump = replace(history.dump, **changed)  # type: ignore[arg-type]


def lost_by_the_target(history: History) -> None:
    """The rows say that it ran."""
    del history.hits[3]


def lost_altogether(history: History) -> None:
    del history.hits[3]
    rows(history, executions=[each for each in history.dump.executions if each.id != 4])


def skipped_without_leave(history: History) -> None:
    del history.hits[3]
    fates = [
        replace(each, outcome="SKIPPED") if each.first == START + 40 else each for each in history.dump.occurrences
    ]
    rows(history, occurrences=fates)


def phantom(history: History) -> None:
    history.hits.append(_hit(99, "often", START + 45))


def run_of_nobody(history: History) -> None:
    history.hits.append(_hit(99, "never asked for", START + 40))


def doubled_row(history: History) -> None:
    rows(history, executions=[*history.dump.executions, _execution(99, *PLANNED[2])])


def doubled_fire(history: History) -> None:
    """Two runs for one instant, and only the target knows."""
    history.hits.append(_hit(99, *PLANNED[2], began=START + 31))


def lying_header(history: History) -> None:
    """Each instant has its run by name; but one of them came long before its time."""
    history.hits[8].began = history.hits[8].began_wall = START + 41
    history.hits[8].ended = START + 41.2


def stale_write(history: History) -> None:
    """Epoch 1 was taken after epoch 2 had begun."""
    extra = AttemptRow(1, 2, "SUCCEEDED", "b", START + 10.2, START + 10.4)
    rows(
        history,
        attempts=[*history.dump.attempts, extra],
        executions=[replace(each, epoch=2) if each.id == 1 else each for each in history.dump.executions],
    )


def end_that_changed(history: History) -> None:
    history.ended_seen[1] = "FAILED"


def excess_attempt(history: History) -> None:
    history.hits.append(_hit(1, *PLANNED[0], began=START + 12, attempt=2))


def second_attempt_of_the_careful(history: History) -> None:
    """A fault explains it, but such a job must never run twice."""
    history.bands.append(Band("kill", "i0", START + 30.2, START + 35))
    history.hits.append(_hit(10, *PLANNED[9], began=START + 45, attempt=2))


def overlap(history: History) -> None:
    history.hits[0].ended = START + 25


def late_takeover(history: History) -> None:
    history.bands.append(Band("kill", "i0", START + 10.2, START + 50))
    history.hits[0].how = "gone"
    history.hits.append(_hit(1, *PLANNED[0], began=START + 39, attempt=2))


def stuck(history: History) -> None:
    dead = replace(history.dump.executions[0], status="RUNNING", owner="gone", ended_wall=None)
    rows(history, executions=[dead, *history.dump.executions[1:]])
    history.ended_seen.clear()


def orphan(history: History) -> None:
    history.orphans.append(4711)


def forgotten_schedule(history: History) -> None:
    rows(history, schedules=frozenset({"often"}))


def forged_callback(history: History) -> None:
    forged = replace(history.dump.executions[0], status="CALLBACK_SUCCESS")
    rows(history, executions=[forged, *history.dump.executions[1:]])
    history.ended_seen.clear()


def double_callback(history: History) -> None:
    rows(history, callbacks=[(1, "RECEIVED"), (1, "RECEIVED")])


@pytest.mark.parametrize(
    ("plant", "figure"),
    [
        (lost_by_the_target, "lost"),
        (lost_altogether, "lost"),
        (skipped_without_leave, "lost"),
        (phantom, "phantoms"),
        (run_of_nobody, "phantoms"),
        (doubled_row, "duplicated"),
        (doubled_fire, "duplicated"),
        (lying_header, "not_in_their_time"),
        (stale_write, "stale_writes"),
        (end_that_changed, "stale_writes"),
        (excess_attempt, "excess_attempts"),
        (second_attempt_of_the_careful, "excess_attempts"),
        (overlap, "overlaps"),
        (stuck, "stuck"),
        (orphan, "orphans"),
        (forgotten_schedule, "acknowledged_lost"),
        (forged_callback, "forged"),
        (double_callback, "double_callbacks"),
    ],
)
def test_a_planted_mistake_is_found(plant: Callable[[History], None], figure: str) -> None:
    history = clean()
    plant(history)
    verdict = check(history, LIMITS)
    assert verdict.figures[figure] >= 1
    assert verdict.violations


def test_a_takeover_that_took_too_long_is_found() -> None:
    history = clean()
    late_takeover(history)
    verdict = check(history, LIMITS)
    assert verdict.figures["takeover_max"] == pytest.approx(28.8)
    assert any(text.startswith("I11") for text in verdict.violations)


def test_a_clean_history_is_clean() -> None:
    verdict = check(clean(), LIMITS)
    assert verdict.violations == []
    assert verdict.figures["n"] == len(PLANNED)
    assert {fate for *_, fate in verdict.targets} == {"executed"}


def test_a_fault_explains_one_more_attempt() -> None:
    history = clean()
    history.bands.append(Band("kill", "i0", START + 10.2, START + 14))
    history.hits[0].ended, history.hits[0].how = START + 10.2, "gone"
    history.hits.append(_hit(1, *PLANNED[0], began=START + 13, attempt=2))
    verdict = check(history, LIMITS)
    assert verdict.violations == []
    assert verdict.figures["takeover_max"] == pytest.approx(2.8)
    assert verdict.figures["recovery_max"] == pytest.approx(6.1)


def test_a_miss_that_the_policy_allows_and_a_row_tells_is_no_loss() -> None:
    history = clean()
    skipped_without_leave(history)
    history.operations[0] = replace(history.operations[0], schedule=replace(SCHEDULES[0], may_miss=True))
    verdict = check(history, LIMITS)
    assert (verdict.figures["lost"], verdict.figures["missed"]) == (0, 1)
    assert verdict.violations == []


def test_an_operation_of_which_nobody_knows_may_go_either_way() -> None:
    history = clean()
    history.operations[0] = replace(history.operations[0], outcome="info")
    assert check(history, LIMITS).violations == []
    history.hits = [hit for hit in history.hits if hit.schedule != "often"]
    assert check(history, LIMITS).violations == []


def test_what_was_due_just_now_is_not_judged() -> None:
    history = clean()
    history.read_wall = START + 91
    del history.hits[8]
    verdict = check(history, LIMITS)
    assert verdict.violations == []
    assert verdict.figures["n"] == len(PLANNED) - 2
