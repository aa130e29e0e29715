"""The network between instances and their database: answers that are lost, connections that break, fall silent, or are slow."""

import threading
import time

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.history import History, Verdict
from tests.faults.matching import Limits
from tests.faults.scenarios import scenario
from tests.faults.work import begun, busiest, held_by, long_ones, pulse, soon

COMMITS = {"postgresql": b"COMMIT\x00", "mysql": b"\x03COMMIT"}
EVERY = 5
"""Each fifth COMMIT loses its answer: often enough, and yet work gets done in between."""
FULL_MINUTES = 2.0
QUIET = {"LOG_LEVEL": "warning"}


def _seconds(arena: Arena, gate: float) -> float:
    return 60 * (arena.minutes or FULL_MINUTES) if arena.full else gate


@scenario("F4", "the answers to many COMMITs are lost", proxy=True, env=QUIET)
def lose_commits(arena: Arena) -> tuple[History, Verdict]:
    """Whoever does not know whether it was written finds out: nothing is done twice, nothing is left undone."""
    seconds = _seconds(arena, 10)
    arena.instances.start(2)
    end = time.time() + seconds + 4
    arena.create(*pulse(arena, 40, end))
    proxy = arena.database.proxy
    with arena.bands.during("network", "commits"):
        half = seconds / 2
        proxy.lose_answer_to(COMMITS[arena.store], times=1_000_000, every=EVERY)
        time.sleep(half)
        lost = proxy.lost
        proxy.drop(COMMITS[arena.store], times=1_000_000, every=EVERY)
        time.sleep(seconds - half)
        proxy.pass_on()
    time.sleep(max(0.0, end - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    verdict.figures |= {"commits_lost": lost, "commits_dropped": proxy.lost - lost}
    verdict.require(lost and proxy.lost > lost, "no COMMIT was lost, or none dropped: the scenario is void")
    return history, verdict


@scenario("F8", "one of two instances loses its database: reset, then silence", proxy=True, gate=False)
def cut_one_off(arena: Arena) -> tuple[History, Verdict]:
    """A reset is nothing. In silence it stops its work before its lease is over, and the other has it from then on."""
    silent = 60.0 if arena.full else 20.0
    seconds = silent + 15
    arena.instances.start(1)
    arena.instances.start(1, KSANA_DATABASE_URL=arena.database.url)
    at = soon()
    work = long_ones(arena, "work", 12, at, seconds)
    arena.create(*work, *pulse(arena, 5, at + seconds))
    begun(arena, work)
    held = {name for name in held_by(arena, 0) if name.startswith("work")}
    proxy = arena.database.proxy
    for _ in range(5):
        with arena.bands.during("network", "reset"):
            proxy.reset()
        proxy.pass_on()
        time.sleep(1)
    after_resets = _attempts_lost(arena)
    with arena.bands.during("network", "i0"):
        proxy.blackhole()
        noticed = _until_unwell(arena, 0, silent)
        time.sleep(max(0.0, silent - (noticed or silent)))
        proxy.pass_on()
    time.sleep(max(0.0, at + seconds - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    verdict.figures |= {"held": len(held), "noticed": noticed, "given_up_at_resets": after_resets}
    verdict.require(held, "the one that was cut off had no work: the scenario is void")
    verdict.require(after_resets == 0, f"{after_resets} attempts were given up because a connection was reset")
    verdict.require(
        noticed is not None and noticed <= 10 + 3 * history.stall, f"the silence was noticed after {noticed} s"
    )
    zombies = verdict.figures["zombie_overlaps"]
    verdict.require(zombies == 0, f"{zombies} attempts went on while another instance had begun them anew")
    return history, verdict


def _until_unwell(arena: Arena, number: int, seconds: float) -> float | None:
    """How long it took until its health said so."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if not arena.instances.healthy(number):
            return time.monotonic() - began
        time.sleep(0.2)
    return None


def _attempts_lost(arena: Arena) -> int:
    return int(arena.database.reader.query("SELECT count(*) AS n FROM attempts WHERE status = 'LOST'")[0].n)


@scenario("F9", "the database takes half a second more for every request", proxy=True, gate=False)
def slow_database(arena: Arena) -> tuple[History, Verdict]:
    """Slow is not dead: nobody loses a lease, and what is due is done, later."""
    seconds = _seconds(arena, 20)
    arena.instances.start(2)
    at = soon()
    work = long_ones(arena, "work", 6, at, seconds)
    arena.create(*work, *pulse(arena, 5, at + seconds, cron="*/5 * * * * *"))
    begun(arena, work)
    with arena.bands.during("network", "slow"):
        arena.database.proxy.delay(0.5)
        threading.Event().wait(seconds)
        arena.database.proxy.pass_on()
    time.sleep(max(0.0, at + seconds + 1 - time.time()))
    arena.settle()
    history = arena.history()
    rescues = _attempts_lost(arena)
    verdict = check(history, Limits(idle=10.0))
    verdict.figures |= {"false_rescues": rescues, "busiest": busiest(arena, ("work",))[0]}
    verdict.require(rescues == 0, f"{rescues} attempts were taken for dead")
    return history, verdict
