"""Redis is killed, restarted, emptied, told to evict, or freezes as a plan runs: no stage is lost or done twice, and it tells."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.faults.arena import Arena
from tests.faults.history import History, Verdict
from tests.faults.scenarios import scenario
from tests.servers.redis import RedisServer

TENANTS, STAGES = 6, ("one", "two", "three")
STAGE_SECONDS = 1
FREEZE_SECONDS = 30.0
DOWN_SECONDS = 5.0
DETECT_SECONDS = 5.0
SHOWN_SECONDS = 20.0
PLAN_SECONDS = 90.0
Json = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    name: str
    begin: Callable[[RedisServer], object]
    end: Callable[[RedisServer], object] | None = None
    """None: it is over as it begins."""
    seconds: float = 0.0


def _commands(*words: str) -> Callable[[RedisServer], object]:
    return lambda server: server.address.call(0, *words)


def _restart(server: RedisServer) -> None:
    server.kill()
    server.start()


KILLS = (
    Fault("killed", RedisServer.kill, RedisServer.start, DOWN_SECONDS),
    Fault("restarted", _restart),
)
LOSSES = (
    Fault("flushed", _commands("FLUSHALL")),
    Fault(
        "evicting",
        _commands("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"),
        _commands("CONFIG", "SET", "maxmemory-policy", "noeviction"),
        DOWN_SECONDS,
    ),
    Fault("frozen", RedisServer.pause, RedisServer.resume, FREEZE_SECONDS),
)


@scenario("F14", "Redis: kill -9, and back empty or whole", stores=("sqlite",), gate=False)
def redis_killed(arena: Arena) -> tuple[History, Verdict]:
    """With nothing on the disk, and with every write there before it is answered."""
    verdict = Verdict()
    for durable in (False, True):
        _each(arena, verdict, KILLS, durable=durable)
    return arena.history(), _summed(arena, verdict)


@scenario("F15", "Redis: FLUSHALL, eviction, frozen for 30 s", stores=("sqlite",), gate=False)
def redis_loses(arena: Arena) -> tuple[History, Verdict]:
    verdict = Verdict()
    _each(arena, verdict, LOSSES, durable=False)
    return arena.history(), _summed(arena, verdict)


def _each(arena: Arena, verdict: Verdict, faults: tuple[Fault, ...], *, durable: bool) -> None:
    """One instance with one Redis, and each fault in turn with a plan under way."""
    with ExitStack() as stack:
        server = RedisServer(durable=durable)
        stack.callback(server.close)
        server.start()
        number = len(arena.instances.all)
        if number:
            arena.instances.terminate(number - 1)  # one process has the file
        arena.instances.start(1, KSANA_EXECUTOR_PERSISTENCE_STORE_TYPE="redis", KSANA_REDIS_URL=server.address.url)
        for fault in faults:
            name = f"{fault.name}-{'always' if durable else 'memory'}"
            verdict.figures[name] = _under_fault(arena, verdict, server, fault, name)


def _under_fault(arena: Arena, verdict: Verdict, server: RedisServer, fault: Fault, name: str) -> Json:
    with httpx2.Client(base_url=arena.instances.all[-1].base, timeout=20) as api:
        _until(lambda: _health(api), lambda status: status == "ok", SHOWN_SECONDS)
        plan = _plan(arena, api, name)
        arena.target.wait(lambda hits: sum(hit.schedule.startswith(f"{name}.") for hit in hits) >= 2, 20)
        found: Json = {}
        with arena.bands.during("redis", fault.name):
            fault.begin(server)
            if fault.end is not None:
                began = time.monotonic()
                found["detected"] = _until(lambda: _health(api), lambda status: status == "degraded", DETECT_SECONDS)
                time.sleep(max(0.0, began + fault.seconds - time.monotonic()))
                fault.end(server)
        found["healthy"] = _until(lambda: _health(api), lambda status: status == "ok", SHOWN_SECONDS)
        found["completed"] = _until(lambda: _status(api, plan), lambda status: status == "COMPLETED", PLAN_SECONDS)
        found["shown"] = _until(lambda: _shown(server, plan), lambda status: status == "COMPLETED", SHOWN_SECONDS)
    for what, seconds in found.items():
        verdict.require(seconds is not None, f"{name}: not {what} in time")
    return found


def _plan(arena: Arena, api: httpx2.Client, name: str) -> str:
    url = arena.target.url("-", f"slow/{STAGE_SECONDS}").rpartition("-")[0]
    stages = [
        {
            "name": stage,
            "type": "http",
            "config": {"method": "POST", "url": f"{url}{name}.{{{{ params.tenantId }}}}.{stage}"},
        }
        for stage in STAGES
    ]
    tenants = [f"{name}-t{number}" for number in range(TENANTS)]
    body = {"name": name, "stages": stages, "tenants": tenants, "maxConcurrency": 2, "autoStart": True}
    answer = api.post("/api/v1/plans", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["planId"])


def _until(ask: Callable[[], str], good: Callable[[str], bool], seconds: float) -> float | None:
    """After how many seconds it was so; None if it was not in time."""
    began = time.monotonic()
    while not good(ask()):
        if time.monotonic() - began > seconds:
            return None
        time.sleep(0.05)
    return round(time.monotonic() - began, 2)


def _health(api: httpx2.Client) -> str:
    try:
        return str(api.get("/health").json()["status"])
    except httpx2.HTTPError:
        return ""


def _status(api: httpx2.Client, plan: str) -> str:
    return str(api.get(f"/api/v1/plans/{plan}").json()["status"])


def _shown(server: RedisServer, plan: str) -> str:
    try:
        return server.address.call(0, "HGET", f"executor:plan:{plan}", "status")
    except OSError:
        return ""


def _summed(arena: Arena, verdict: Verdict) -> Verdict:
    """Each stage of each tenant is called once, and in order."""
    calls = Counter(hit.schedule for hit in arena.target.hits())
    names = [name for name, figure in verdict.figures.items() if isinstance(figure, dict)]
    due = {f"{name}.{name}-t{number}.{stage}" for name in names for number in range(TENANTS) for stage in STAGES}
    twice = [each for each, number in calls.items() if number > 1]
    lost = sorted(due - set(calls))
    verdict.figures |= {
        "n": len(due),
        "lost": len(lost),
        "duplicated": len(twice),
        "out_of_order": _out_of_order(arena),
    }
    verdict.require(not lost, f"stages that were not done: {lost[:5]}")
    verdict.require(not twice, f"stages that were done twice: {twice[:5]}")
    verdict.require(verdict.figures["out_of_order"] == 0, "I7: a stage began before the one before it had ended")
    return verdict


def _out_of_order(arena: Arena) -> int:
    ended: dict[str, float] = {}
    wrong = 0
    for hit in sorted(arena.target.hits(), key=lambda hit: hit.began):
        run, _, stage = hit.schedule.rpartition(".")
        before = STAGES.index(stage) - 1
        wrong += before >= 0 and ended.get(f"{run}.{STAGES[before]}", float("inf")) > hit.began
        ended[hit.schedule] = hit.ended if hit.ended is not None else float("inf")
    return wrong
