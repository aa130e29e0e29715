"""`/api/v1/schedules`: the next instants, the ledger, previews, and cron in words."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.clock import FakeClock
from tests.unit.api.ksana_bench import Bench, Json, benched, body

from ksana.api.contracts.cron_words import cron_in_words
from ksana.domain.cron import parse_cron

PATH = "/api/v1/schedules"
PREVIEW = f"{PATH}:preview"
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Bench]:
    async with benched(tmp_path, FakeClock()) as bench:
        yield bench


async def schedule_of(world: Bench, **schedule: Any) -> str:
    """The path of a schedule of a new job."""
    job = await world.create(schedule=schedule)
    (found,) = body(await world.api.get(PATH, params={"jobId": job["id"]}))["items"]
    return f"{PATH}/{found['id']}"


async def preview(world: Bench, **given: Any) -> Json:
    answer = await world.api.post(PREVIEW, json=given)
    assert answer.status_code == 200, answer.text
    return body(answer)


async def test_the_next_instants_are_told_in_utc_and_in_their_zone(world: Bench) -> None:
    path = await schedule_of(world, kind="cron", cron="0 9 * * *", timezone="Europe/Berlin")
    world.clock.advance(timedelta(days=86))
    await world.api.post(f"{path}/pause")  # of a paused one, what would follow
    told = body(await world.api.get(f"{path}/next", params={"count": 3}))
    assert (told["timezone"], told["description"]) == ("Europe/Berlin", "At 09:00")
    assert told["instants"] == [
        {"planned": planned, "local": local, "firesAt": planned}
        for planned, local in (
            ("2026-03-28T08:00:00Z", "2026-03-28T09:00:00+01:00"),
            ("2026-03-29T07:00:00Z", "2026-03-29T09:00:00+02:00"),
            ("2026-03-30T07:00:00Z", "2026-03-30T09:00:00+02:00"),
        )
    ]


async def test_an_instant_that_is_due_comes_first_and_jitter_is_known(world: Bench) -> None:
    path = await schedule_of(world, kind="every", every="5m", jitter="10s")
    world.clock.advance(7 * MINUTE)
    instants = body(await world.api.get(f"{path}/next"))["instants"]
    assert len(instants) == 10
    assert [each["planned"] for each in instants[:2]] == ["2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"]
    assert instants[0]["firesAt"] == body(await world.api.get(path))["nextFireAt"]


async def test_a_finished_schedule_has_no_next_instant(world: Bench) -> None:
    path = await schedule_of(world, kind="once", run_at="2025-01-01T00:00:00Z")
    assert body(await world.api.get(f"{path}/next"))["instants"] == []


async def test_the_ledger_says_what_became_of_each_instant(world: Bench) -> None:
    path = await schedule_of(world, kind="every", every="5m")
    await world.fire(5 * MINUTE)
    await world.fire(17 * MINUTE)
    told = body(await world.api.get(f"{path}/occurrences"))
    ran, skipped = told["items"]
    assert ran == {
        "plannedFor": "2026-01-01T00:05:00Z",
        "lastPlannedFor": None,
        "count": 1,
        "outcome": "FIRED",
        "reason": None,
        "runId": ran["runId"],
        "recordedAt": "2026-01-01T00:05:00Z",
    }
    assert (await world.store.execution(int(ran["runId"]))).planned_for is not None
    assert (skipped["plannedFor"], skipped["lastPlannedFor"]) == ("2026-01-01T00:10:00Z", "2026-01-01T00:20:00Z")
    assert (skipped["count"], skipped["outcome"], skipped["reason"]) == (3, "SKIPPED", "misfire_skip")
    assert (skipped["runId"], told["next"]) == (None, None)


async def test_the_ledger_is_read_in_portions(world: Bench) -> None:
    path = await schedule_of(world, kind="every", every="5m")
    for _ in range(5):
        await world.fire(5 * MINUTE)
    seen, since = [], "2026-01-01T00:00:00Z"
    while since:
        page = body(await world.api.get(f"{path}/occurrences", params={"from": since, "limit": 2}))
        seen += [item["plannedFor"] for item in page["items"]]
        since = page["next"]
    assert seen == [f"2026-01-01T00:{minute:02}:00Z" for minute in (5, 10, 15, 20)]
    window = {"from": "2026-01-01T00:10:00Z", "to": "2026-01-01T00:20:00Z"}
    inside = body(await world.api.get(f"{path}/occurrences", params=window))
    assert [item["plannedFor"] for item in inside["items"]] == ["2026-01-01T00:10:00Z", "2026-01-01T00:15:00Z"]


async def test_the_first_day_there_is_can_be_asked_for(world: Bench) -> None:
    path = await schedule_of(world, kind="every", every="5m")
    told = body(await world.api.get(f"{path}/occurrences", params={"to": "0001-01-01T00:00:00Z"}))
    assert told == {"items": [], "next": None}


async def test_a_definition_can_be_tried_without_saving_it(world: Bench) -> None:
    cron = await preview(world, kind="cron", cron="0 9 * * MON-FRI", timezone="Asia/Shanghai", count=2)
    assert (cron["timezone"], cron["description"]) == ("Asia/Shanghai", "At 09:00, Monday through Friday")
    assert [each["local"] for each in cron["instants"]] == ["2026-01-01T09:00:00+08:00", "2026-01-02T09:00:00+08:00"]
    every = await preview(world, kind="every", every="90s", count=1)
    assert (every["description"], every["instants"][0]["planned"]) == ("Every 1m30s", "2026-01-01T00:01:30Z")
    once = await preview(world, kind="once", runAt="2026-06-01T00:00:00Z", after="2027-01-01T00:00:00Z")
    assert (once["description"], once["instants"]) == ("Once, at 2026-06-01T00:00:00Z", [])
    assert body(await world.api.get(PATH))["total"] == 0


async def test_the_jitter_of_what_is_not_saved_is_not_known(world: Bench) -> None:
    told = await preview(world, kind="every", every="5m", jitter="5s")
    assert {each["firesAt"] for each in told["instants"]} == {None}
    assert len(told["instants"]) == 10


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("*/5 * * * *", "Every 5 minutes"),
        ("* * * * * *", "Every second"),
        ("0 9 1 * MON", "At 09:00, on day 1 of the month, or on Monday"),
        ("0 9 */2 * MON", "At 09:00, every 2 days, and only on Monday"),
        ("0 0 L * *", "At 00:00, on the last day of the month"),
        ("0 0 * * 5#2", "At 00:00, on the second Friday of the month"),
        ("0 0 1,L * *", "0 0 0 1,L * *"),  # there are no right words for it
        ("@yearly", "At 00:00, on day 1 of the month, only in January"),
    ],
)
def test_cron_is_told_in_words(cron: str, words: str) -> None:
    assert cron_in_words(parse_cron(cron, field="cron").normalized) == words
