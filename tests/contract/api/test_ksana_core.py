"""Document 002 §2.2 and §8 on every back end: jobs are kept, run when they should, and tell what became of them."""

from datetime import timedelta

import httpx2

from tests.contract.api.conftest import unique, until
from tests.contract.api.ksana_world import (
    EVERY_FIELDS,
    HOUR,
    HTTP_FIELDS,
    JOB_FIELDS,
    a_job,
    assert_error,
    create,
    fetch,
    listed,
    now,
    order,
    patch,
    read,
    run_id,
    run_now,
    said,
    until_status,
    whole_second,
)
from tests.contract.api.witness import Target

TWO_SECONDS = timedelta(seconds=2)


def test_it_is_healthy(api: httpx2.Client) -> None:
    assert api.get("/health").status_code == 200


def test_a_created_job_comes_back_complete(api: httpx2.Client, target: Target) -> None:
    given = {
        "id": unique("ping"),
        "name": unique("ping service"),
        "enabled": True,
        "type": "http",
        "http": {"method": "POST", "url": target.url(), "headers": {"X-Token": "abc"}, "body": "刹那"},
        "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "5s"},
        "timeout": "20s",
        "max_retries": 2,
        "retry_backoff": "1h30m",
    }
    job = create(api, given)
    assert set(job) == JOB_FIELDS
    assert set(job["http"]) == HTTP_FIELDS
    assert set(job["schedule"]) == EVERY_FIELDS
    assert {field: job[field] for field in given} == given
    assert (job["last_run_at"], job["last_status"], job["last_error"]) == ("", "", "")
    read(job["next_run_at"])


def test_a_created_job_can_be_read_and_is_in_the_list(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("read"), target.url()))
    assert fetch(api, job["id"]) == job
    assert listed(api)[job["id"]] == job


def test_an_id_that_is_left_out_or_empty_is_made(api: httpx2.Client, target: Target) -> None:
    made = create(api, a_job(unique("made"), target.url()))["id"]
    also_made = create(api, a_job(unique("made"), target.url(), id=""))["id"]
    assert isinstance(made, str)
    assert made
    assert also_made
    assert made != also_made


def test_an_id_that_exists_is_a_conflict_and_leaves_the_first_as_it_is(api: httpx2.Client, target: Target) -> None:
    first = create(api, a_job(unique("first"), target.url(), id=unique("taken")))
    again = api.post("/jobs", json=a_job(unique("second"), target.url("/ok/other"), id=first["id"]))
    assert_error(again, 409)
    assert fetch(api, first["id"]) == first


def test_a_patch_changes_what_it_names_and_answers_with_the_whole(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("old"), target.url()))
    name = unique("new")
    changed = patch(api, job["id"], name=name, max_retries=7)
    assert changed == {**job, "name": name, "max_retries": 7}
    assert fetch(api, job["id"]) == changed


def test_a_deleted_job_is_gone(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("gone"), target.url()))
    answer = api.delete(f"/jobs/{job['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert_error(api.get(f"/jobs/{job['id']}"), 404)
    assert_error(api.delete(f"/jobs/{job['id']}"), 404)
    assert job["id"] not in listed(api)


def test_a_job_of_every_fires_again_and_again(api: httpx2.Client, target: Target) -> None:
    begun = now()
    job = create(api, a_job(unique("every"), target.url(), schedule={"kind": "every", "every": "200ms"}))
    hits = target.wait_hits(3)
    after = until_status(api, job["id"], "success")
    assert len({run_id(hit) for hit in hits}) == len(hits)
    assert read(after["last_run_at"]) >= begun
    assert read(after["next_run_at"]) > read(after["last_run_at"])
    assert after["last_error"] == ""
    api.delete(f"/jobs/{job['id']}")


def test_a_job_of_once_runs_once_and_has_no_next_instant(api: httpx2.Client, target: Target) -> None:
    run_at = whole_second(TWO_SECONDS)
    job = create(api, a_job(unique("once"), target.url(), schedule={"kind": "once", "run_at": said(run_at)}))
    assert read(job["next_run_at"]) == run_at
    after = until_status(api, job["id"], "success")
    assert after["next_run_at"] == ""
    assert read(after["last_run_at"]) >= run_at
    assert len(target.hits) == 1
    assert target.hits[0].at >= run_at


def test_a_once_in_the_past_is_missed_and_never_runs(api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "once", "run_at": said(whole_second(-HOUR))}
    job = create(api, a_job(unique("past"), target.url(), schedule=schedule))
    after = until_status(api, job["id"], "missed")
    assert (after["next_run_at"], after["last_run_at"]) == ("", "")
    assert target.hits == []


def test_run_now_runs_at_once_and_does_not_move_the_next_instant(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("now"), target.url()))
    after = run_now(api, job["id"])
    assert len(target.hits) == 1
    assert after["next_run_at"] == job["next_run_at"]
    assert after["last_run_at"] != ""


def test_a_target_that_recovers_is_called_until_it_does(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("flaky"), target.url("/flaky/2"), max_retries=3, retry_backoff="50ms"))
    after = run_now(api, job["id"])
    assert len(target.hits) == 3
    assert after["last_error"] == ""


def test_an_answer_of_4xx_is_final(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("refusing"), target.url("/status/404"), max_retries=3, retry_backoff="50ms"))
    after = run_now(api, job["id"], "failed")
    assert len(target.hits) == 1
    assert "404" in after["last_error"]


def test_a_job_can_be_paused_and_resumed(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("paused"), target.url()))
    order(api, job["id"], "pause")
    paused = fetch(api, job["id"])
    assert (paused["enabled"], paused["last_status"]) == (False, "paused")
    order(api, job["id"], "resume")
    resumed = fetch(api, job["id"])
    assert resumed["enabled"]
    assert resumed["last_status"] != "paused"
    assert read(resumed["next_run_at"]) > now()


def test_a_job_is_a_task_of_the_other_contract(api: httpx2.Client, target: Target) -> None:
    name = unique("both")
    job = create(api, a_job(name, target.url()))
    (task,) = api.get("/api/v1/tasks", params={"name": name}).json()["items"]
    assert (task["name"], task["target_url"], task["http_method"]) == (name, target.url(), "GET")
    run_now(api, job["id"])
    runs = api.get(f"/api/v1/tasks/{task['id']}/runs").json()["items"]
    assert [run["status"] for run in runs] == ["SUCCESS"]


def test_a_task_of_the_other_contract_is_a_job(api: httpx2.Client, target: Target) -> None:
    name = unique("task")
    task = {
        "name": name,
        "cron_expr": "0 0 1 1 *",
        "exec_type": "SYNC",
        "http_method": "POST",
        "target_url": target.url(),
        "timeout_seconds": 7,
    }
    assert api.post("/api/v1/tasks", json=task).is_success
    (job,) = [job for job in listed(api).values() if job["name"] == name]
    assert fetch(api, job["id"]) == job
    assert (job["http"]["method"], job["http"]["url"], job["timeout"]) == ("POST", target.url(), "7s")
    assert job["schedule"]["kind"] == "cron"
    assert job["schedule"]["cron"].split()[-5:] == ["0", "0", "1", "1", "*"]
    order(api, job["id"], "run-now")
    until(api, f"/jobs/{job['id']}", lambda job: job["last_status"] == "success")
    assert target.hits[0].method == "POST"
