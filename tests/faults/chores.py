"""A little of everything, always the same and one after another: a schedule that fires, a retry, a callback, a workflow, a cancel.

Whoever does them does not give up: whatever got no answer is asked for again, by the same name or key, as a careful client does.
So their end is the same whatever happened in between, and `Standing` is that end, without what differs from run to run.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.faults.history import Operation, Schedule
from tests.faults.trials import Trial
from tests.faults.work import once_at, soon

TASKS, RUNS, WORKFLOWS = "/api/v1/tasks", "/api/v1/runs", "/api/v1/workflows"
NEVER = "0 0 0 1 1 *"
ENDED = {"SUCCESS", "FAILED", "TIMEOUT", "CALLBACK_SUCCESS", "FAILED_TIMEOUT", "CANCELED", "SKIPPED"}
RUN_ENDED = {"SUCCESS", "FAILED", "CANCELED", "STOPPED", "PARTIAL", "CLOSED"}
CALLS = {"retry": ("status/500", "fast"), "callback": ("async/0", None), "cancel": ("slow/60", None)}
"""How the target answers, and how it answers the second time."""
BY_CALLBACK = {"callback": {"exec_type": "ASYNC"}}
AGAIN = {"max_retries": 2, "initial_delay": 0.1, "strategy": "fixed"}
"""One retry is needed, and a lost attempt uses up one more: it counts as an attempt."""


def do(trial: Trial) -> None:
    """All of them. AssertionError if they do not come to an end."""
    _make(trial)
    ids = _ids(trial)
    for name in ("retry", "callback"):
        run = _trigger(trial, ids, name)
        trial.until(f"{RUNS}/{run}", lambda found: found["status"] in ENDED)
    _run_workflow(trial)
    _cancel(trial, _trigger(trial, ids, "cancel"))
    fired = f"{TASKS}/{ids['fire']}/runs"
    trial.until(fired, lambda found: any(each["status"] in ENDED for each in found["items"]))


def _make(trial: Trial) -> None:
    began = time.time()
    trial.ask("POST", TASKS, lambda: _task(trial, "fire", _once()))
    for name in CALLS:
        trial.ask("POST", TASKS, lambda name=name: _task(trial, name, BY_CALLBACK.get(name, {})))  # type: ignore[misc]
    trial.ask("POST", WORKFLOWS, lambda: _workflow(trial))
    made = time.time()
    for task in trial.ask("GET", TASKS).json()["items"]:
        end = datetime.fromisoformat(task["end_at"]).timestamp() if task["end_at"] else None
        schedule = Schedule(
            task["name"], cron=task["cron_expr"], end_wall=end, retries=2, judged=task["name"].endswith("fire")
        )
        answered = min(made, end - 1) if end is not None else made  # it may have fired before all were made
        trial.operator.operations.append(Operation("create", schedule, began, answered, "ok"))


def _once() -> dict[str, Any]:
    at = soon(2)
    end = datetime.fromtimestamp(at).astimezone().isoformat()
    return {"cron_expr": once_at(at), "end_at": end}


def _task(trial: Trial, name: str, more: Mapping[str, Any]) -> dict[str, Any]:
    mode, again = CALLS.get(name, ("fast", None))
    whole = f"{trial.name}-{name}"
    url = trial.arena.target.url(whole, mode, again=again)
    return {
        "name": whole,
        "cron_expr": NEVER,
        "target_url": url,
        "timeout_seconds": 120,
        "retry_policy": AGAIN,
        **more,
    }


def _workflow(trial: Trial) -> dict[str, Any]:
    def call(node: str, *after: str) -> dict[str, Any]:
        url = trial.arena.target.url(f"{trial.name}-{node}")
        return {"id": node, "type": "http", "cfg": {"url": url}, "dependsOn": list(after)}

    command = {"id": "b", "type": "shell", "cfg": {"cmd": ["true"]}, "dependsOn": ["a"]}
    return {"workflowId": trial.name, "name": trial.name, "dag": {"nodes": [call("a"), command, call("c", "b")]}}


def _ids(trial: Trial) -> dict[str, int]:
    tasks = trial.ask("GET", TASKS).json()["items"]
    return {task["name"].rpartition("-")[2]: task["id"] for task in tasks}


def _trigger(trial: Trial, ids: Mapping[str, int], name: str) -> int:
    answer = trial.ask("POST", f"{TASKS}/{ids[name]}/trigger", key=f"{trial.name}-{name}")
    assert answer.is_success, answer.text
    return int(answer.json()["run_id"])


def _run_workflow(trial: Trial) -> None:
    run = f"{trial.name}-run"
    answer = trial.ask("POST", f"{WORKFLOWS}/{trial.name}:start", lambda: {"runId": run})
    assert answer.is_success, answer.text
    trial.until(f"{RUNS}/{run}", lambda found: found["status"] in RUN_ENDED)


def _cancel(trial: Trial, run: int) -> None:
    """In the middle of its work."""
    trial.until(f"{RUNS}/{run}", lambda found: found["status"] == "RUNNING")
    trial.ask("POST", f"{RUNS}/{run}/cancel")
    trial.until(f"{RUNS}/{run}", lambda found: found["status"] in ENDED)


@dataclass(frozen=True)
class Standing:
    """How it all ended: names without the trial's, and no numbers or times."""

    runs: Counter[tuple[str, str, str]]
    """Name, what triggered it, and status."""
    nodes: Counter[tuple[str, str]]
    workflows: Counter[str]
    instants: Counter[tuple[str, str, int]]
    """Name, outcome, and how many."""
    reports: int
    """Callbacks that counted."""
    attempts: Mapping[str, int]

    def differs_from(self, wanted: "Standing", deaths: int) -> list[str]:
        """In what; a death explains one more attempt of what was under way."""
        parts = ("runs", "nodes", "workflows", "instants", "reports")
        found = [
            f"{part}: {getattr(self, part)} and not {getattr(wanted, part)}"
            for part in parts
            if getattr(self, part) != getattr(wanted, part)
        ]
        for name, least in wanted.attempts.items():
            if not least <= self.attempts.get(name, 0) <= least + deaths:
                found.append(f"attempts of {name}: {self.attempts.get(name, 0)}, unfaulted {least}, deaths {deaths}")
        return found


