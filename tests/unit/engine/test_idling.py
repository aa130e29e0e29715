"""An instance that has nothing to do asks its database little, and misses nothing for it."""

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.contract.store.world import run_sql
from tests.unit.engine.simulation import Simulation

from ksana.domain.clock import to_micros
from ksana.domain.errors import StoreUnavailable
from ksana.engine.loop import Periodic
from ksana.engine.recall import LOOK_ANYWAY, Recalled
from ksana.store.base import Store

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


async def pass_time(sim: Simulation, by: timedelta) -> None:
    """Every service looks when its loop would let it, at whole seconds."""
    due: dict[Periodic, float] = sim.__dict__.setdefault("due", {})
    services = [loop._periodic for loop in sim.engine._loops]
    for _ in range(int(by / SECOND)):
        now, elapsed = sim.clock.advance(SECOND), sim.clock.monotonic()
        for each in services:
            if due.get(each, 0.0) <= elapsed:
                found = await each.run_once(now)
                pause = min((found.next_at or datetime.max.replace(tzinfo=UTC)) - now, each.interval)
                due[each] = elapsed + pause.total_seconds()
        await sim.idle()


@pytest.fixture
def asked(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The questions to the store, by name, and the transactions."""
    found: Counter[str] = Counter()
    ask, transact = sim.store._ask, sim.store.writer._transact  # type: ignore[attr-defined]

    def counted(question: Callable[..., Any]) -> Any:
        found[question.__qualname__.removeprefix("SqlStore.").partition(".")[0]] += 1
        return ask(question)

    def committed(body: Callable[..., Any]) -> Any:
        found["writes"] += 1
        return transact(body)

    monkeypatch.setattr(sim.store, "_ask", counted)
    monkeypatch.setattr(sim.store.writer, "_transact", committed)  # type: ignore[attr-defined]
    return found


async def test_an_idle_minute_is_a_few_dozen_questions_and_writes_nothing(sim: Simulation, asked: Counter[str]) -> None:
    await sim.job(sim.every(DAY))
    await pass_time(sim, MINUTE)
    asked.clear()
    await pass_time(sim, MINUTE)
    assert asked["writes"] == 0
    often = int(MINUTE / LOOK_ANYWAY) + 1
    every_second = ("due_schedules", "next_ready_at", "next_deadline_at", "next_run_deadline_at", "claims_of", "outbox")
    assert {name: asked[name] for name in every_second if asked[name] > often} == {}
    assert asked.total() <= 70


async def test_what_is_asked_for_is_done_at_the_next_look_after_a_long_silence(sim: Simulation) -> None:
    view = await sim.job(sim.every(DAY))
    await pass_time(sim, 10 * MINUTE)
    await sim.run(view.job)
    await pass_time(sim, 2 * SECOND)
    assert len(sim.target.asked) == 1


async def test_a_change_that_nobody_told_us_of_is_found_after_a_while(sim: Simulation, tmp_path: Path) -> None:
    url, start = f"sqlite:///{tmp_path / 'ksana.db'}", sim.clock.now()

    def move(to: datetime) -> None:
        run_sql(url, f"UPDATE schedules SET next_fire_at = {to_micros(to)}, next_planned_for = {to_micros(to)}")

    view = await sim.job(sim.every(MINUTE))
    move(start + DAY)
    await pass_time(sim, MINUTE + 5 * SECOND)
    assert await sim.executions(view.job) == []
    move(start + 2 * MINUTE)
    await pass_time(sim, MINUTE + LOOK_ANYWAY)
    assert [run.planned_for for run in await sim.executions(view.job)] == [start + 2 * MINUTE]


@pytest.mark.parametrize("jump", [DAY, DAY - 3 * SECOND])
async def test_a_clock_that_is_set_forward_makes_due_what_is_due_then(sim: Simulation, jump: timedelta) -> None:
    view = await sim.job(sim.every(DAY))
    await pass_time(sim, MINUTE)
    sim.clock.set_by(jump - MINUTE)
    await pass_time(sim, 5 * SECOND)
    assert len(await sim.executions(view.job)) == 1


async def test_a_clock_that_is_set_back_keeps_nothing_from_firing_later(sim: Simulation) -> None:
    view = await sim.job(sim.every(MINUTE))
    await pass_time(sim, 2 * MINUTE)
    before = len(await sim.executions(view.job))
    sim.clock.set_by(-timedelta(seconds=40))
    await pass_time(sim, 3 * MINUTE)
    assert len(await sim.executions(view.job)) == before + 2


# What is remembered ---------------------------------------------------------------------------------------------------


class Changing:
    """A store that says how often it was changed."""

    changes: int | None = 0


def question(*answers: object) -> Callable[[], Awaitable[object]]:
    left = list(answers)

    async def ask() -> object:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


def recalled(store: object, ask: Callable[..., Awaitable[object]]) -> "Recalled[Any, object]":
    known: Store = store  # type: ignore[assignment]
    return Recalled(known, ask)


NOW = datetime.fromisoformat("2026-01-01T00:00:00Z")


async def test_an_answer_holds_until_something_is_written_or_a_while_has_passed() -> None:
    store = Changing()
    ask = recalled(store, question("a", "b", "c", "d"))
    assert [await ask(NOW), await ask(NOW + SECOND)] == ["a", "a"]
    store.changes = 1
    assert [await ask(NOW + 2 * SECOND), await ask(NOW + 3 * SECOND)] == ["b", "b"]
    assert await ask(NOW + 2 * SECOND + LOOK_ANYWAY) == "c"
    assert await ask(NOW) == "d"  # the clock went back


async def test_what_is_written_while_it_is_answered_counts_as_later() -> None:
    store = Changing()

    async def ask() -> object:
        answer, store.changes = store.changes, 1
        return answer

    remembered = recalled(store, ask)
    assert [await remembered(NOW), await remembered(NOW)] == [0, 1]


async def test_another_question_is_asked_and_so_is_one_that_failed() -> None:
    asked: list[int] = []

    async def ask(number: int) -> object:
        asked.append(number)
        if len(asked) == 3:
            raise StoreUnavailable("away")
        return number

    store = Changing()
    remembered = recalled(store, ask)
    assert [await remembered(NOW, 1), await remembered(NOW, 1), await remembered(NOW, 2)] == [1, 1, 2]
    store.changes = 1
    with pytest.raises(StoreUnavailable):
        await remembered(NOW, 2)
    assert (await remembered(NOW, 2), asked) == (2, [1, 2, 2, 2])


async def test_where_others_write_too_every_look_asks() -> None:
    store = Changing()
    store.changes = None
    ask = recalled(store, question("a", "b"))
    assert [await ask(NOW), await ask(NOW)] == ["a", "b"]
