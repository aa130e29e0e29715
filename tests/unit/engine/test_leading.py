"""Who leads, by a clock that the test moves: a process that was stopped knows as it wakes, and what a leader leaves undone
another does, but only after it has looked again."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from tests.clock import FakeClock
from tests.unit.engine.simulation import Simulation

from ksana.domain.instance import LEADER, LEASE, MARGIN
from ksana.engine.leadership import HEADSTART, Leadership, Led
from ksana.engine.loop import Round
from ksana.engine.membership import HUNG, SILENT, Events, Member, Membership
from ksana.engine.upkeep import Recovery

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
TRUSTED = LEASE - MARGIN


def leadership(sim: Simulation, owner: str) -> Leadership:
    return Leadership(sim.store, sim.clock, lambda: owner)


async def stand(*candidates: Leadership, now: datetime) -> list[bool]:
    for each in candidates:
        await each.run_once(now)
    return [each.leads for each in candidates]


# The lease ---------------------------------------------------------------------------------------------------------------


async def test_one_leads_and_the_other_takes_over_when_its_lease_has_run_out(sim: Simulation) -> None:
    first, second = leadership(sim, "one"), leadership(sim, "two")
    assert await stand(first, second, now=sim.clock.now()) == [True, False]
    assert first.lease is not None
    assert (await second.run_once(sim.clock.now())).next_at == first.lease.expires_at, "it asks again no sooner"
    sim.clock.advance(LEASE)
    assert await stand(second, now=sim.clock.now()) == [True]
    assert second.lease is not None
    assert second.lease.token > first.lease.token


async def test_a_leader_that_was_stopped_does_not_lead_as_it_wakes(sim: Simulation) -> None:
    """It has heard nothing yet: only its own monotonic clock tells."""
    leader = leadership(sim, "one")
    await leader.run_once(sim.clock.now())
    assert (leader.leads, leader.headstart) == (True, timedelta(0))
    sim.clock.advance(TRUSTED - SECOND)
    assert leader.leads
    sim.clock.advance(SECOND)
    assert (leader.leads, leader.headstart) == (False, HEADSTART)
    assert leader.lease is not None, "nobody has told it"


async def test_what_only_the_leader_does_is_not_done_by_one_that_was_stopped(sim: Simulation) -> None:
    class Counting:
        name = "counting"
        interval = SECOND
        rounds = 0

        async def run_once(self, now: datetime) -> Round:  # noqa: ARG002
            self.rounds += 1
            return Round()

    leader, counting = leadership(sim, "one"), Counting()
    led = Led(counting, leader)
    await led.run_once(sim.clock.now())
    await leader.run_once(sim.clock.now())
    await led.run_once(sim.clock.now())
    sim.clock.advance(LEASE)
    await led.run_once(sim.clock.now())
    assert counting.rounds == 1


async def test_who_has_no_lease_of_its_own_does_not_stand(sim: Simulation) -> None:
    nobody = Leadership(sim.store, sim.clock, lambda: None)
    assert await stand(nobody, now=sim.clock.now()) == [False]
    assert await sim.store.lock(LEADER) is None


async def test_an_old_lease_that_is_renewed_or_lost_late_changes_nothing(sim: Simulation) -> None:
    leader = leadership(sim, "one")
    await leader.run_once(sim.clock.now())
    old = leader.lease
    assert old is not None
    sim.clock.advance(LEASE)
    await leader.run_once(sim.clock.now())
    leader.lose(old)
    assert leader.leads
    leader.renewed(old, sim.clock.monotonic() + 1_000)
    sim.clock.advance(TRUSTED)
    assert not leader.leads


async def test_a_leader_that_resigns_lets_the_next_lead_at_once(sim: Simulation) -> None:
    first, second = leadership(sim, "one"), leadership(sim, "two")
    assert await stand(first, second, now=sim.clock.now()) == [True, False]
    await first.resign()
    assert await stand(second, first, now=sim.clock.now()) == [True, False]


# The instance's own lease --------------------------------------------------------------------------------------------------


class Joined:
    """A member whose heart beats only when the test says so: its thread waits for the first five seconds."""

    def __init__(self, sim: Simulation) -> None:
        self.lost = 0
        self.clock: FakeClock = sim.clock
        self.member = Membership(sim.store, sim.clock, Member("host:1", ("all",)), Events(self._lose, lambda: None))

    def _lose(self) -> None:
        self.lost += 1

    def beat(self) -> bool:
        assert self.member.instance_id is not None
        return self.member._beat_once(self.member.instance_id, asyncio.get_running_loop())

    async def lead(self) -> None:
        await self.member.leadership.run_once(self.clock.now())
        assert self.member.leadership.leads


@pytest_asyncio.fixture
async def joined(sim: Simulation) -> AsyncIterator[Joined]:
    made = Joined(sim)
    await made.member.start()
    yield made
    await made.member.stop()


async def test_an_instance_that_was_stopped_claims_nothing_as_it_wakes(joined: Joined) -> None:
    assert joined.member.owner == joined.member.instance_id
    joined.clock.advance(TRUSTED)
    assert joined.member.owner is None
    assert joined.member.instance_id is not None, "it has not heard of it"


async def test_a_heartbeat_keeps_both_leases(joined: Joined) -> None:
    await joined.lead()
    for _ in range(5):
        joined.clock.advance(timedelta(seconds=4))
        joined.member._ticked = joined.clock.monotonic()
        assert joined.beat()
        assert joined.member.owner is not None
        assert joined.member.leadership.leads


async def test_one_whose_loop_hangs_keeps_its_work_and_leads_no_more(joined: Joined, sim: Simulation) -> None:
    await joined.lead()
    joined.clock.advance(timedelta(seconds=SILENT + 1))
    assert joined.beat()
    assert joined.member.owner is not None
    other = leadership(sim, "two")
    assert await stand(other, now=sim.clock.now()) == [True], "another leads at once"
    await asyncio.sleep(0)  # what the thread has told the loop
    assert not joined.member.leadership.leads


async def test_one_whose_loop_hangs_for_long_is_given_up(joined: Joined) -> None:
    joined.clock.advance(timedelta(seconds=HUNG + 1))
    assert not joined.beat()


async def test_one_that_was_buried_meanwhile_finds_out_with_its_next_beat(joined: Joined, sim: Simulation) -> None:
    joined.clock.advance(LEASE)
    await sim.store.recover(sim.clock.now(), 10)
    joined.member._ticked = joined.clock.monotonic()
    assert not joined.beat()
    assert joined.member.owner is None


# The headstart ---------------------------------------------------------------------------------------------------------------


class Calls:
    """Counts how often a verb of the store was called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: Any, verb: str) -> None:
        self.number = 0
        original = getattr(store, verb)

        async def counted(*arguments: Any, **named: Any) -> Any:
            self.number += 1
            return await original(*arguments, **named)

        monkeypatch.setattr(store, verb, counted)


