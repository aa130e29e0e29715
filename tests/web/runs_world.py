"""Jobs that run a command, and their runs."""

import time
from collections.abc import Iterator
from typing import Any

import httpx2

PATIENCE_SECONDS = 20


def shell_job(api: httpx2.Client, name: str, cmd: str, **given: Any) -> str:
    """Its id."""
    answer = api.post("/api/v1/jobs", json={"name": name, "type": "shell", "configJson": {"cmd": cmd}, **given})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["jobId"])


def started(api: httpx2.Client, job_id: str, **given: Any) -> str:
    """The id of a run of it."""
    answer = api.post(f"/api/v1/jobs/{job_id}:run", json=given)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def ended(api: httpx2.Client, run: str) -> str:
    """The same run, once it has ended."""
    for _ in tries():
        if api.get(f"/api/v1/activity/{run}").json()["endedAt"] is not None:
            return run
    raise AssertionError(f"run {run} has not ended")


def tries() -> Iterator[None]:
    """Looks, as often as there is patience for."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        yield
        time.sleep(0.05)
