"""The simulation can fail: of each guarantee that is taken away, it tells within a few seeds."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from ksana.domain.execution import Claim, Claimed, Execution
from ksana.domain.ledger import Fired, Firing, Schedule
from ksana.domain.states import ExecutionStatus
from ksana.engine.dispatcher import Dispatcher
from ksana.store.requests import ClaimRequest
from tests.simulation import memory_ledger, memory_queue
from tests.simulation.memory_store import MemoryStore
from tests.simulation.memory_tables import Tables
from tests.simulation.mood import Mood
from tests.simulation.search import first_violation

SEEDS = range(30)
STEPS = 4_000


def invariant_found(mood: Mood | None = None) -> str | None:
    found = first_violation(SEEDS, STEPS, mood)
    return None if found is None or found.violation is None else found.violation.invariant


def test_a_store_that_does_not_compare_epochs_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(tables: Tables, claim: Claim) -> Execution | None:
        row = tables.executions.get(claim.execution_id)
        return row if row is not None and row.status is ExecutionStatus.RUNNING else None

    monkeypatch.setattr(memory_queue, "mine", mine)
    assert invariant_found() == "I4"


def test_a_ledger_without_its_key_and_its_cursor_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def due(tables: Tables, firing: Firing) -> Schedule | None:
        return tables.schedules.get(firing.schedule_id)

    monkeypatch.setattr(memory_ledger, "due", due)
    monkeypatch.setattr(memory_ledger, "check_unrecorded", lambda *_: None)
    assert invariant_found() == "I2"


def move_cursors(tables: Tables, firings: Sequence[Firing], now: datetime) -> list[Schedule | None]:
    schedules = [memory_ledger.due(tables, firing) for firing in firings]
    for firing, schedule in zip(firings, schedules, strict=True):
        if schedule is not None:
            memory_ledger.move_cursor(tables, firing, now)
    return schedules


def write_rows(
    tables: Tables, firings: Sequence[Firing], schedules: Sequence[Schedule | None], now: datetime
) -> list[Fired]:
    return [
        Fired(firing.schedule_id, lost=True)
        if schedule is None
        else memory_ledger.write_rows(tables, schedule, firing, now)
        for firing, schedule in zip(firings, schedules, strict=True)
    ]


def test_a_cursor_that_moves_in_a_transaction_of_its_own_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fire(self: MemoryStore, firings: Sequence[Firing], now: datetime, _: object = None) -> Sequence[Fired]:
        due = await self._ask(move_cursors, tuple(firings), now)
        return await self._ask(write_rows, tuple(firings), due, now)

    monkeypatch.setattr(MemoryStore, "fire", fire)
    assert invariant_found() == "I1"


def test_a_claim_that_does_not_count_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_queue, "has_room", lambda *_: True)
    assert invariant_found() == "I5"


# What it has found in the engine, and would find again ------------------------------------------------------------------


def test_a_watch_that_takes_a_slow_claim_for_a_stray_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def claim(self: Dispatcher, request: ClaimRequest, now: datetime) -> Sequence[Claimed]:
        return await self._store.claim(request, now)

    monkeypatch.setattr(Dispatcher, "_claim", claim)
    assert invariant_found(Mood(slow=0.3, faults=0.002)) in {"I3", "I5"}