def follows(sim: Simulation) -> None:
    assert sim.engine.leadership.lease is not None
    sim.engine.leadership.lose(sim.engine.leadership.lease)


async def rounds(sim: Simulation, *after: timedelta) -> Sequence[int]:
    """How much is fired at each of these times after now."""
    start = sim.clock.now()
    fired = []
    for each in after:
        sim.clock.advance(start + each - sim.clock.now())
        fired.append((await sim.engine.scheduler.run_once(sim.clock.now())).done)
    return fired


async def test_a_leader_fires_on_the_instant(sim: Simulation) -> None:
    await sim.job(sim.every(MINUTE))
    await sim.engine.scheduler.run_once(sim.clock.now())
    assert await rounds(sim, MINUTE - SECOND, MINUTE, MINUTE + HEADSTART) == [0, 1, 0]


async def test_a_follower_fires_what_the_leader_has_not_fired_after_the_headstart(sim: Simulation) -> None:
    follows(sim)
    view = await sim.job(sim.every(MINUTE))
    await sim.engine.scheduler.run_once(sim.clock.now())
    almost = MINUTE + HEADSTART - timedelta(milliseconds=1)
    assert await rounds(sim, MINUTE, almost, MINUTE + HEADSTART) == [0, 0, 1]
    [row] = await sim.ledger(view.schedule)
    assert row.planned_for == sim.clock.now() - HEADSTART


async def test_a_follower_looks_when_the_headstart_is_over_and_not_later(sim: Simulation) -> None:
    follows(sim)
    await sim.job(sim.every(MINUTE))
    sim.clock.advance(MINUTE)
    due = sim.clock.now()
    assert (await sim.engine.scheduler.run_once(due)).next_at == due + HEADSTART


async def test_a_follower_looks_again_before_it_steps_in(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most likely the leader has fired, and only the follower does not know."""
    follows(sim)
    view = await sim.job(sim.every(MINUTE))
    await rounds(sim, MINUTE)  # the instant is in its window
    leader = Simulation(sim.store, sim.clock, instance="leader")
    leader.engine.leadership.assume((await sim.store.acquire_lock(LEADER, "leader", LEASE)) or _none())
    assert (await leader.engine.scheduler.run_once(sim.clock.now())).done == 1
    looks, fires = Calls(monkeypatch, sim.store, "next_fire_at"), Calls(monkeypatch, sim.store, "fire")
    assert await rounds(sim, HEADSTART) == [0]
    assert (looks.number, fires.number) == (1, 0)
    assert len(await sim.ledger(view.schedule)) == 1


def _none() -> Any:
    raise AssertionError("nobody else has the lock")


async def test_a_follower_that_finds_it_unfired_looks_but_once(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    follows(sim)
    for _ in range(3):
        await sim.job(sim.every(MINUTE))
    await rounds(sim, MINUTE)
    looks = Calls(monkeypatch, sim.store, "due_schedules")
    assert await rounds(sim, HEADSTART) == [3]
    assert looks.number <= 2, "once before, and perhaps once because its window is empty then"


async def test_the_work_of_the_dead_is_the_leaders_first_and_then_anybodys(sim: Simulation) -> None:
    due = await sim.store.next_recovery_at()
    assert due is not None
    recovery = Recovery(sim.store, sim.signals, sim.measures, lambda: HEADSTART)
    assert (await recovery.run_once(due)).next_at == due + 4 * HEADSTART
