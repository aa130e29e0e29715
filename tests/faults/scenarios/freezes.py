"""Instances that stand still for a while and then go on as if nothing had been: zombies."""

import time

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.history import History, Verdict
from tests.faults.matching import Limits
from tests.faults.scenarios import scenario
from tests.faults.work import again, begun, busiest, long_ones, pulse, soon

LEASE_SECONDS = 15.0
"""Of which an instance trusts the first 12: after that, it lets go by itself."""
BEAT_SECONDS = 5.0
TAKEOVER_SECONDS = 20.0


@scenario("F5", "SIGSTOP one of two instances, for less and for more than its lease")
def freeze_one_of_two(arena: Arena) -> tuple[History, Verdict]:
    """For less: nothing happens. For more: the other takes over, and the one that wakes up writes nothing and lets go."""
    short, long = (11.0, 30.0) if arena.full else (5.0, 17.0)
    seconds = short + long + 4  # so that it is still at it when it wakes up
    arena.instances.start(2)
    at = soon()
    work = long_ones(arena, "work", 12, at, seconds)
    arena.create(*work, *pulse(arena, 3, at + seconds))
    begun(arena, work)
    victim, held = busiest(arena, ("work",))
    if short > LEASE_SECONDS - BEAT_SECONDS:
        _wait_for_a_beat(arena, victim)  # or else its lease would run out within less than that
    _freeze(arena, victim, short)
    time.sleep(1)
    stolen = _given_up(arena) + ('"instance.lost"' in arena.instances.log(victim))
    band = _freeze(arena, victim, long)
    again(arena, held, TAKEOVER_SECONDS)
    time.sleep(max(0.0, at + seconds - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    log = arena.instances.log(victim)
    verdict.figures |= {"stolen_by_the_short": stolen, "held": len(held), "frozen": band}
    verdict.require(stolen == 0, f"{stolen} attempts were given up although the lease had not run out")
    verdict.require(held, "the frozen one had no work: the scenario is void")
    verdict.require('"instance.lost"' in log, "the one that woke up did not say that its lease is gone")
    return history, verdict


def _freeze(arena: Arena, number: int, seconds: float) -> float:
    band = arena.instances.freeze(number)
    time.sleep(seconds)
    arena.instances.thaw(number)
    assert band.ended is not None
    return band.ended - band.began


def _wait_for_a_beat(arena: Arena, number: int) -> None:
    ending = f"%:{arena.instances.all[number].pid}"
    beats = "SELECT max(heartbeat_at) AS at FROM instances WHERE name LIKE :ending"
    before = arena.database.reader.query(beats, ending=ending)[0].at
    deadline = time.monotonic() + 3 * BEAT_SECONDS
    while arena.database.reader.query(beats, ending=ending)[0].at == before and time.monotonic() < deadline:
        time.sleep(0.05)


def _given_up(arena: Arena) -> int:
    lost = "SELECT count(*) AS n FROM attempts WHERE status = 'LOST'"
    return int(arena.database.reader.query(lost)[0].n)
