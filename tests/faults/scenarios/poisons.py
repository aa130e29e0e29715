"""One poisoned schedule among many: it is refused, parked or given up, and the others do not notice."""

import sqlite3
import time
from contextlib import closing
from typing import Any

import httpx2

from tests.faults.arena import Arena, alive
from tests.faults.checker import check
from tests.faults.history import History, Operation, Schedule, Verdict
from tests.faults.matching import Limits
from tests.faults.operations import Wanted, task_of
from tests.faults.scenarios import scenario
from tests.faults.work import once_at, pulse, soon

MOST_LOSSES = 5
PATIENCE = 90.0
MEGABYTE = 1_000_000
NO_ZONE = "Mars/Olympus"


@scenario(
    "F30",
    "poisoned schedules: no such zone, bodies and templates without end, and a job that kills its instance",
    stores=("sqlite",),
    gate=False,
)
def poisons(arena: Arena) -> tuple[History, Verdict]:
    arena.instances.start(1)
    begin = soon(5)
    zoneless = _zoneless(arena, begin)
    arena.create(*pulse(arena, 10, begin + 45), zoneless)
    refused = {name: _asked(arena, name, changes) for name, changes in _impossible(arena).items()}
    _take_zone_away(arena, zoneless[0].name)
    arena.create(_killer(arena, begin + 5))
    deaths = _restart_until_given_up(arena)
    time.sleep(max(0.0, begin + 45 - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=3.0, takeover=10.0))
    verdict.figures |= {"answers": refused, "deaths": deaths}
    _judge_killer(arena, verdict, deaths)
    _judge_zoneless(arena, verdict, zoneless[0].name)
    for name, status in refused.items():
        verdict.require(status < 500, f"{name}: answered with {status}")
    return history, verdict


def _impossible(arena: Arena) -> dict[str, dict[str, Any]]:
    """What should be refused, or do no harm when it runs."""
    deep = "{{" * 50_000 + "}}" * 50_000
    return {
        "no-zone": {"timezone": NO_ZONE},
        "no-cron": {"cron_expr": "* * * * * * * *"},
        "open-template": {"body_template": "{{ run_id"},
        "deep-template": {"body_template": deep},
        "many-values": {"body_template": "{{run_id}}" * 90_000, "http_method": "POST"},
        "large-body": {"body_template": "x" * (MEGABYTE - 2_000), "http_method": "POST"},
        "too-large": {"body_template": "x" * 2 * MEGABYTE, "http_method": "POST"},
    }


def _asked(arena: Arena, name: str, changes: dict[str, Any]) -> int:
    """What Ksana answers to it. If it takes it, it calls the target each second."""
    schedule = Schedule(name, cron="* * * * * *", end_wall=time.time() + 30, judged=False)
    wanted: Wanted = (schedule, {"url": arena.target.url(name)})
    body, sent = task_of(*wanted) | changes, time.time()
    answer = httpx2.post(f"{arena.instances.all[0].base}/api/v1/tasks", json=body, timeout=20)
    if answer.is_success:
        arena.operator.operations.append(Operation("create", schedule, sent, time.time(), "ok", answer.status_code))
    return answer.status_code


# A zone that is gone ---------------------------------------------------------------------------------------------------------


def _zoneless(arena: Arena, begin: float) -> Wanted:
    schedule = Schedule("zoneless", cron="* * * * * *", end_wall=begin + 60, judged=False)
    return schedule, {"url": arena.target.url("zoneless")}


def _take_zone_away(arena: Arena, name: str) -> None:
    """As if its zone had been removed from the machine since it was made."""
    path = arena.database.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=20)) as connection, connection:
        changed = connection.execute(
            "UPDATE schedules SET spec = json_set(spec, '$.timezone', ?)"
            " WHERE job_id = (SELECT id FROM jobs WHERE name = ?)",
            (NO_ZONE, name),
        ).rowcount
        assert changed == 1


def _judge_zoneless(arena: Arena, verdict: Verdict, name: str) -> None:
    [row] = arena.database.reader.query(
        "SELECT schedules.status, schedules.error FROM schedules JOIN jobs ON jobs.id = schedules.job_id"
        " WHERE jobs.name = :name",
        name=name,
    )
    verdict.figures["zoneless"] = [row.status, row.error]
    verdict.require(row.status == "PARKED" and row.error, f"a schedule without its zone is {row.status}: {row.error}")


# A job that kills its instance -----------------------------------------------------------------------------------------------


def _killer(arena: Arena, at: float) -> Wanted:
    """Whoever runs it dies of it. The number of the process is read when it runs, and again until it is the right one."""
    _name_victim(arena)
    victim = arena.folder / "victim"
    command = ["sh", "-c", f"until kill -9 $(cat '{victim}'); do sleep 0.05; done; sleep 60"]
    return Schedule("killer", cron=once_at(at), end_wall=at, judged=False, duration=5), {"cmd": command}


def _name_victim(arena: Arena) -> None:
    fresh = arena.folder / "victim.new"
    fresh.write_text(str(arena.instances.all[0].pid))
    fresh.rename(arena.folder / "victim")


def _restart_until_given_up(arena: Arena) -> int:
    """How often it died."""
    deaths, deadline = 0, time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not _killer_rows(arena, "AND executions.ended_at IS NOT NULL"):
        if not alive(arena.instances.all[0].pid):
            deaths += 1
            with arena.bands.during("kill", "i0"):  # each is one; it may have died before it was up again
                arena.instances.kill(0)
            arena.instances.restart(0, healthy=False)
            _name_victim(arena)
        time.sleep(0.05)
    arena.instances.wait_healthy(0)
    return deaths


def _killer_rows(arena: Arena, where: str = "") -> Any:
    return arena.database.reader.query(
        "SELECT executions.status, executions.error, executions.losses FROM executions"
        f" JOIN jobs ON jobs.id = executions.job_id WHERE jobs.name = 'killer' {where}"
    )


def _judge_killer(arena: Arena, verdict: Verdict, deaths: int) -> None:
    [row] = _killer_rows(arena)
    verdict.figures["killer"] = [row.status, row.error, row.losses]
    verdict.require(deaths == MOST_LOSSES, f"it killed {deaths} times, and may {MOST_LOSSES} times")
    verdict.require(row.status == "FAILED" and "times" in (row.error or ""), f"it ended {row.status}: {row.error}")
