"""What is planned, what became of what was planned, and how runs went node by node."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.contract.store.world import ANNA
from tests.unit.api.console.live_bench import Console, opened
from tests.unit.engine.workflow_world import Flow, node

from ksana.api.contracts.console import forecast
from ksana.domain.job import Contract
from ksana.domain.outcome import Failed

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    async with opened(tmp_path) as console:
        yield console


# Forecast


async def test_what_is_planned_by_target_soonest_first(console: Console) -> None:
    hourly = await console.sim.job(console.sim.every(HOUR), name="hourly", contract=Contract.KSANA)
    often = await console.sim.job(console.sim.every(20 * MINUTE), name="often", contract=Contract.CRONJOB)
    told = await console.get("/forecast", until="2026-01-01T02:00:00.000001Z")
    assert (told["from"], told["total"], told["limited"]) == ("2026-01-01T00:00:00Z", 2, False)
    first, second = told["items"]
    assert first["target"] == {
        "kind": "job",
        "id": often.job.key,
        "name": "often",
        "taskId": often.job.id,
        "deleted": False,
    }
    assert (first["count"], first["countIsExact"], first["instants"][0]) == (6, True, "2026-01-01T00:20:00Z")
    assert (second["target"]["id"], second["target"]["taskId"]) == (hourly.job.key, None)
    assert second["instants"] == ["2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"]
    assert second["scheduleIds"] == [hourly.schedules[0].key]
    assert len((await console.get("/forecast", until="2026-01-01T03:00:00Z", size=1))["items"]) == 1


async def test_what_is_planned_by_hour_with_the_largest_targets(console: Console) -> None:
    for number in range(1, 7):
        await console.sim.job(console.sim.every(number * MINUTE), name=f"every {number} minutes")
    told = await console.get("/forecast", by="hour", until="2026-01-01T02:00:00Z")
    assert [hour["at"] for hour in told["hours"]] == ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]
    assert [hour["count"] for hour in told["hours"]] == [141, 147]
    assert [each["count"] for each in told["hours"][1]["targets"]] == [60, 30, 20, 15, 12]
    assert told["hours"][1]["targets"][0]["target"]["name"] == "every 1 minutes"


async def test_a_workflow_is_planned_as_well_and_what_is_paused_is_not(console: Console) -> None:
    flow = Flow(console.sim)
    run = await console.sim.store.workflow_run_by_key(await flow.run([node("a")]))
    await console.sim.schedules.create(None, console.sim.every(MINUTE), ANNA, workflow_id=run.workflow_id)
    paused = await console.sim.job(console.sim.every(MINUTE))
    await console.sim.store.pause_schedule(paused.schedules[0].id, ANNA)
    told = await console.get("/forecast")
    assert [(each["target"]["kind"], each["target"]["id"]) for each in told["items"]] == [
        ("workflow", run.workflow_key)
    ]


async def test_an_answer_is_given_again_for_a_while(console: Console) -> None:
    before = await console.get("/forecast")
    await console.sim.job(console.sim.every(MINUTE))
    assert await console.get("/forecast") == before
    console.clock.advance(timedelta(seconds=forecast.REMEMBERED_SECONDS))
    assert (await console.get("/forecast"))["total"] == 1


async def test_that_not_all_schedules_were_looked_at_is_told(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "MOST_SCHEDULES", 1)
    for _ in range(2):
        await console.sim.job(console.sim.every(MINUTE))
    told = await console.get("/forecast")
    assert (told["limited"], told["total"], told["items"][0]["countIsExact"]) == (True, 1, False)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "yesterday"}, "from"),
        ({"from": "9999-12-31T23:59:59Z"}, "from"),
        ({"until": "2025-12-31T00:00:00Z"}, "until"),
        ({"until": "2026-01-03T00:00:01Z"}, "until"),
        ({"by": "day"}, "by"),
        ({"size": 0}, "size"),
        ({"x": 1}, "x"),
    ],
)
async def test_a_wrong_question_about_the_future_is_named(console: Console, query: dict[str, Any], field: str) -> None:
    assert await console.refused("/forecast", **query) == (400, field)


# Calendar


async def test_each_day_says_what_became_of_what_was_planned(console: Console) -> None:
    made = await console.sim.job(console.sim.every(12 * HOUR))
    await console.sim.advance(DAY)
    console.sim.target.answer = lambda _: Failed("no", retryable=False)
    await console.sim.advance(DAY)
    told = await console.get(f"/jobs/{made.job.key}/calendar", **{"from": "2026-01-01", "to": "2026-01-04"})
    assert told["days"] == [
        {"date": "2026-01-01", "planned": 1, "ran": 1, "skipped": 0, "missed": 0, "failed": 0},
        {"date": "2026-01-02", "planned": 2, "ran": 2, "skipped": 0, "missed": 0, "failed": 1},
        {"date": "2026-01-03", "planned": 1, "ran": 1, "skipped": 0, "missed": 0, "failed": 1},
    ]
    assert (told["timezone"], told["since"], told["partial"]) == ("UTC", None, False)
    zoned = await console.get(f"/jobs/{made.job.id}/calendar", timezone="Pacific/Auckland")
    assert len(zoned["days"]) == 35
    assert zoned["days"][-1]["date"] == "2026-01-03"
    assert sum(day["planned"] for day in zoned["days"]) == 4


async def test_what_was_skipped_in_one_go_is_shown_on_the_days_it_was_planned_for(console: Console) -> None:
    made = await console.sim.job(console.sim.every(6 * HOUR))
    console.clock.advance(3 * DAY)
    await console.sim.settle()
    told = await console.get(f"/jobs/{made.job.key}/calendar", **{"from": "2026-01-01", "to": "2026-01-05"})
    assert [(day["ran"], day["skipped"]) for day in told["days"]] == [(0, 3), (0, 4), (0, 4), (1, 0)]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "1.1.2026"}, "from"),
        ({"to": "9999-12-31"}, "to"),
        ({"from": "2026-01-02", "to": "2026-01-02"}, "to"),
        ({"from": "2026-01-02", "to": "2027-03-02"}, "to"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"x": 1}, "x"),
    ],
)
async def test_a_wrong_question_about_days_is_named(console: Console, query: dict[str, Any], field: str) -> None:
    job = (await console.sim.job()).job
    assert await console.refused(f"/jobs/{job.key}/calendar", **query) == (400, field)


async def test_a_job_that_is_not_there_has_no_calendar(console: Console) -> None:
    assert (await console.refused("/jobs/nobody/calendar"))[0] == 404


# Grid


async def test_runs_by_nodes_newest_first_in_the_order_of_the_definition(console: Console) -> None:
    flow = Flow(console.sim)
    flow.fails("b", times=1)
    first = await console.sim.store.workflow_run_by_key(await flow.run([node("a"), node("b", "a", forEach=[1])]))
    path = f"/workflows/{first.workflow_key}/grid"
    told = await console.get(path)
    assert (told["nodes"], told["limited"]) == (["a", "b"], False)
    [run] = told["runs"]
    assert (run["runId"], run["status"], run["trigger"]) == (first.key, "SUCCESS", "manual")
    assert run["nodes"] == {
        "a": {"status": "SUCCESS", "attempt": 1, "durationMillis": 0},
        "b": {"status": "SUCCESS", "attempt": 1, "durationMillis": 0},
    }
    assert (await console.refused(path, size=101)) == (400, "size")
    assert (await console.refused("/workflows/nobody/grid"))[0] == 404
