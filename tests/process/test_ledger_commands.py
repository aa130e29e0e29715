"""`ksana audit` and `ksana purge` on what a real instance has done, killed in the middle of it."""

import json
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.process.conftest import PATIENCE, Serve, Serving, ksana

TASKS = 20


def create_tasks(running: Serving) -> None:
    for number in range(TASKS):
        task = {"name": f"t{number}", "cron_expr": "* * * * * *", "target_url": f"{running.base}/health"}
        assert httpx2.post(f"{running.base}/api/v1/tasks", json=task, timeout=PATIENCE).status_code == 201


def wait_for_runs(running: Serving, more_than: int) -> int:
    answer = running.until("/api/v1/runs?page_size=1", lambda answer: answer.json()["total"] > more_than)
    return int(answer.json()["total"])


def audited(cwd: Path, *flags: str) -> dict[str, Any]:
    ended = ksana("audit", "--json", *flags, cwd=cwd)
    assert ended.code == 0, (ended.out, ended.err)
    told: dict[str, Any] = json.loads(ended.out)
    return told


def test_after_a_kill_every_planned_instant_is_accounted_for(serve: Serve, tmp_path: Path) -> None:
    running = serve()
    create_tasks(running)
    seen = wait_for_runs(running, 3 * TASKS)
    running.end(signal.SIGKILL)
    running = serve()
    wait_for_runs(running, seen + 3 * TASKS)
    live = audited(tmp_path)  # it only reads: the instance goes on
    assert (live["lost"], live["unplanned"], live["schedules"]) == (0, 0, TASKS)
    assert live["ran"] > 6 * TASKS
    assert running.end() == 0
    told = audited(tmp_path)
    decided = told["ran"] + sum(told["skipped"].values()) + told["missed"] + told["waiting"]
    assert told["planned"] == decided


def test_audit_tells_people_too_and_refuses_what_cannot_be_asked(serve: Serve, tmp_path: Path) -> None:
    serve().end()
    assert "lost       0" in ksana("audit", cwd=tmp_path, fresh=True).out
    wrong = ksana("audit", "--from", "yesterday", cwd=tmp_path)
    assert (wrong.code, "--from" in wrong.err) == (2, True)
    backwards = ksana("audit", "--from", "2026-02-01T00:00:00Z", "--to", "2026-01-01T00:00:00Z", cwd=tmp_path)
    assert (backwards.code, "--to" in backwards.err) == (2, True)
    file = ksana("audit", "--database-url", "json://jobs.json", cwd=tmp_path)
    assert (file.code, "schedules:audit" in file.err) == (2, True)


def test_audit_needs_a_database(tmp_path: Path) -> None:
    ended = ksana("audit", cwd=tmp_path)
    assert (ended.code, "there is no database" in ended.err) == (1, True)


def test_purge_removes_what_has_ended_and_not_while_it_is_served(serve: Serve, tmp_path: Path) -> None:
    running = serve()
    create_tasks(running)
    wait_for_runs(running, TASKS)
    busy = ksana("purge", "--older-than", "0s", cwd=tmp_path)
    assert (busy.code, "another" in busy.err or "use" in busy.err) == (1, True)
    running.end()
    purged = ksana("purge", "--older-than", "0s", "--keep", "0", cwd=tmp_path, fresh=True)
    assert purged.code == 0
    assert int(purged.out.split()[1]) >= TASKS
    assert ksana("purge", cwd=tmp_path).out.startswith("removed 0 runs")
    assert audited(tmp_path)["lost"] == 0


@pytest.mark.parametrize(("flag", "value"), [("--older-than", "-1h"), ("--older-than", "soon"), ("--keep", "-1")])
def test_purge_refuses_what_makes_no_sense(flag: str, value: str, tmp_path: Path) -> None:
    ended = ksana("purge", f"{flag}={value}", cwd=tmp_path)
    assert ended.code == 2
    assert flag in ended.err
