"""Document 001 §4 on every back end: jobs are made, changed, listed, shown, switched off and on."""

from datetime import datetime
from typing import Any

import httpx2

from tests.contract.api.conftest import unique, until
from tests.contract.api.cronjob_world import assert_error, done
from tests.contract.api.ksana_world import now, order, read, until_status
from tests.contract.api.witness import Target

Json = dict[str, Any]

JOBS = "/api/v1/jobs"
DETAIL = {"jobId", "name", "description", "type", "configJson", "enabled", "createdAt", "updatedAt"}
ITEM = {"jobId", "name", "type", "enabled", "updatedAt"}


def a_job(name: str, url: str, /, **given: Any) -> Json:
    """What a client sends (§4.1)."""
    return {
        "name": name,
        "description": "...",
        "type": "http",
        "configJson": {"method": "GET", "url": url},
        "enabled": True,
        **given,
    }


def create(api: httpx2.Client, job: Json) -> Json:
    answer = api.post(JOBS, json=job)
    assert answer.status_code == 201, answer.text
    assert set(answer.json()) >= DETAIL
    return done(answer)


def fetch(api: httpx2.Client, job_id: str) -> Json:
    answer = api.get(f"{JOBS}/{job_id}")
    assert answer.status_code == 200, answer.text
    return done(answer)


def find(api: httpx2.Client, **query: Any) -> Json:
    answer = api.get(JOBS, params=query)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"page", "size", "total", "items"}
    return done(answer)


def ids(page: Json) -> list[str]:
    return [item["jobId"] for item in page["items"]]


def written(job: Json) -> datetime:
    return read(job["updatedAt"])


def test_a_created_job_comes_back_as_it_was_sent(api: httpx2.Client, target: Target) -> None:
    call = {"method": "POST", "url": target.url(), "headers": {"X-Token": "abc"}, "body": "刹那"}
    given = a_job(unique("demo"), target.url(), description="说明", configJson=call)
    begun = now()
    answer = api.post(JOBS, json=given)
    job = answer.json()
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["location"] == f"{JOBS}/{job['jobId']}"
    assert {name: job[name] for name in given} == given
    assert isinstance(job["jobId"], str)
    assert begun <= read(job["createdAt"]) <= now()
    assert job["updatedAt"] == job["createdAt"]
    assert fetch(api, job["jobId"]) == job


def test_the_documents_own_example_is_accepted(api: httpx2.Client) -> None:
    given = {
        "name": unique("demo-job"),
        "description": "...",
        "type": "shell",
        "configJson": {"cmd": "echo hello"},
        "enabled": True,
    }
    job = create(api, given)
    assert {name: job[name] for name in given} == given
    assert fetch(api, job["jobId"]) == job


def test_a_job_that_says_little_is_enabled(api: httpx2.Client, target: Target) -> None:
    job = create(api, {"name": unique("little"), "type": "http", "configJson": {"url": target.url()}})
    assert (job["enabled"], job["description"]) == (True, "")


def test_a_change_leaves_what_it_does_not_name(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("change"), target.url()))
    answer = api.put(f"{JOBS}/{job['jobId']}", json={"description": "other"})
    changed = answer.json()
    assert answer.status_code == 200
    assert changed == {**job, "description": "other", "updatedAt": changed["updatedAt"]}
    assert written(changed) > written(job)
    assert fetch(api, job["jobId"]) == changed


def test_a_change_as_the_document_writes_it(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("change"), target.url()))
    config = {"method": "POST", "url": target.url("/ok/other"), "body": "hello"}
    given = {"description": "other", "type": "http", "configJson": config, "enabled": False}
    changed = done(api.put(f"{JOBS}/{job['jobId']}", json=given))
    assert {name: changed[name] for name in given} == given
    assert changed["name"] == job["name"]


def test_a_job_can_be_renamed_but_not_to_a_name_that_is_taken(api: httpx2.Client, target: Target) -> None:
    first = create(api, a_job(unique("first"), target.url()))
    job = create(api, a_job(unique("second"), target.url()))
    name = unique("renamed")
    assert done(api.put(f"{JOBS}/{job['jobId']}", json={"name": name}))["name"] == name
    assert_error(api.put(f"{JOBS}/{job['jobId']}", json={"name": first["name"]}), 409, "JOB_NAME_CONFLICT")
    assert fetch(api, job["jobId"])["name"] == name


def test_a_name_that_is_taken_is_a_conflict_and_makes_nothing(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("taken"), target.url()))
    assert_error(api.post(JOBS, json=a_job(job["name"], target.url("/ok/other"))), 409, "JOB_NAME_CONFLICT")
    assert ids(find(api, keyword=job["name"])) == [job["jobId"]]
    assert fetch(api, job["jobId"]) == job


