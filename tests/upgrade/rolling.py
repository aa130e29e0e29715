"""One instance is replaced by one of the next version, on one database, while work goes on: before, during and after."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.database import Database
from tests.faults.history import History, Operation, Verdict
from tests.faults.matching import Limits
from tests.faults.work import pulse
from tests.upgrade.older import OLDER_SCHEMA, older_source

PATIENCE = 20.0
START_SECONDS = 90.0
"""At the most: an interpreter of its own that has to compile the older program first, on a busy machine."""
LOOK_SECONDS = 0.1
OLD, NEW = 0, 1
STUMBLED = "cached plan must not change result type"
"""What the program of schema 0003 tells, once, of a PostgreSQL that was migrated under it, before it tries again. Later ones
try again by themselves, so that this goes when the older program is one of them."""
DIAMOND = [
    {"id": name, "type": "shell", "cfg": {"cmd": ["true"]}, "dependsOn": after}
    for name, after in (("a", []), ("b", ["a"]), ("c", ["a"]), ("d", ["b", "c"]))
]
STAGES = [{"name": name, "type": "shell", "config": {"cmd": ["true"]}} for name in ("one", "two")]
TENANTS = 3


@dataclass
class Asked:
    """Somebody who uses both instances meanwhile, and everything that they were answered."""

    arena: Arena
    answers: list[httpx2.Response] = field(default_factory=list)
    workflow_runs: list[str] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    triggered: int = 0

    def use(self, instance: int) -> None:
        """By hand: runs of two tasks, a run of the workflow, and a plan."""
        self._define(instance)
        number = len(self.plans)
        for task in (1, 2):
            self.post(instance, f"/api/v1/tasks/{task}/trigger")
            self.triggered += 1
        self.workflow_runs.append(f"run-{number}")
        self.post(instance, "/api/v1/workflows/diamond:start", {"runId": self.workflow_runs[-1]})
        self.plans.append(f"plan-{number}")
        plan = {"stages": STAGES, "tenants": [f"t{number}-{each}" for each in range(TENANTS)], "maxConcurrency": 2}
        name = {"planId": self.plans[-1], "name": self.plans[-1], "autoStart": True}
        self.post(instance, "/api/v1/plans", name | plan)
        for path in ("/api/v1/tasks", "/api/v1/runs?page_size=50", "/api/v1/schedules", "/metrics"):
            self.get(instance, path)

    def _define(self, instance: int) -> None:
        if not self.workflow_runs:
            workflow = {"workflowId": "diamond", "name": "diamond", "dag": {"nodes": DIAMOND}}
            self.post(instance, "/api/v1/workflows", workflow)

    def post(self, instance: int, path: str, body: dict[str, Any] | None = None) -> httpx2.Response:
        return self._noted(httpx2.post(self._base(instance) + path, json=body or {}, timeout=PATIENCE))

    def patch(self, instance: int, path: str) -> httpx2.Response:
        return self._noted(httpx2.patch(self._base(instance) + path, timeout=PATIENCE))

    def get(self, instance: int, path: str) -> httpx2.Response:
        return self._noted(httpx2.get(self._base(instance) + path, timeout=PATIENCE))

    def _base(self, instance: int) -> str:
        return self.arena.instances.all[instance].base

    def _noted(self, answer: httpx2.Response) -> httpx2.Response:
        self.answers.append(answer)
        return answer


def roll(arena: Arena) -> tuple[History, Verdict]:
    """The older program makes the database and works; this one comes, migrates and works beside it; the older one stops."""
    seconds, schedules = (30.0, 30) if arena.full else (3.0, 8)
    source = older_source()
    _begin_empty(arena)
    user = Asked(arena)
    arena.instances.start(1, healthy=False, fresh=True, PYTHONPATH=str(source))
    arena.instances.wait_healthy(OLD, START_SECONDS)
    schemas = [_schema(arena)]
    arena.create(*pulse(arena, schedules, time.time() + 86_400))
    user.use(OLD)
    time.sleep(seconds / 3)
    began = time.monotonic()
    arena.instances.start(1)
    ready = time.monotonic() - began
    schemas.append(_schema(arena))
    _side_by_side(user, seconds)
    _, code = arena.instances.terminate(OLD)
    user.use(NEW)
    time.sleep(seconds / 3)
    _come_to_an_end(user)
    history = arena.history()
    verdict = check(history, Limits(idle=3.0))
    verdict.figures |= {"schemas": schemas, "new_ready": round(ready, 2), "exit_code": code}
    verdict.require(schemas[0] == OLDER_SCHEMA < schemas[1], f"the schema was and is {schemas}")
    verdict.require(code == 0, f"the older one ended with {code}")
    _judge(verdict, user, history)
    return history, verdict


def _begin_empty(arena: Arena) -> None:
    """A database without tables, for the older program to make."""
    url = arena.database.server.create_database()
    arena.database = Database(url, arena.database.server, None, url, arena.bands)
    arena.instances.env["KSANA_DATABASE_URL"] = url


def _side_by_side(user: Asked, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        user.use(OLD)
        user.use(NEW)
        time.sleep(seconds / 6)


def _come_to_an_end(user: Asked) -> None:
    """No more instants, and whatever was begun ends."""
    schedules = {each.schedule.name: each.schedule for each in user.arena.operator.operations}
    for task in user.get(NEW, "/api/v1/tasks?page_size=100").json()["items"]:
        sent = time.time()
        user.patch(NEW, f"/api/v1/tasks/{task['id']}/disable")
        stop = Operation("stop", schedules[task["name"]], sent, time.time(), "ok")
        user.arena.operator.operations.append(stop)
    until = time.monotonic() + PATIENCE
    while _unended(user) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    user.arena.settle()


def _unended(user: Asked) -> list[str]:
    """Of what was begun by hand: workflow runs and plans that have not succeeded."""
    runs = [name for name in user.workflow_runs if user.get(NEW, f"/api/v1/runs/{name}").json()["status"] != "SUCCESS"]
    plans = [name for name in user.plans if user.get(NEW, f"/api/v1/plans/{name}").json()["status"] != "COMPLETED"]
    return runs + plans


def _judge(verdict: Verdict, user: Asked, history: History) -> None:
    audit = user.get(NEW, "/api/v1/schedules:audit").json()
    manual = sum(row.triggered_by == "manual" for row in history.dump.executions if row.schedule.startswith("pulse"))
    refused = [(answer.request.url.path, answer.status_code) for answer in user.answers if not answer.is_success]
    left = _unended(user)
    errors = [*_errors(user.arena, OLD), *_errors(user.arena, NEW)]
    verdict.figures |= {
        "audit": {name: audit[name] for name in ("planned", "ran", "lost", "unplanned")},
        "answers": len(user.answers),
        "refused": len(refused),
        "triggered": user.triggered,
        "by_hand": len(user.workflow_runs) + len(user.plans),
    }
    verdict.require(audit["planned"] > 0, "no instant was planned: the scenario is void")
    verdict.require(audit["lost"] == audit["unplanned"] == 0, f"the ledger: {audit}")
    verdict.require(not refused, f"refused: {refused[:5]}")
    verdict.require(manual == user.triggered, f"{user.triggered} runs were asked for, {manual} are there")
    verdict.require(not left, f"not ended well: {left}")
    verdict.require(not errors, f"errors in the logs: {errors}")
    for name, share in verdict.figures["shares"].items():
        verdict.require(share > 0, f"{name} did nothing: the scenario is void")


def _schema(arena: Arena) -> str:
    return str(arena.database.reader.query("SELECT version_num FROM alembic_version")[0].version_num)


def _errors(arena: Arena, instance: int) -> Iterator[str]:
    for line in arena.instances.log(instance).splitlines():
        entry = json.loads(line)
        if entry["level"] == "error" and not (instance == OLD and STUMBLED in entry.get("err", "")):
            yield f"{arena.instances.all[instance].name}: {line}"
