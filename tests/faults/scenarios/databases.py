"""The database goes away and comes back."""

import os
import time
from pathlib import Path

import httpx2

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.history import History, Verdict
from tests.faults.matching import Limits
from tests.faults.scenarios import scenario
from tests.faults.work import long_ones, pulse, soon

RECONNECT_SECONDS = 5.0
IDLE_CPU = 0.2
TICKS = os.sysconf("SC_CLK_TCK")


@scenario("F7", "the database restarts, crashes, and is down for a while", gate=False)
def restart_database(arena: Arena) -> tuple[History, Verdict]:
    """Instances stay, say that they are unwell, wait without wearing out the machine, and go on by themselves."""
    down = 60.0 if arena.full else 6.0
    arena.instances.start(2)
    at = soon()
    end = at + down + 40
    arena.create(*pulse(arena, 20, end), *long_ones(arena, "work", 6, at, 8))
    time.sleep(max(0.0, at + 2 - time.time()))
    back = [_outage(arena, crash=False), _outage(arena, crash=True)]
    cpu, answers = _long_outage(arena, down, back)
    time.sleep(max(0.0, end - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    most = RECONNECT_SECONDS + 3 * history.stall
    verdict.figures |= {"reconnect_max": max(back), "cpu_while_down": round(cpu, 3), "while_down": answers}
    verdict.require(max(back) <= most, f"it was well again {max(back):.1f} s after its database")
    verdict.require(cpu < IDLE_CPU, f"an instance used {cpu:.0%} of a core while its database was down")
    verdict.require(answers["health"] == 503, f"/health said {answers['health']} while the database was down")
    verdict.require(answers["write"] == 503 and answers["retry_after"], f"a write was answered {answers}")
    return history, verdict


def _outage(arena: Arena, *, crash: bool) -> float:
    """Seconds until all are well again after it is up again."""
    arena.database.restart(crash=crash)
    return _until_well(arena)


def _until_well(arena: Arena) -> float:
    began = time.monotonic()
    for instance in arena.instances.all:
        arena.instances.wait_healthy(instance.number)
    return time.monotonic() - began


def _long_outage(arena: Arena, seconds: float, back: list[float]) -> tuple[float, dict[str, object]]:
    """The CPU that an instance used meanwhile, at the most and as part of a core, and what it answered."""
    with arena.bands.during("database", "down"):
        arena.database.server.stop()
        time.sleep(1)
        before = [_cpu(instance.pid) for instance in arena.instances.all]
        began = time.monotonic()
        time.sleep(seconds - 2)
        used = [_cpu(instance.pid) - was for instance, was in zip(arena.instances.all, before, strict=True)]
        took = time.monotonic() - began
        answers = _answers(arena)
        arena.database.server.start()
    back.append(_until_well(arena))
    return max(used) / took, answers


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _answers(arena: Arena) -> dict[str, object]:
    base = arena.instances.all[0].base
    body = {"name": "never", "cron_expr": "* * * * * *", "target_url": arena.target.url("never")}
    answer = httpx2.post(f"{base}/api/v1/tasks", json=body, timeout=30)
    return {
        "health": arena.instances.health(0),
        "write": answer.status_code,
        "retry_after": answer.headers.get("Retry-After"),
    }