def test_jobs_are_listed_by_pages(api: httpx2.Client, target: Target) -> None:
    word = unique("paged")
    made = [create(api, a_job(f"{word}.{number}", target.url())) for number in range(5)]
    pages = [find(api, keyword=word, page=page, size=2) for page in (1, 2, 3, 4)]
    assert [(page["page"], page["size"], page["total"]) for page in pages] == [(n, 2, 5) for n in (1, 2, 3, 4)]
    assert [len(page["items"]) for page in pages] == [2, 2, 1, 0]
    assert [job_id for page in pages for job_id in ids(page)] == [job["jobId"] for job in made]
    first = pages[0]["items"][0]
    assert set(first) >= ITEM
    assert {name: first[name] for name in ITEM} == {name: made[0][name] for name in ITEM}


def test_a_page_has_twenty_unless_told(api: httpx2.Client) -> None:
    page = find(api)
    assert (page["page"], page["size"]) == (1, 20)


def test_jobs_are_found_by_keyword_state_and_type(api: httpx2.Client, target: Target) -> None:
    word = unique("found")
    on = create(api, a_job(f"a {word} 刹那", target.url()))
    off = create(api, a_job(f"b {word}", target.url(), enabled=False))
    assert ids(find(api, keyword=word)) == [on["jobId"], off["jobId"]]
    assert ids(find(api, keyword=word, enabled="true")) == [on["jobId"]]
    assert ids(find(api, keyword=word, enabled="false")) == [off["jobId"]]
    assert ids(find(api, keyword=f"{word} 刹那", enabled="true", type="http", page=1, size=20)) == [on["jobId"]]
    assert find(api, keyword=word, type="pigeon")["total"] == 0
    assert find(api, keyword="%")["total"] == 0


def test_a_job_is_disabled_and_enabled(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("switch"), target.url()))
    path = f"{JOBS}/{job['jobId']}"
    for what, enabled in (("disable", False), ("disable", False), ("enable", True), ("enable", True)):
        answer = api.post(f"{path}:{what}")
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        assert shown == {**job, "enabled": enabled, "updatedAt": shown["updatedAt"]}
        assert fetch(api, job["jobId"]) == shown


def test_a_job_that_is_not_there_is_not_found(api: httpx2.Client) -> None:
    nobody = unique("nobody")
    requests = [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", ":enable"), ("POST", ":disable")]
    for method, suffix in requests:
        answer = api.request(method, f"{JOBS}/{nobody}{suffix}", json={} if method == "PUT" else None)
        assert assert_error(answer, 404, "JOB_NOT_FOUND") == {"jobId": nobody}


def test_a_deleted_job_is_gone_and_its_name_is_free(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("gone"), target.url()))
    answer = api.delete(f"{JOBS}/{job['jobId']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert_error(api.get(f"{JOBS}/{job['jobId']}"), 404, "JOB_NOT_FOUND")
    assert find(api, keyword=job["name"])["total"] == 0
    create(api, a_job(job["name"], target.url()))


def test_a_job_runs_as_its_config_says(api: httpx2.Client, target: Target) -> None:
    """By the order of document 002: in document 001 only workflows run jobs."""
    call = {"method": "PUT", "url": target.url(), "headers": {"X-Token": "abc"}, "body": "hello"}
    job = create(api, a_job(unique("runs"), target.url(), configJson=call))
    order(api, job["jobId"], "run-now")
    until_status(api, job["jobId"], "success")
    (hit,) = target.hits
    assert (hit.method, hit.headers["x-token"], hit.body) == ("PUT", "abc", b"hello")


def test_a_job_is_tried_as_often_as_it_says(api: httpx2.Client, target: Target) -> None:
    retry = {"maxAttempts": 3, "backoffMillis": 10, "backoffMultiplier": 1.0}
    job = create(api, a_job(unique("tries"), target.url("/flaky/2"), retry=retry))
    assert job["retry"] == retry
    once = create(api, a_job(unique("once"), target.url("/status/503")))
    for each, status in ((job, "success"), (once, "failed")):
        order(api, each["jobId"], "run-now")
        until_status(api, each["jobId"], status)
    assert len(target.hits) == 3 + 1


def test_a_job_of_another_contract_is_a_job(api: httpx2.Client, target: Target) -> None:
    name = unique("task")
    task = done(api.post("/api/v1/tasks", json={"name": name, "cron_expr": "0 0 1 1 *", "target_url": target.url()}))
    (item,) = find(api, keyword=name)["items"]
    job = fetch(api, item["jobId"])
    assert fetch(api, str(task["id"])) == job
    assert (job["name"], job["type"], job["configJson"]["url"]) == (name, "http", target.url())
    assert done(api.post(f"{JOBS}/{job['jobId']}:disable"))["enabled"] is False
    until(api, f"/api/v1/tasks/{task['id']}", lambda shown: shown["status"] == "DISABLED")
