"""Runs of jobs and of workflows in one list, and orders to many of them."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.api.jobchain.workflow_bench import RUNS, Desk, node, told, waiting
from tests.unit.api.ksana_bench import Json, body

from ksana.api.contracts.console.activity_showing import ActivityItem
from ksana.engine.commands import activity

ACTIVITY, JOBS = "/api/v1/activity", "/api/v1/jobs"
NOWHERE = "a-run-that-is-nowhere"


async def job(desk: Desk, name: str, **given: Any) -> str:
    """A job that does what the test says; its id."""
    sent = {"name": name, "type": "scripted", "configJson": {"says": name}, **given}
    answer = await desk.api.post(JOBS, json=sent)
    assert answer.status_code == 201, answer.text
    return str(body(answer)["jobId"])


async def ran(desk: Desk, job_id: str, **given: Any) -> str:
    """A run of it, as far as it comes; a second passes."""
    answer = await desk.api.post(f"{JOBS}/{job_id}:run", json=given)
    assert answer.status_code == 202, answer.text
    await desk.sim.settle()
    desk.clock.advance(timedelta(seconds=1))
    return str(body(answer)["runId"])


async def asked(desk: Desk, **query: Any) -> list[str]:
    return [each["id"] for each in (await desk.get(ACTIVITY, **query))["items"]]


async def some_runs(desk: Desk) -> tuple[str, str, str, str]:
    """Of a job that succeeds, one that fails and two workflows, of which one has failed and one waits; oldest first."""
    desk.failing |= {"bad", "n"}
    good = await ran(desk, await job(desk, "good"))
    bad = await ran(desk, await job(desk, "bad"))
    failed = await desk.start(node("n"), run="failed")
    desk.clock.advance(timedelta(seconds=1))
    return good, bad, failed, await desk.start(waiting("w"), run="waits")


async def test_both_kinds_are_shown_in_one_shape(desk: Desk) -> None:
    good, bad, failed, waits = await some_runs(desk)
    page = await desk.get(ACTIVITY)
    items = {each["id"]: each for each in page["items"]}
    assert list(items) == [waits, failed, bad, good]
    assert {key: page[key] for key in ("next", "total", "totalIsExact", "within")} == {
        "next": None,
        "total": 4,
        "totalIsExact": True,
        "within": None,
    }
    for each in page["items"]:
        ActivityItem.model_validate(each)
        assert set(each) == {str(field.alias or name) for name, field in ActivityItem.model_fields.items()}
    assert (items[bad]["kind"], items[bad]["status"], items[bad]["error"]) == ("job", "FAILED", "bad failed")
    assert items[bad]["trigger"] == "manual"
    assert items[failed]["target"] == {
        "kind": "workflow",
        "id": "w-failed",
        "name": "w-failed",
        "taskId": None,
        "deleted": False,
    }
    assert (items[waits]["status"], items[waits]["endedAt"], items[waits]["durationMillis"]) == ("RUNNING", None, None)


async def test_a_list_is_narrowed_by_whatever_is_asked(desk: Desk) -> None:
    good, bad, failed, waits = await some_runs(desk)
    middle = (await desk.get(f"{RUNS}/{failed}"))["createdAt"]
    assert await asked(desk, status="FAILED") == [failed, bad]
    assert await asked(desk, status="SUCCESS,RUNNING") == [waits, good]
    assert await asked(desk, status="CANCELED") == []
    assert await asked(desk, kind="job") == [bad, good]
    assert await asked(desk, status="FAILED", kind="workflow") == [failed]
    assert await asked(desk, jobId=(await desk.get(f"{ACTIVITY}", kind="job"))["items"][0]["target"]["id"]) == [bad]
    assert await asked(desk, workflowId="w-failed") == [failed]
    assert await asked(desk, trigger="schedule") == []
    assert await asked(desk, **{"from": middle}) == [waits, failed]
    assert await asked(desk, to=middle) == [bad, good]
    assert len(await asked(desk, status="", jobId="", cursor="", trigger="")) == 4
    assert await asked(desk, tenantId="acme") == await asked(desk, jobId="nobody") == await asked(desk, jobId="0") == []


async def test_pages_follow_each_other_by_cursor(desk: Desk) -> None:
    runs = await some_runs(desk)
    for sort in ("newest", "longest", "shortest"):
        found: list[str] = []
        query: Json = {"size": 1, "sort": sort}
        while True:
            page = await desk.get(ACTIVITY, **query)
            found += [each["id"] for each in page["items"]]
            assert page["within"] == (None if sort == "newest" else 10_000)
            if page["next"] is None:
                break
            query["cursor"] = page["next"]
        assert sorted(found) == sorted(runs)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"status": "FAILED,LOST"}, "status"),
        ({"kind": "task"}, "kind"),
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "from"),
        ({"sort": "oldest"}, "sort"),
        ({"size": 201}, "size"),
        ({"cursor": "%%%"}, "cursor"),
        ({"cursor": "WyJsb25nZXN0IiwxLDIsImpvYiIsM10", "sort": "newest"}, "cursor"),
        ({"cursor": "WyJsb25nZXN0IiwxLDIsIm5vbmUiLDNd", "sort": "longest"}, "cursor"),
        ({"limit": 5}, "limit"),
    ],
)
async def test_what_cannot_be_asked_is_named(desk: Desk, query: Json, field: str) -> None:
    status, code, details = told(await desk.api.get(ACTIVITY, params=query))
    assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field)


async def test_instants_at_the_ends_of_time_are_answered(desk: Desk) -> None:
    good, *_ = await some_runs(desk)
    key = (await desk.get(ACTIVITY, kind="job", status="SUCCESS"))["items"][0]["target"]["id"]
    always = {"from": "0001-01-01T00:00:00Z", "to": "9999-12-31T23:59:59Z"}
    assert await asked(desk, jobId=key, **always) == [good]
    assert len(await asked(desk, **always)) == 4


async def test_the_history_of_a_deleted_job_is_found_by_its_number(desk: Desk) -> None:
    key = await job(desk, "gone")
    run = await ran(desk, key)
    assert (await desk.api.delete(f"{JOBS}/{key}")).status_code == 204
    target = (await desk.get(ACTIVITY))["items"][0]["target"]
    assert (target["name"], target["deleted"]) == ("gone", True)
    assert await asked(desk, jobId=target["id"]) == [run]
    refused = (await desk.order(f"{ACTIVITY}:retry", ids=[run]))["refused"]
    assert [(each["id"], each["code"]) for each in refused] == [(run, "JOB_NOT_FOUND")]


# Orders to many -------------------------------------------------------------------------------------------------------


async def test_many_are_retried_and_each_is_refused_by_itself(desk: Desk) -> None:
    good, bad, failed, waits = await some_runs(desk)
    wanted = {"ids": [bad, failed, waits, NOWHERE, bad], "reason": "the disk is back"}
    dry = await desk.order(f"{ACTIVITY}:retry", **wanted, dryRun=True)
    assert (dry["matched"], dry["possible"], dry["done"], dry["limited"]) == (3, 2, 0, False)
    assert len(await asked(desk)) == 4
    desk.failing.clear()
    done = await desk.order(f"{ACTIVITY}:retry", **wanted)
    assert (done["matched"], done["possible"], done["done"]) == (3, 2, 2)
    assert {each["id"]: each["code"] for each in done["refused"]} == {
        waits: "RUN_NOT_STOPPED",
        NOWHERE: "RUN_NOT_FOUND",
    }
    newest, *_ = await asked(desk)
    assert newest not in {good, bad, failed, waits}
    assert sorted(await asked(desk, status="SUCCESS")) == sorted([good, failed, newest])


async def test_many_are_retried_by_what_the_list_is_asked(desk: Desk) -> None:
    await some_runs(desk)
    dry = await desk.order(f"{ACTIVITY}:retry", filter={"kind": "job"}, dryRun=True)
    assert (dry["matched"], dry["refused"]) == (1, [])  # the one that did not succeed
    told_of = await desk.order(f"{ACTIVITY}:retry", filter={"status": ["SUCCESS", "RUNNING"]}, dryRun=True)
    assert (told_of["matched"], told_of["possible"]) == (2, 1)
    desk.failing.clear()
    done = await desk.order(f"{ACTIVITY}:retry", filter={"status": ["FAILED"]})
    assert (done["matched"], done["done"], done["limited"]) == (2, 2, False)
    assert await asked(desk, status="FAILED", kind="workflow") == []


async def test_an_order_for_more_than_are_taken_at_once_goes_on_after_the_last_of_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "MOST_AT_ONCE", 2)
    desk.failing.add("bad")
    failing = await job(desk, "bad")
    runs = [await ran(desk, failing) for _ in range(5)]
    order: Json = {"filter": {"status": ["FAILED"]}}
    done, taken = 0, []
    for _ in range(3):
        told = await desk.order(f"{ACTIVITY}:retry", **order)
        await desk.sim.settle()  # each fails once more, and is not chosen again
        done += told["done"]
        taken.append((told["done"], told["limited"]))
        order["cursor"] = told["next"]
    assert (taken, order["cursor"]) == ([(2, True), (2, True), (1, False)], None)
    assert len(await asked(desk, status="FAILED")) == 2 * len(runs) == done + len(runs)


async def test_a_cursor_goes_with_a_filter_only_and_must_be_one(desk: Desk) -> None:
    for wrong in ({"ids": ["1"], "cursor": "x"}, {"filter": {"kind": "job"}, "cursor": "none of ours"}):
        answer = await desk.api.post(f"{ACTIVITY}:retry", json=wrong)
        assert (answer.status_code, "cursor" in answer.text) == (400, True)


async def test_what_has_not_ended_is_cancelled(desk: Desk) -> None:
    _, bad, _, waits = await some_runs(desk)
    answer = await desk.api.post(f"{JOBS}/{await job(desk, 'late')}:run")
    late = str(body(answer)["runId"])
    done = await desk.order(f"{ACTIVITY}:cancel", filter={"from": "2026-01-01T00:00:00Z"}, reason="enough")
    assert (done["matched"], done["done"], done["refused"]) == (2, 2, [])
    states = {each["id"]: (each["status"], each["reason"]) for each in (await desk.get(ACTIVITY))["items"]}
    assert (states[late], states[waits]) == (("CANCELED", "enough"), ("STOPPED", "enough"))
    again = await desk.order(f"{ACTIVITY}:cancel", ids=[bad, waits])
    assert [(each["id"], each["code"]) for each in again["refused"]] == [
        (bad, "RUN_NOT_RUNNING"),
        (waits, "RUN_NOT_RUNNING"),
    ]


async def test_nodes_take_no_orders_as_runs(desk: Desk) -> None:
    await some_runs(desk)
    [execution] = await _nodes(desk, "failed")
    refused = (await desk.order(f"{ACTIVITY}:retry", ids=[str(execution)]))["refused"]
    assert [each["code"] for each in refused] == ["RUN_OF_WORKFLOW"]
    status, code, details = told(await desk.api.post(f"{RUNS}/{execution}:retry"))
    assert (status, code, details) == (409, "RUN_OF_WORKFLOW", {"runId": str(execution), "nodeId": "n"})


async def _nodes(desk: Desk, run: str) -> list[int]:
    found = await desk.store.run_nodes((await desk.store.workflow_run_by_key(run)).id)
    return [each.execution.id for each in found.nodes]


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({}, "body"),
        ({"ids": ["1"], "filter": {"kind": "job"}}, "body"),
        ({"ids": []}, "ids"),
        ({"ids": ["1"] * 1_001}, "ids"),
        ({"filter": {}}, "filter"),
        ({"filter": {"status": ["LOST"]}}, "filter.status[0]"),
        ({"filter": {"from": "soon"}}, "filter.from"),
        ({"filter": {"jobID": "a"}}, "filter.jobID"),
        ({"ids": ["1"], "force": True}, "force"),
    ],
)
async def test_an_order_to_nobody_in_particular_is_refused(desk: Desk, sent: Json, field: str) -> None:
    status, code, details = told(await desk.api.post(f"{ACTIVITY}:cancel", json=sent))
    assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field)
