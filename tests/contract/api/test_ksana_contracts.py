"""One job, two contracts: what is done to it at `/jobs` shows at `/api/v1/tasks`, and the other way round."""

from typing import Any

import httpx2

from tests.contract.api.conftest import ON_SQLITE, unique, until
from tests.contract.api.ksana_world import (
    Job,
    a_job,
    assert_error,
    create,
    fetch,
    listed,
    order,
    patch,
    read,
    until_status,
)
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE


def task_named(api: httpx2.Client, name: str) -> dict[str, Any]:
    page = api.get("/api/v1/tasks", params={"name": name}).json()
    (task,) = [item for item in page["items"] if item["name"] == name]
    assert isinstance(task, dict)
    return task


def job_named(api: httpx2.Client, name: str) -> Job:
    (job,) = [job for job in listed(api).values() if job["name"] == name]
    return job


def new_task(api: httpx2.Client, target: Target, **given: Any) -> tuple[int, Job]:
    """A task made at the other contract; its id there, and the job it is here."""
    name = unique("task")
    task = {
        "name": name,
        "cron_expr": "0 0 9 * * *",
        "timezone": "Asia/Shanghai",
        "exec_type": "SYNC",
        "http_method": "POST",
        "target_url": target.url(),
        "headers": {"X-Token": "abc"},
        "timeout_seconds": 7,
        **given,
    }
    answer = api.post("/api/v1/tasks", json=task)
    assert answer.is_success, answer.text
    return answer.json()["id"], job_named(api, name)


def test_a_task_shows_as_a_job_with_its_cron_and_zone(api: httpx2.Client, target: Target) -> None:
    _, job = new_task(api, target)
    assert job["type"] == "http"
    assert job["http"]["headers"] == {"X-Token": "abc"}
    assert (job["schedule"]["kind"], job["schedule"]["timezone"]) == ("cron", "Asia/Shanghai")
    assert job["schedule"]["cron"].split()[-5:] == ["0", "9", "*", "*", "*"]
    assert (read(job["next_run_at"]).hour, job["timeout"], job["last_status"]) == (1, "7s", "")


def test_a_task_that_is_disabled_is_a_job_that_is_paused(api: httpx2.Client, target: Target) -> None:
    task_id, job = new_task(api, target)
    assert api.patch(f"/api/v1/tasks/{task_id}/disable").is_success
    assert fetch(api, job["id"])["enabled"] is False
    order(api, job["id"], "resume")
    assert api.get(f"/api/v1/tasks/{task_id}").json()["status"] == "ENABLED"


def test_a_task_that_is_triggered_is_a_job_that_has_run(api: httpx2.Client, target: Target) -> None:
    task_id, job = new_task(api, target)
    triggered = api.post(f"/api/v1/tasks/{task_id}/trigger")
    assert triggered.is_success
    assert until_status(api, job["id"], "success")["last_run_at"] != ""
    assert str(triggered.json()["run_id"]) == target.hits[0].headers["x-ksana-run-id"]


def test_a_task_that_is_deleted_is_no_job_any_more(api: httpx2.Client, target: Target) -> None:
    task_id, job = new_task(api, target)
    assert api.delete(f"/api/v1/tasks/{task_id}").is_success
    assert_error(api.get(f"/jobs/{job['id']}"), 404)
    assert job["id"] not in listed(api)


def test_what_changes_at_jobs_changes_at_tasks(api: httpx2.Client, target: Target) -> None:
    name = unique("changing")
    job = create(api, a_job(name, target.url()))
    task_id = task_named(api, name)["id"]
    patch(api, job["id"], timeout="42s")
    order(api, job["id"], "pause")
    task = api.get(f"/api/v1/tasks/{task_id}").json()
    assert (task["timeout_seconds"], task["status"]) == (42, "DISABLED")
    assert api.delete(f"/jobs/{job['id']}").status_code == 204
    assert_error(api.get(f"/api/v1/tasks/{task_id}"), 404)


def test_a_run_of_a_job_can_be_followed_by_the_id_its_target_got(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("followed"), target.url()))
    order(api, job["id"], "run-now")
    (hit,) = target.wait_hits(1)
    run = until(api, f"/api/v1/runs/{hit.headers['x-ksana-run-id']}", lambda run: run["status"] == "SUCCESS")
    assert run["response_code"] == 200