def standing(trial: Trial) -> Standing:
    """By the database."""
    query = trial.database.reader.query
    runs = query(_RUNS)
    return Standing(
        Counter((_short(row.name), row.triggered_by, row.status) for row in runs if row.node_id is None),
        Counter((row.node_id, row.status) for row in runs if row.node_id is not None),
        Counter(row.status for row in query("SELECT status FROM workflow_runs")),
        Counter((_short(row.name), row.outcome, row.instants) for row in query(_INSTANTS)),
        len(query("SELECT id FROM callbacks WHERE status = 'RECEIVED'")),
        Counter(_short(row.name) or row.node_id for row in query(_ATTEMPTS)),
    )


def _short(name: str | None) -> str:
    return (name or "").rpartition("-")[2]


_RUNS = (
    "SELECT jobs.name, executions.node_id, executions.triggered_by, executions.status FROM executions"
    " LEFT JOIN jobs ON jobs.id = executions.job_id"
)
_ATTEMPTS = (
    "SELECT jobs.name, executions.node_id FROM attempts JOIN executions ON executions.id = attempts.execution_id"
    " LEFT JOIN jobs ON jobs.id = executions.job_id"
)
_INSTANTS = (
    "SELECT jobs.name, occurrences.outcome, occurrences.instants FROM occurrences"
    " JOIN schedules ON schedules.id = occurrences.schedule_id JOIN jobs ON jobs.id = schedules.job_id"
)
