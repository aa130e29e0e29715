"""What the console asks beyond the documents' contracts, on simulated time: overview, failures, search, audit, settings, jobs."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.api.jobchain.workflow_bench import SCHEDULES, Desk, application, node, told
from tests.unit.api.ksana_bench import Json
from tests.unit.api.plans.bench import PLANS, a_plan

from ksana.api.contracts.jobchain.routes import X_PERMISSION, Permission
from ksana.api.times import rfc3339
from ksana.domain.events import SYSTEM
from ksana.engine.commands import RunRequest

JOBS, OVERVIEW, FAILURES = "/api/v1/jobs", "/api/v1/overview", "/api/v1/failures"
SEARCH, AUDIT, SETTINGS = "/api/v1/search", "/api/v1/audit", "/api/v1/settings"
ACKNOWLEDGE = f"{FAILURES}:acknowledge"
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


async def a_job(desk: Desk, name: str) -> Json:
    sent = {"name": name, "type": "scripted", "configJson": {"says": name}}
    return dict((await desk.api.post(JOBS, json=sent)).json())


async def ran(desk: Desk, job: Json) -> int:
    """A run of the job, as far as it comes."""
    stored = await desk.store.job_by_key(job["jobId"])
    made = await desk.sim.jobs.run(stored.id, RunRequest(), SYSTEM)
    await desk.sim.settle()
    return made.execution.id


async def targets(desk: Desk) -> list[str]:
    return [each["target"]["name"] for each in (await desk.get(FAILURES))["items"]]


# Overview ---------------------------------------------------------------------------------------------------------------


async def test_the_overview_tells_what_runs_and_how_it_went(desk: Desk) -> None:
    well, badly = await a_job(desk, "well"), await a_job(desk, "badly")
    desk.failing.add("badly")
    sent = {"jobId": well["jobId"], "kind": "every", "every": "1m"}
    assert (await desk.api.post(SCHEDULES, json=sent)).status_code == 201
    await desk.sim.advance(MINUTE)
    await ran(desk, badly)
    found = await desk.get(OVERVIEW, hours=1)
    assert (found["running"], found["ready"], found["failures"]) == (0, 0, 1)
    assert found["queues"] == [{"queue": "default", "ready": 0, "running": 0, "places": 0}]
    assert found["instances"] == {"alive": 1, "lost": 0, "leader": None}
    history = found["history"]
    assert (history["stepSeconds"], len(history["steps"])) == (60, 61)
    assert history["since"] == history["steps"][0]["at"]
    late = {"lateP50Millis": 0, "lateP99Millis": 0}
    assert history["steps"][-1] == {"at": rfc3339(desk.clock.now()), "succeeded": 1, "failed": 1, **late}
    assert history["steps"][0]["lateP50Millis"] is None


async def test_an_overview_is_worked_out_at_most_every_five_seconds(desk: Desk) -> None:
    job = await a_job(desk, "badly")
    desk.failing.add("badly")
    before = await desk.get(OVERVIEW)
    await ran(desk, job)
    desk.clock.advance(4 * SECOND)
    assert await desk.get(OVERVIEW) == before
    desk.clock.advance(SECOND)
    assert (await desk.get(OVERVIEW))["failures"] == 1


@pytest.mark.parametrize(("query", "field"), [({"hours": 0}, "hours"), ({"hours": 49}, "hours"), ({"days": 1}, "days")])
async def test_an_overview_of_what_nobody_keeps_is_refused_by_name(desk: Desk, query: Json, field: str) -> None:
    status, code, details = told(await desk.api.get(OVERVIEW, params=query))
    assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field)


# Failures ---------------------------------------------------------------------------------------------------------------


async def test_failures_stay_until_somebody_acknowledges_them(desk: Desk) -> None:
    job, other = await a_job(desk, "badly"), await a_job(desk, "other")
    desk.failing |= {"badly", "other"}
    await ran(desk, job)
    first = rfc3339(desk.clock.now())
    desk.clock.advance(MINUTE)
    last = await ran(desk, job)
    desk.clock.advance(MINUTE)
    await ran(desk, other)
    desk.failing.clear()
    await ran(desk, job)
    found = await desk.get(FAILURES)
    assert (found["total"], found["within"]) == (2, None)
    assert found["items"][1] == {
        "target": {"kind": "job", "id": job["jobId"], "name": "badly", "taskId": None, "deleted": False},
        "count": 2,
        "countIsExact": True,
        "madeSince": first,
        "firstAt": first,
        "lastAt": rfc3339(desk.clock.now() - MINUTE),
        "lastRunId": str(last),
        "status": "FAILED",
        "error": "badly failed",
    }
    sent = {"target": {"kind": "job", "id": job["jobId"]}, "until": found["items"][1]["lastAt"], "reason": "known"}
    taken = await desk.order(ACKNOWLEDGE, **sent)
    assert taken == {"target": found["items"][1]["target"], "until": found["items"][1]["lastAt"]}
    assert await targets(desk) == ["other"]
    entry = (await desk.get(AUDIT))["items"][0]
    assert (entry["action"], entry["reason"]) == ("failures.acknowledged", "known")
    desk.failing.add("badly")
    desk.clock.advance(SECOND)
    await ran(desk, job)
    assert await targets(desk) == ["badly", "other"]
    assert len((await desk.get(FAILURES, size=1))["items"]) == 1
    assert (await desk.order(ACKNOWLEDGE, all=True))["target"] is None
    assert await targets(desk) == []


async def test_a_workflow_and_a_plan_fail_as_a_whole(desk: Desk) -> None:
    desk.failing |= {"bad", "deploy"}
    await desk.start(node("bad"), node("after", "bad"), run="r", name="flow")
    stages = [{"name": "one", "type": "scripted", "config": {"says": "deploy"}}]
    made = await desk.api.post(PLANS, json=a_plan("a", "b", stages=stages, autoStart=True))
    assert made.status_code == 201, made.text
    await desk.sim.settle()
    found = (await desk.get(FAILURES))["items"]
    kinds = {each["target"]["kind"]: each for each in found}
    assert (kinds["workflow"]["lastRunId"], kinds["workflow"]["target"]["id"]) == ("r", "w-r")
    assert (kinds["plan"]["target"]["name"], len(found)) == ("rollout", 2)
    for each in found:
        await desk.order(ACKNOWLEDGE, target={name: each["target"][name] for name in ("kind", "id")})
    assert await targets(desk) == []


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({}, "target"),
        ({"all": True, "target": {"kind": "job", "id": "x"}}, "target"),
        ({"all": True, "until": "yesterday"}, "until"),
        ({"all": True, "until": "2027-01-01T00:00:00Z"}, "until"),
        ({"target": {"kind": "tenant", "id": "x"}}, "target.kind"),
        ({"all": True, "why": "x"}, "why"),
    ],
)
async def test_an_acknowledgement_that_says_too_little_or_too_much_is_refused(
    desk: Desk, sent: Json, field: str
) -> None:
    status, _, details = told(await desk.api.post(ACKNOWLEDGE, json=sent))
    assert (status, details["field"]) == (400, field)


@pytest.mark.parametrize("kind", ["job", "workflow", "plan"])
async def test_failures_of_nobody_cannot_be_acknowledged(desk: Desk, kind: str) -> None:
    answer = await desk.api.post(ACKNOWLEDGE, json={"target": {"kind": kind, "id": "nobody"}})
    assert told(answer)[:2] == (404, "NOT_FOUND")


# Search -----------------------------------------------------------------------------------------------------------------


async def test_things_are_found_by_a_part_of_their_names_and_by_id(desk: Desk) -> None:
    longer, exact = await a_job(desk, "my-ping-50%"), await a_job(desk, "ping")
    flow = await desk.create(node("a"), workflow_id="w-ping", name="flow of pings")
    await desk.api.post(PLANS, json=a_plan("a", name="ping all"))
    found = await desk.get(SEARCH, q="ping")
    assert [each["id"] for each in found["jobs"]] == [exact["jobId"], longer["jobId"]]
    assert found["workflows"] == [
        {"kind": "workflow", "id": "w-ping", "name": "flow of pings", "taskId": None, "deleted": False}
    ]
    assert found["plans"] == [{"planId": "p", "name": "ping all"}]
    assert found["runs"] == []
    assert [each["name"] for each in (await desk.get(SEARCH, q="ping", size=1))["jobs"]] == ["ping"]
    for wanted, kind in ((longer["jobId"], "jobs"), (flow["workflowId"], "workflows"), ("p", "plans"), ("50%", "jobs")):
        assert len((await desk.get(SEARCH, q=wanted, size=1))[kind]) == 1


async def test_runs_are_found_by_id_and_nodes_are_none(desk: Desk) -> None:
    run = await ran(desk, await a_job(desk, "ping"))
    await desk.start(node("a"), run="second")
    assert [each["id"] for each in (await desk.get(SEARCH, q=str(run)))["runs"]] == [str(run)]
    assert [each["target"]["id"] for each in (await desk.get(SEARCH, q="second"))["runs"]] == ["w-second"]
    nothing: Json = {"jobs": [], "workflows": [], "plans": [], "runs": []}
    for wanted in (str(run + 1), "9" * 30, "no such thing", "a/b"):
        assert await desk.get(SEARCH, q=wanted) == nothing


@pytest.mark.parametrize("query", [{}, {"q": ""}, {"q": "  "}, {"q": "x" * 129}, {"q": "a\0b"}])
async def test_a_search_for_nothing_is_refused(desk: Desk, query: Json) -> None:
    status, _, details = told(await desk.api.get(SEARCH, params=query))
    assert (status, details["field"]) == (400, "q")


# Audit and settings -----------------------------------------------------------------------------------------------------


async def test_the_audit_tells_who_did_what_page_by_page(desk: Desk) -> None:
    one, _ = await a_job(desk, "one"), await a_job(desk, "two")
    for order in ("disable", "enable"):
        await desk.order(f"{JOBS}/{one['jobId']}:{order}")
    page = await desk.get(AUDIT, size=2, subject="job/1")
    assert [(each["action"], each["subject"]) for each in page["items"]] == [("job.changed", "job/1")] * 2
    assert page["items"][0]["actor"] == "anonymous"
    assert page["items"][0]["data"] == {"version": 3, "changed": ["enabled"]}
    assert page["items"][0]["target"] == {"kind": "job", "id": one["jobId"], "name": "one"}
    assert page["items"][0]["run"] is None
    assert await desk.get(AUDIT, size=2, subject=f"job/{one['jobId']}") == page
    assert (await desk.get(AUDIT, subject="job/none"))["items"] == []
    rest = await desk.get(AUDIT, size=2, subject="job/1", cursor=page["next"])
    assert ([each["action"] for each in rest["items"]], rest["next"]) == (["job.created"], None)
    assert len((await desk.get(AUDIT, actor="anonymous", subject="", cursor=""))["items"]) == 4
    assert (await desk.get(AUDIT, actor="nobody")) == {"items": [], "next": None}


async def test_who_changed_a_workflow_and_its_schedule_is_found_by_their_own_ids(desk: Desk) -> None:
    await desk.create(node("a"), workflow_id="w")
    sent = {"workflowId": "w", "kind": "every", "every": "1h"}
    schedule = (await desk.api.post(SCHEDULES, json=sent)).json()
    await desk.order(f"{SCHEDULES}/{schedule['id']}/pause")

    async def actions(subject: str) -> list[str]:
        return [each["action"] for each in (await desk.get(AUDIT, subject=subject))["items"]]

    assert await actions("workflow/w") == ["workflow.created"]
    assert await actions(f"schedule/{schedule['id']}") == ["schedule.paused", "schedule.created"]
    for nobody in ("workflow/none", "schedule/none", "workflow/w%", "workflow/a b", "workflow/", "run/1"):
        assert await actions(nobody) == [], nobody


async def test_who_steered_a_plan_and_a_tenant_of_it_is_found_by_their_own_ids(desk: Desk) -> None:
    stages = [{"name": "one", "type": "scripted", "config": {"says": "deploy"}}]
    made = await desk.api.post(PLANS, json=a_plan("a", "b", planId="p", stages=stages))
    assert made.status_code == 201, made.text
    await desk.order("/api/v1/tenants/b/task:pause")
    await desk.order(f"{PLANS}/p:start", reason="at last")
    task = await desk.get("/api/v1/tenants/b/task")
    of_plan, of_task = [await desk.get(AUDIT, subject=each) for each in ("plan/p", f"task/{task['taskId']}")]
    latest = of_plan["items"][0]
    assert (latest["action"], latest["reason"]) == ("plan.start", "at last")
    assert [each["action"] for each in of_task["items"]] == ["task.pause"]
    assert (await desk.get(AUDIT, subject="task/none"))["items"] == []


@pytest.mark.parametrize(("name", "value"), [("cursor", "x"), ("cursor", "9" * 30), ("size", 0), ("who", "me")])
async def test_an_audit_that_cannot_be_answered_is_refused_by_name(desk: Desk, name: str, value: Any) -> None:
    status, _, details = told(await desk.api.get(AUDIT, params={name: value}))
    assert (status, details["field"]) == (400, name)


async def test_settings_say_where_they_came_from_and_no_password(desk: Desk) -> None:
    rows = {each["name"]: each for each in (await desk.get(SETTINGS))["items"]}
    database = rows["database.url"]
    assert (database["value"], database["source"]) == (
        "postgresql://ksana:***@db/ksana",
        "environment KSANA_DATABASE_URL",
    )
    assert rows["server.port"]["source"] == "default"
    assert all(each["description"] for each in rows.values())


# Jobs with what became of them ------------------------------------------------------------------------------------------


async def test_jobs_are_listed_with_what_became_of_them_if_asked(desk: Desk) -> None:
    job, never = await a_job(desk, "ping"), await a_job(desk, "never")
    sent = {"jobId": job["jobId"], "kind": "every", "every": "1h"}
    schedule = (await desk.api.post(SCHEDULES, json=sent)).json()
    run = await ran(desk, job)
    await desk.start({"id": "a", "jobId": job["jobId"]})
    plain = (await desk.get(JOBS))["items"]
    assert "lastRun" not in plain[0]
    listed = {each["name"]: each for each in (await desk.get(JOBS, include="runs"))["items"]}
    assert {name: listed["ping"][name] for name in plain[0]} == plain[0]
    assert (listed["ping"]["lastRun"]["id"], listed["ping"]["lastRun"]["status"]) == (str(run), "SUCCESS")
    assert listed["ping"]["nextRunAt"] == rfc3339(desk.clock.now() + timedelta(hours=1))
    assert (listed["ping"]["schedules"], listed["ping"]["paused"]) == (1, False)
    assert (listed["ping"]["taskId"], listed["ping"]["contract"]) == (None, "jobchain")
    path = f"{JOBS}/{job['jobId']}"
    assert await desk.get(path, include="runs") == (await desk.get(path)) | listed["ping"]
    nothing = {"lastRun": None, "nextRunAt": None, "schedules": 0, "paused": False}
    assert {name: listed[never["name"]][name] for name in nothing} == nothing
    await desk.order(f"{SCHEDULES}/{schedule['id']}/pause")
    assert (await desk.get(JOBS, include="runs"))["items"][0]["paused"]
    status, _, details = told(await desk.api.get(JOBS, params={"include": "everything"}))
    assert (status, details["field"]) == (400, "include")


async def test_workflows_are_listed_with_what_became_of_them_if_asked(desk: Desk) -> None:
    desk.failing |= {"bad"}
    await desk.start(node("bad"), run="first")
    await desk.create(node("a"), workflow_id="never", name="never")
    path = "/api/v1/workflows"
    assert (await desk.api.post(f"{path}/w-first:start", json={"runId": "second"})).status_code == 201
    await desk.sim.settle()
    sent = {"workflowId": "w-first", "kind": "every", "every": "1h"}
    assert (await desk.api.post(SCHEDULES, json=sent)).status_code == 201
    assert "recentRuns" not in (await desk.get(path))["items"][0]
    listed = {each["workflowId"]: each for each in (await desk.get(path, include="runs"))["items"]}
    runs = [(run["id"], run["status"]) for run in listed["w-first"]["recentRuns"]]
    assert runs == [("second", "FAILED"), ("first", "FAILED")]
    assert listed["w-first"]["nextRunAt"] == rfc3339(desk.clock.now() + timedelta(hours=1))
    nothing: Json = {"recentRuns": [], "nextRunAt": None, "schedules": 0, "paused": False}
    assert {name: listed["never"][name] for name in nothing} == nothing
    status, _, details = told(await desk.api.get(path, params={"include": "everything"}))
    assert (status, details["field"]) == (400, "include")


# The document -----------------------------------------------------------------------------------------------------------


def test_every_route_of_the_console_is_described() -> None:
    paths = application().openapi()["paths"]
    ours = [(path, each) for path, item in paths.items() for each in item.values() if each["tags"] == ["Console"]]
    assert {OVERVIEW, FAILURES, ACKNOWLEDGE, SEARCH, AUDIT, SETTINGS} <= {path for path, _ in ours}
    for path, operation in ours:
        assert operation[X_PERMISSION] in set(Permission), path
        assert operation["summary"], path
        assert operation["description"], path
        assert "400" in operation["responses"], path
        done = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
        assert "$ref" in done["content"]["application/json"]["schema"], path
