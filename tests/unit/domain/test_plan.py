"""What a plan decides, from nothing but how many of its tasks stand how."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import IllegalTransition, InvalidInput
from ksana.domain.plan import (
    PLAN_EDGES,
    TASK_EDGES,
    Admit,
    Budget,
    End,
    NextWave,
    Nothing,
    Pause,
    Plan,
    PlanMove,
    PlanSpec,
    PlanStatus,
    TaskMove,
    TaskStatus,
    Wave,
    WaveTally,
    decide,
    wave_of,
)
from ksana.domain.plan_reading import read_plan, stages_as_dag

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def plan(waves: list[Wave] | None = None, **more: object) -> Plan:
    spec = PlanSpec("p", ({"name": "s"},), ("s",), max_concurrency=2, waves=tuple(waves or ()))
    fields = {"status": PlanStatus.RUNNING, "tenants": 10, "created_at": NOW, "updated_at": NOW, **more}
    return Plan(1, "p", fields.pop("spec", spec), **fields)  # type: ignore[arg-type]


def test_tasks_are_begun_as_there_is_room() -> None:
    assert decide(plan(), [WaveTally(waiting=9, running=1)]) == Admit(1)
    assert decide(plan(), [WaveTally(waiting=8, running=2)]) == Nothing()
    assert decide(plan(), [WaveTally(running=1, completed=9)]) == Nothing()


def test_a_plan_ends_when_its_last_task_has() -> None:
    assert decide(plan(), [WaveTally(completed=10)]) == End(PlanStatus.COMPLETED)
    assert decide(plan(), [WaveTally(completed=9, failed=1)]) == End(PlanStatus.FAILED)
    assert decide(plan(), [WaveTally(completed=9, cancelled=1)]) == End(PlanStatus.COMPLETED)
    assert decide(plan(status=PlanStatus.PAUSED), [WaveTally(failed=10)]) == End(PlanStatus.FAILED)
    assert decide(plan(), [WaveTally(completed=9, paused=1)]) == Nothing()


@pytest.mark.parametrize("status", [PlanStatus.READY, PlanStatus.COMPLETED, PlanStatus.FAILED, PlanStatus.CANCELLED])
def test_one_that_does_not_go_on_decides_nothing(status: PlanStatus) -> None:
    assert decide(plan(status=status), [WaveTally(waiting=3)]) == Nothing()


def test_a_paused_plan_begins_only_what_a_person_asked_for() -> None:
    assert decide(plan(status=PlanStatus.PAUSED), [WaveTally(waiting=9, failed=1)]) == Nothing()
    asked = decide(plan(status=PlanStatus.PAUSED), [WaveTally(waiting=9, asked_for=1)])
    assert asked == Admit(2, asked_for=True)


def test_a_wave_follows_when_everything_before_it_is_done() -> None:
    waves = [Wave(size=2)]
    assert decide(plan(waves), [WaveTally(completed=1, running=1), WaveTally(waiting=8)]) == Nothing()
    assert decide(plan(waves), [WaveTally(completed=2), WaveTally(waiting=8)]) == NextWave()
    # One of an earlier wave is tried again while a later one is under way.
    assert decide(plan(waves, wave=1), [WaveTally(completed=1, waiting=1), WaveTally(completed=8)]) == Admit(2)


def test_a_gate_counts_the_failures_of_its_wave() -> None:
    waves = [Wave(size=4, max_failed_percent=25)]
    rest = WaveTally(waiting=6)
    assert decide(plan(waves), [WaveTally(completed=3, failed=1), rest]) == NextWave()
    shut = decide(plan(waves), [WaveTally(completed=2, failed=2), rest])
    assert isinstance(shut, Pause)
    assert (shut.reason, shut.message) == ("gate", "wave 1: 2 of 4 tenants failed; at most 25 % may")
    assert decide(plan(waves, cleared=0), [WaveTally(completed=2, failed=2), rest]) == NextWave()


def test_a_budget_counts_all_failures_but_those_that_were_accepted() -> None:
    spec = PlanSpec("p", ({"name": "s"},), ("s",), max_concurrency=2, failure_budget=Budget(percent=10))
    assert decide(plan(spec=spec), [WaveTally(waiting=5, failed=1)]) == Admit(2)
    spent = decide(plan(spec=spec), [WaveTally(waiting=5, failed=2)])
    assert isinstance(spent, Pause)
    assert spent.message == "2 of 10 tenants failed; 1 may"
    assert decide(plan(spec=spec, forgiven=2), [WaveTally(waiting=5, failed=3)]) == Admit(2)


TALLIES = st.builds(
    WaveTally,
    **{name: st.integers(0, 3) for name in ("waiting", "running", "paused", "completed", "failed", "cancelled")},
)
WAVES = st.lists(
    st.builds(
        Wave,
        size=st.integers(1, 5),
        pause_after=st.booleans(),
        max_failed_percent=st.none() | st.integers(0, 100).map(float),
    ),
    max_size=3,
)


@given(waves=WAVES, data=st.data())
def test_whatever_is_decided_is_allowed(waves: list[Wave], data: st.DataObject) -> None:
    """No task too many, none of a wave that has not begun, no wave before its gate, and never stuck."""
    tallies = [data.draw(TALLIES) for _ in range(len(waves) + 1)]
    wave = data.draw(st.integers(0, len(waves)))
    total = sum(tally.total for tally in tallies)
    now = plan(waves, wave=wave, cleared=wave - 1, tenants=total)
    decision = decide(now, tallies)
    begun, running = tallies[: wave + 1], sum(tally.running for tally in tallies)
    match decision:
        case Admit(places=places):
            assert 0 < places <= 2 - running
            assert any(tally.waiting for tally in begun)
        case NextWave():
            assert wave < len(waves)
            assert not any(tally.open for tally in begun)
            most = waves[wave].max_failed_percent
            assert most is None or tallies[wave].failed * 100 <= most * tallies[wave].total
            assert not waves[wave].pause_after
        case Pause(reason=reason):
            assert reason in {"gate", "wave_done"}
        case End():
            assert not any(tally.open for tally in tallies)
        case Nothing():
            # Somebody works, or waits for a person.
            assert running or any(tally.paused for tally in begun)


@given(sizes=st.lists(st.integers(1, 7) | st.floats(0.1, 60), max_size=4), total=st.integers(1, 40))
def test_every_tenant_is_in_one_wave_and_waves_are_in_order(sizes: list[int | float], total: int) -> None:
    waves = [Wave(size=each) if isinstance(each, int) else Wave(percent=each) for each in sizes]
    found = wave_of(plan(waves).spec, total)
    assert len(found) == total
    assert found == sorted(found)
    for number, wave in enumerate(waves):
        assert found.count(number) <= wave.tenants(total)


def test_moves_that_are_not_in_the_table_cannot_be_made() -> None:
    for source in PlanStatus:
        for target in PlanStatus:
            if (source, target) in PLAN_EDGES:
                PlanMove(frozenset({source}), target)
            else:
                with pytest.raises(IllegalTransition):
                    PlanMove(frozenset({source}), target)
    with pytest.raises(IllegalTransition):
        TaskMove(frozenset({TaskStatus.COMPLETED}), TaskStatus.RUNNING)
    assert {source for source, _ in TASK_EDGES} == set(TaskStatus) - {TaskStatus.COMPLETED}


def document(**changes: object) -> dict[str, object]:
    return {"name": "p", "stages": [{"name": "a", "type": "wait"}], "tenants": ["t"], **changes}


WRONG: list[tuple[dict[str, object], str]] = [
    ({"name": ""}, "name"),
    ({"stages": []}, "stages"),
    ({"stages": ["x"]}, "stages[0]"),
    ({"stages": [{"type": "wait"}]}, "stages[0].name"),
    ({"stages": [{"name": "a", "nope": 1}]}, "stages[0].nope"),
    ({"stages": [{"name": "a", "type": "wait"}, {"name": "a", "type": "wait"}]}, "stages[1].name"),
    ({"tenants": []}, "tenants"),
    ({"tenants": "t"}, "tenants"),
    ({"tenants": ["t", "t"]}, "tenants[1]"),
    ({"tenants": [{"tenantId": "a b"}]}, "tenants[0].tenantId"),
    ({"tenants": [{"tenantId": "a", "params": 1}]}, "tenants[0].params"),
    ({"tenants": [{"tenantId": "a", "x": 1}]}, "tenants[0].x"),
    ({"maxConcurrency": 0}, "maxConcurrency"),
    ({"maxConcurrency": True}, "maxConcurrency"),
    ({"waves": [{}]}, "waves[0].size"),
    ({"waves": [{"size": 1, "percent": 1}]}, "waves[0].size"),
    ({"waves": [{"size": 0}]}, "waves[0].size"),
    ({"waves": [{"percent": 0}]}, "waves[0].percent"),
    ({"waves": [{"percent": 60}, {"percent": 60}]}, "waves"),
    ({"waves": [{"size": 1, "pauseAfter": 1}]}, "waves[0].pauseAfter"),
    ({"waves": [{"size": 1, "gate": {"x": 1}}]}, "waves[0].gate.x"),
    ({"waves": [{"size": 1, "gate": {"maxFailedPercent": 101}}]}, "waves[0].gate.maxFailedPercent"),
    ({"failureBudget": -1}, "failureBudget"),
    ({"failureBudget": "x%"}, "failureBudget"),
    ({"failureBudget": 1.5}, "failureBudget"),
    ({"onBusy": "MAYBE"}, "onBusy"),
    ({"params": []}, "params"),
    ({"description": 1}, "description"),
    ({"unknown": 1}, "unknown"),
]


@pytest.mark.parametrize(
    ("changes", "field"), WRONG, ids=[f"{number}-{field}" for number, (_, field) in enumerate(WRONG)]
)
def test_what_is_wrong_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        read_plan(document(**changes))
    assert wrong.value.field == field


def test_a_plan_is_read_as_it_was_written() -> None:
    spec, tenants = read_plan(
        document(
            tenants=["t", {"tenantId": "42", "params": {"region": "eu"}}],
            waves=[{"size": 1, "pauseAfter": True, "gate": {"maxFailedPercent": 0}}],
            failureBudget="5%",
            onBusy="wait",
        )
    )
    assert [tenant.id for tenant in tenants] == ["t", "42"]
    assert tenants[1].params == {"region": "eu"}
    assert spec.waves == (Wave(size=1, pause_after=True, max_failed_percent=0.0),)
    assert spec.failure_budget == Budget(percent=5.0)
    assert spec.on_busy == "WAIT"


def test_its_stages_are_a_workflow_in_a_line() -> None:
    spec, _ = read_plan(
        document(stages=[{"name": "a", "type": "wait", "config": {"for": "1s"}}, {"name": "b", "jobId": "j"}])
    )
    assert stages_as_dag(spec) == {
        "nodes": [
            {"id": "a", "type": "wait", "cfg": {"for": "1s"}},
            {"id": "b", "jobId": "j", "dependsOn": ["a"], "triggerRule": "none_failed"},
        ]
    }
