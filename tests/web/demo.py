"""A Ksana that has something to show: jobs of several kinds in every state, workflows, a plan in waves, schedules in several zones.

`fill` makes it through the API and waits until each thing stands as it should; `aged` spreads what has ended over the hours before.
"""

import sqlite3
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

Json = dict[str, Any]
PATIENCE = 60.0
ROUNDS = 40
"""How often each of the quick jobs has run."""


def fill(api: httpx2.Client, target: str) -> None:
    """`target` is the address of a server that answers as its path says (`tests/contract/api/witness.py`)."""
    demo = Demo(api, target)
    demo.quick_jobs()
    demo.jobs_that_stand_still()
    demo.workflows()
    demo.plan()
    demo.planned()
    demo.settled()


class Demo:
    def __init__(self, api: httpx2.Client, target: str) -> None:
        self._api, self._target = api, target
        self._planned: dict[str, Json] = {}
        """Schedules that fire often until they have done so once, with what they say in the end."""

    def quick_jobs(self) -> None:
        """Jobs that succeed, mostly, each with a schedule of its own."""
        rates = self._job("Sync exchange rates", "http", {"method": "GET", "url": f"{self._target}/ok/rates"})
        warm = self._job("Warm product cache", "shell", {"cmd": "sleep 0.$(($$ % 4)); echo 1842 products"})
        books = self._job("每日对账", "shell", {"cmd": "echo 12 个账户 0 处差异"})
        mails = self._job("Send invoice e-mails", "shell", {"cmd": _MOSTLY_WORKS})
        sessions = self._job("Expire sessions", "shell", {"cmd": "echo 31 sessions are over"})
        tokens = self._job("Rotate API tokens", "http", {"method": "POST", "url": f"{self._target}/ok/tokens"})
        self._schedule(rates, cron="*/15 * * * *", timezone="Europe/London", jitter="20s")
        self._schedule(sessions, kind="every", every="20m")
        self._schedule(tokens, cron="5 * * * *", timezone="Asia/Kolkata")
        self._schedule(warm, kind="every", every="45m")
        self._schedule(books, cron="30 1 * * *", timezone="Asia/Shanghai")
        self._schedule(mails, cron="0 8 * * MON-FRI", timezone="America/New_York", misfirePolicy="SKIP")
        for number in range(ROUNDS):
            for job in (rates, warm, books, mails, sessions):
                self._run(job, {"batch": number})

    def jobs_that_stand_still(self) -> None:
        """One that runs, one that waits for its next attempt, one for its callback, and some that only will."""
        backup = self._job("Nightly backup", "shell", {"cmd": _BACKUP}, timeout="2h")
        index = self._job(
            "Rebuild search index",
            "http",
            {"method": "POST", "url": f"{self._target}/status/503"},
            retry={"maxAttempts": 5, "backoffMillis": 900_000},
        )
        config = {"method": "POST", "url": f"{self._target}/async/settle", "mode": "async", "callback_timeout": "30m"}
        settle = self._job("Settle card payments", "http", config)
        archive = self._job("Archive partitions", "shell", {"cmd": "true"}, labels={"team": "storage"})
        self._add_schedule(backup, kind="cron", cron="30 2 * * *", timezone="Europe/Zurich")
        self._add_schedule(index, kind="cron", cron="0 */6 * * *", timezone="UTC")
        self._add_schedule(settle, kind="cron", cron="0 18 * * MON-FRI", timezone="Asia/Tokyo")
        self._schedule(archive, cron="0 4 1 * *", timezone="Australia/Lord_Howe", misfirePolicy="CATCH_UP_LIMITED")
        self._schedule(archive, kind="once", runAt="2030-01-01T00:00:00Z")
        gateway = self._job(
            "Poll payment gateway", "http", {"url": f"{self._target}/ok/poll"}, labels={"team": "payments"}
        )
        self._schedule(gateway, cron="*/10 7-19 * * *", timezone="Europe/Zurich")
        self._schedule(gateway, cron="*/20 9-17 * * *", timezone="America/New_York")
        for job in (backup, index, settle):
            self._run(job, {})

    def workflows(self) -> None:
        warehouse = self._workflow("Nightly warehouse", _WAREHOUSE)
        exports = self._workflow("Customer export", _EXPORT)
        self._schedule_workflow(warehouse, cron="0 3 * * *", timezone="Europe/Zurich", input={"day": "2026-01-31"})
        self._schedule_workflow(exports, cron="0 6 * * MON", timezone="America/Sao_Paulo")
        for number, day in enumerate(["2026-01-28", "2026-01-29", "bad", "2026-01-30", "2026-01-31"]):
            self._ask(
                "POST", f"/api/v1/workflows/{warehouse}:start", {"runId": f"warehouse-{number}", "params": {"day": day}}
            )
        for number in range(3):
            self._ask("POST", f"/api/v1/workflows/{exports}:start", {"runId": f"export-{number}"})
        for number in (0, 1, 3):
            node = f"/api/v1/runs/warehouse-{number}/nodes/approve"
            self._wait(partial(self._is_running, node))
            self._ask("POST", f"{node}:complete", {"reason": "figures checked", "artifact": {"approved": True}})

    def plan(self) -> None:
        tenants = [f"tenant-{number:03}" for number in range(1, 25)]
        self._ask("POST", "/api/v1/plans", {**_PLAN, "tenants": tenants})
        self._wait(lambda: self._ask("GET", "/api/v1/plans/schema-12")["status"] == "PAUSED")

    def planned(self) -> None:
        """Every schedule has fired; from now on it says what it should. The last one is paused."""
        self._wait(lambda: all(self._last(each) is not None for each in self._planned))
        for schedule, parts in self._planned.items():
            self._ask("PATCH", f"/api/v1/schedules/{schedule}", parts)
        self._ask("POST", f"/api/v1/schedules/{list(self._planned)[-1]}/pause")

    def settled(self) -> None:
        """Until nothing is left to do but what waits."""
        self._wait(lambda: self._ask("GET", "/api/v1/overview")["ready"] == 0)

    def _job(self, name: str, kind: str, config: Json, **parts: Any) -> str:
        return str(
            self._ask("POST", "/api/v1/jobs", {"name": name, "type": kind, "configJson": config, **parts})["jobId"]
        )

    def _run(self, job: str, given: Json) -> None:
        self._ask("POST", f"/api/v1/jobs/{job}:run", {"input": given})

    def _schedule(self, job: str, kind: str = "cron", **parts: Any) -> None:
        self._planned[self._add_schedule(job, kind="every", every="3s")] = {"kind": kind, **parts}

    def _add_schedule(self, job: str, **parts: Any) -> str:
        return str(self._ask("POST", "/api/v1/schedules", {"jobId": job, **parts})["id"])

    def _schedule_workflow(self, workflow: str, **parts: Any) -> None:
        self._ask("POST", "/api/v1/schedules", {"workflowId": workflow, "kind": "cron", **parts})

    def _workflow(self, name: str, dag: Json) -> str:
        return str(self._ask("POST", "/api/v1/workflows", {"name": name, "dag": dag})["workflowId"])

    def _last(self, schedule: str) -> Json | None:
        listed = self._ask("GET", "/api/v1/schedules?include=last&pageSize=100")["items"]
        last: Json | None = next(each["last"] for each in listed if each["id"] == schedule)
        return last

    def _is_running(self, node: str) -> bool:
        answer = self._api.get(node)
        return answer.status_code == httpx2.codes.OK and answer.json()["status"] == "RUNNING"

    def _ask(self, method: str, path: str, body: Json | None = None) -> Any:
        answer = self._api.request(method, path, json=body)
        answer.raise_for_status()
        return answer.json()

    def _wait(self, happened: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not happened():
            if time.monotonic() > until:
                raise TimeoutError("the demonstration did not get as far as it should")
            time.sleep(0.2)


def aged(database: Path, span: timedelta) -> None:
    """Runs of jobs that have ended are spread over the time before, in the order in which they were made. The ledger stays: its
    instants are those that were planned."""
    micros = span // timedelta(microseconds=1)
    with sqlite3.connect(database, timeout=30) as connection:
        connection.execute(_AGED, {"span": micros})
    connection.close()


_AGED = """
UPDATE executions SET created_at = created_at - s.by, planned_for = planned_for - s.by, started_at = started_at - s.by,
  attempt_started_at = attempt_started_at - s.by, ended_at = ended_at - s.by
FROM (SELECT e.id, CAST(:span * (1.0 - row_number() OVER (ORDER BY e.id) * 1.0 / count(*) OVER ()) AS INTEGER) AS by
      FROM executions e WHERE e.ended_at IS NOT NULL AND e.workflow_run_id IS NULL) s
WHERE executions.id = s.id
"""
_MOSTLY_WORKS = """
if [ $(($$ % 5)) = 0 ]; then echo 'smtp.example.com:587 refused the connection' >&2; exit 1; fi
echo sent $(($$ % 90 + 10)) invoices
"""
_BACKUP = (
    "for table in orders invoices customers; do echo backing up $table; sleep 0.3; done; echo snapshot; sleep 3600"
)
_DAY = {"DAY": "{{ params.day }}"}


def _node(name: str, cmd: str, *after: str, env: Json | None = None, **parts: Any) -> Json:
    return {"id": name, "type": "shell", "cfg": {"cmd": cmd, "env": env or {}}, "dependsOn": list(after), **parts}


_WAREHOUSE: Json = {
    "nodes": [
        _node("extract", "echo extracting $DAY; sleep 0.4", env=_DAY),
        _node("check", "test $DAY != bad", "extract", env=_DAY),
        _node("rates", "sleep 0.2"),
        _node(
            "load",
            "echo loading $PART; sleep 0.3",
            *("check", "rates"),
            env={"PART": "{{ item }}"},
            forEach={"items": [f"part-{number}" for number in range(8)], "maxParallel": 4},
        ),
        {"id": "approve", "type": "wait", "cfg": {"timeout": "2d"}, "dependsOn": ["load"]},
        _node("publish", "echo published; sleep 0.2", "approve"),
        _node("tell", "echo the warehouse was not loaded", "check", "load", triggerRule="one_failed"),
    ]
}
_EXPORT: Json = {
    "nodes": [
        _node("collect", "sleep 0.2"),
        _node("pack", "sleep 0.3", "collect"),
        _node("upload", "sleep 0.2", "pack"),
    ]
}
_BREAKS = "case $TENANT in tenant-00[36]) echo the lock of $TENANT is held by a migration >&2; exit 1;; esac; sleep 0.2"
_TENANT = {"TENANT": "{{ params.tenantId }}"}
_PLAN: Json = {
    "planId": "schema-12",
    "name": "Move to schema 12",
    "description": "Every tenant's tables get the columns of version 12",
    "maxConcurrency": 4,
    "autoStart": True,
    "stages": [
        {"name": "drain", "type": "shell", "config": {"cmd": "echo draining $TENANT; sleep 0.2", "env": _TENANT}},
        {"name": "migrate", "type": "shell", "config": {"cmd": _BREAKS, "env": _TENANT}},
        {"name": "verify", "type": "shell", "config": {"cmd": "echo $TENANT is at version 12", "env": _TENANT}},
    ],
    "waves": [
        {"size": 2, "gate": {"maxFailedPercent": 0}},
        {"percent": 30, "pauseAfter": True, "gate": {"maxFailedPercent": 10}},
    ],
}
