"""Machines that are busy and event loops that hang: late, perhaps, but nobody's work is taken away from it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.history import Band, History, Schedule, Verdict
from tests.faults.matching import Limits
from tests.faults.operations import Wanted, job_of
from tests.faults.scenarios import scenario
from tests.faults.work import begun, commands, long_ones, once_at, pulse, soon

SPINNERS = 2
BUSY_SECONDS = 40.0
HANGS_SECONDS = 30.0
"""As long as a failpoint sleeps."""
LEADS_WITHIN = 12.0
"""Seconds: silent for 5, a heartbeat every 5, and a look every second."""
BLOCKING_SECONDS = 20
FUNCTIONS = f"""
import time
from ksana.functions import function


@function("sleeps")
def sleeps() -> str:
    time.sleep({BLOCKING_SECONDS})
    return "slept"


@function("spins")
def spins() -> str:
    until = time.monotonic() + {BLOCKING_SECONDS}
    while time.monotonic() < until:
        pass
    return "spun"
"""


@scenario("F23", "two spinners on two cores", gate=False)
def busy_machine(arena: Arena) -> tuple[History, Verdict]:
    """No lease is lost for want of a processor. How late it gets is written down, not judged."""
    arena.instances.start(2)
    at = soon(4)
    work = [*long_ones(arena, "work", 8, at, 25), *commands(arena, "shell", 2, at, 25)]
    arena.create(*work, *pulse(arena, 5, at + BUSY_SECONDS))
    begun(arena, work)
    with _spinning(SPINNERS):
        time.sleep(max(0.0, at + BUSY_SECONDS - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=20.0))
    _nothing_taken(history, verdict)
    return history, verdict


@contextmanager
def _spinning(number: int) -> Iterator[None]:
    """Processes that take all they can get, at the priority of everybody."""
    loop = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    started = [subprocess.Popen(loop, stdin=subprocess.DEVNULL) for _ in range(number)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def _nothing_taken(history: History, verdict: Verdict) -> None:
    """False rescues: attempts that were given up, or instances, though nobody had died."""
    lost = [row.execution for row in history.dump.attempts if row.status == "LOST"]
    dead = [row.name for row in history.dump.instances if row.status == "DEAD"]
    verdict.figures["false_rescues"] = len(lost) + len(dead)
    verdict.require(not lost, f"attempts that were given up: {lost[:5]}")
    verdict.require(not dead, f"instances that were buried alive: {dead}")


@scenario(
    "F24", "an event loop that hangs for 30 s, and Python jobs that block for 20 s", stores=("postgresql",), gate=False
)
def hanging_loop(arena: Arena) -> tuple[History, Verdict]:
    """Its heart beats on, so that its work stays its own; another leads meanwhile, and fires on time."""
    (arena.folder / "functions").mkdir()
    (arena.folder / "functions" / "blocking.py").write_text(FUNCTIONS)
    arena.instances.env |= {
        "KSANA_EXECUTOR_PYTHON_MODULES": "blocking",
        "KSANA_EXECUTOR_PYTHON_PATH": str(arena.folder / "functions"),
    }
    arena.instances.start(1, KSANA_FAILPOINT="send.before:25:sleep")
    arena.instances.start(1)
    at = soon(4)
    blocking = [_blocking(arena, name, at) for name in ("sleeps", "spins")]
    work = commands(arena, "shell", 6, at, 25)
    arena.create(*work, *_parallel_pulse(arena, 4, at + 60))
    band = _hang(arena)
    time.sleep(max(0.0, at + 61 - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    _nothing_taken(history, verdict)
    _led_by_the_other(arena, verdict, history, band)
    ends = {row.schedule: row.status for row in history.dump.executions if row.schedule in blocking}
    verdict.figures["python_jobs"] = ends
    verdict.require(ends == dict.fromkeys(blocking, "SUCCESS"), f"Python jobs that block: {ends}")
    return history, verdict


def _parallel_pulse(arena: Arena, number: int, end: float) -> list[Wanted]:
    """One that hangs holds up none of the next: each instant is for itself."""
    return [
        (
            Schedule(f"pulse{each}", cron="* * * * * *", end_wall=end, duration=HANGS_SECONDS),
            {"url": url, "timeout_seconds": 120},
        )
        for each in range(number)
        for url in (arena.target.url(f"pulse{each}"),)
    ]


def _blocking(arena: Arena, name: str, at: float) -> str:
    schedule = Schedule(name, cron=once_at(at), end_wall=at, duration=BLOCKING_SECONDS)
    body = job_of(schedule, {"url": ""}) | {"type": "python", "config": {"function": name, "params": {}}}
    del body["http"]
    httpx2.post(f"{arena.instances.all[0].base}/jobs", json=body, timeout=20).raise_for_status()
    return name


def _hang(arena: Arena) -> Band:
    """From the moment that it answers nothing until it does again."""
    deadline = time.monotonic() + 60
    while arena.instances.health(0) and time.monotonic() < deadline:
        time.sleep(0.1)
    with arena.bands.during("hang", "i0") as band:
        arena.instances.wait_healthy(0, 2 * HANGS_SECONDS)
    return band


def _led_by_the_other(arena: Arena, verdict: Verdict, history: History, band: Band) -> None:
    hung = band.last(time.monotonic()) - band.began
    late = sorted(
        hit.began_wall - hit.planned
        for hit in history.hits
        if hit.planned is not None
        and hit.schedule.startswith("pulse")
        and band.began + LEADS_WITHIN <= history.mono(hit.planned) <= band.began + hung - 1
    )
    verdict.figures |= {
        "hung_seconds": round(hung, 1),
        "fired_meanwhile": len(late),
        "late_p99_meanwhile": round(late[int(len(late) * 0.99)], 3) if late else None,
        "led_by_the_other": '"instance.leads"' in arena.instances.log(1),
    }
    verdict.require(hung > HANGS_SECONDS / 2, "it hardly hung: the scenario is void")
    verdict.require(verdict.figures["led_by_the_other"], "nobody else led while the leader hung")
    most = 1.0 + 3 * history.stall
    verdict.require(late and late[int(len(late) * 0.9)] <= most, f"{late[-5:]} s late while the leader hung")
