"""Illegal edges cannot be built, every state has a way out or is an end, and every contract has a name for it."""

from itertools import product

import pytest

from ksana.domain import states
from ksana.domain.errors import IllegalTransition
from ksana.domain.states import (
    ACTIVE,
    EXECUTION_EDGES,
    HOLDS_SLOT,
    RUN_ACTIVE,
    RUN_EDGES,
    TERMINAL,
    WAITING,
    ExecutionMove,
    ExecutionStatus,
    Mover,
    RunMove,
    RunStatus,
    execution_mover,
    run_mover,
)


@pytest.mark.parametrize(("source", "target"), list(product(ExecutionStatus, repeat=2)))
def test_an_execution_moves_only_along_the_table(source: ExecutionStatus, target: ExecutionStatus) -> None:
    if (source, target) in EXECUTION_EDGES:
        assert ExecutionMove(frozenset({source}), target).target is target
        assert isinstance(execution_mover(source, target), Mover)
    else:
        with pytest.raises(IllegalTransition):
            ExecutionMove(frozenset({source}), target)
        with pytest.raises(IllegalTransition):
            execution_mover(source, target)


@pytest.mark.parametrize(("source", "target"), list(product(RunStatus, repeat=2)))
def test_a_run_moves_only_along_the_table(source: RunStatus, target: RunStatus) -> None:
    if (source, target) in RUN_EDGES:
        assert RunMove(frozenset({source}), target).target is target
        assert isinstance(run_mover(source, target), Mover)
    else:
        with pytest.raises(IllegalTransition):
            RunMove(frozenset({source}), target)
        with pytest.raises(IllegalTransition):
            run_mover(source, target)


def test_a_move_with_one_illegal_source_among_legal_ones_is_refused() -> None:
    with pytest.raises(IllegalTransition, match="SUCCESS cannot become RUNNING"):
        ExecutionMove(frozenset({ExecutionStatus.SCHEDULED, ExecutionStatus.SUCCESS}), ExecutionStatus.RUNNING)


def test_every_active_state_can_end() -> None:
    reached = set(TERMINAL)
    while True:
        leading = {source for source, target in EXECUTION_EDGES if target in reached} | reached
        if leading == reached:
            break
        reached = leading
    assert reached == set(ExecutionStatus)


def test_what_has_ended_moves_again_only_by_a_person_or_what_a_person_did() -> None:
    for source, target in EXECUTION_EDGES:
        if source in TERMINAL:
            assert execution_mover(source, target) in {Mover.PERSON, Mover.ADVANCE}
    assert all(source is not ExecutionStatus.SUCCESS for source, _ in EXECUTION_EDGES)


def test_the_groups_divide_the_states() -> None:
    assert set(ExecutionStatus) == ACTIVE | TERMINAL
    assert not ACTIVE & TERMINAL
    assert WAITING < ACTIVE
    assert HOLDS_SLOT < ACTIVE
    assert states.SUCCEEDED | states.UNSUCCESSFUL | {ExecutionStatus.SKIPPED} == TERMINAL
    assert set(RunStatus) == RUN_ACTIVE | states.RUN_TERMINAL


def test_what_can_be_done_by_hand_has_its_edges() -> None:
    for source in states.RETRYABLE_BY_HAND:
        assert (source, ExecutionStatus.SCHEDULED) in EXECUTION_EDGES
    for source in states.COMPLETABLE_BY_HAND:
        assert (source, ExecutionStatus.SUCCESS) in EXECUTION_EDGES
    for source in states.CANCELABLE:
        assert (source, ExecutionStatus.CANCELED) in EXECUTION_EDGES
    for run in states.RUN_REOPENABLE:
        assert (run, RunStatus.RUNNING) in RUN_EDGES


DOCUMENTED = {
    "000 and 001 nodes": (
        set(states.JOBCHAIN_NODE_NAMES.values()),
        {"PENDING", "RUNNING", "SUCCESS", "FAILED", "RETRYING", "SKIPPED", "STOPPED"},
    ),
    "000 and 001 runs": (
        set(states.JOBCHAIN_RUN_NAMES.values()),
        {"PENDING", "RUNNING", "STOPPING", "STOPPED", "SUCCESS", "FAILED", "CLOSED"},
    ),
    "002": (
        {
            *states.KSANA_LAST_STATUS_NAMES.values(),
            *states.KSANA_OCCURRENCE_NAMES.values(),
            *states.KSANA_SCHEDULE_NAMES.values(),
        },
        {"success", "failed", "timeout", "skipped", "paused", "missed"},
    ),
    "003": (
        set(states.CRONJOB_NAMES.values()),
        {
            "SCHEDULED",
            "RUNNING",
            "SUCCESS",
            "FAILED",
            "TIMEOUT",
            "RETRYING",
            "CALLBACK_PENDING",
            "CALLBACK_SUCCESS",
            "FAILED_TIMEOUT",
            "CANCELED",
            "SKIPPED",
        },
    ),
}


@pytest.mark.parametrize("document", DOCUMENTED)
def test_each_contract_shows_exactly_the_names_of_its_document(document: str) -> None:
    shown, documented = DOCUMENTED[document]
    assert shown == documented


def test_every_execution_state_has_a_name_in_the_contracts_that_show_runs() -> None:
    assert set(states.CRONJOB_NAMES) == set(states.JOBCHAIN_NODE_NAMES) == set(ExecutionStatus)
    assert set(states.KSANA_LAST_STATUS_NAMES) == TERMINAL
    assert set(states.CRONJOB_FINAL_NAMES) == TERMINAL
    assert states.CRONJOB_FINAL_NAMES[ExecutionStatus.CALLBACK_SUCCESS] == "SUCCESS"
