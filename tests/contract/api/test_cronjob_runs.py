"""Document 003 §9.2: the runs of a task, by page, by status and by time, on every back end."""

from datetime import UTC, datetime, timedelta

import httpx2

from tests.contract.api.cronjob_world import (
    RUN_FIELDS,
    create,
    instant,
    run_of,
    runs_of,
    trigger,
    triggered,
    until_ended,
)
from tests.contract.api.witness import Target

HOUR = timedelta(hours=1)


def said(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def test_a_task_that_never_ran_has_an_empty_page(api: httpx2.Client, target: Target) -> None:
    page = runs_of(api, create(api, target.url()))
    assert {field: page[field] for field in ("page", "page_size", "total", "items")} == {
        "page": 1,
        "page_size": 20,
        "total": 0,
        "items": [],
    }


def test_runs_are_listed_newest_first_by_page(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url())
    runs = [until_ended(api, trigger(api, task))["id"] for _ in range(5)]
    pages = [runs_of(api, task, page=number, page_size=2) for number in (1, 2, 3, 4)]
    assert [[run["id"] for run in page["items"]] for page in pages] == [
        [runs[4], runs[3]],
        [runs[2], runs[1]],
        [runs[0]],
        [],
    ]
    assert {(page["page_size"], page["total"]) for page in pages} == {(2, 5)}


def test_a_listed_run_is_as_its_detail(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url())
    (item,) = runs_of(api, run["task_id"])["items"]
    shown = RUN_FIELDS & set(item)
    assert shown >= {"id", "task_id", "status", "scheduled_time", "start_time", "end_time", "attempt"}
    assert {field: item[field] for field in shown} == {field: run[field] for field in shown}


def test_runs_are_filtered_by_status(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/flaky/1"))
    failed, succeeded = [until_ended(api, trigger(api, task)) for _ in range(2)]
    assert (failed["status"], succeeded["status"]) == ("FAILED", "SUCCESS")
    for run in (failed, succeeded):
        page = runs_of(api, task, status=run["status"])
        assert (page["total"], [item["id"] for item in page["items"]]) == (1, [run["id"]])
    assert runs_of(api, task, status="SKIPPED")["total"] == 0


def test_runs_are_filtered_by_time(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url())
    task, planned = run["task_id"], instant(run["scheduled_time"])

    def count(**params: datetime) -> int:
        return int(runs_of(api, task, **{name: said(moment) for name, moment in params.items()})["total"])

    now = datetime.now(UTC)
    assert count(**{"from": planned - HOUR, "to": now + HOUR}) == 1
    assert count(**{"from": now + HOUR}) == 0
    assert count(to=planned - HOUR) == 0
    assert count(**{"from": planned - HOUR}) == count(to=now + HOUR) == 1
    assert count(**{"from": planned}) == 1


def test_runs_of_one_task_are_not_those_of_another(api: httpx2.Client, target: Target) -> None:
    one, other = triggered(api, target.url()), triggered(api, target.url())
    assert [run["id"] for run in runs_of(api, one["task_id"])["items"]] == [one["id"]]
    assert run_of(api, other["id"])["task_id"] == other["task_id"]
