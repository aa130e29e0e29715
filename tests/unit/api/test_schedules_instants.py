"""`/api/v1/schedules`: the next instants, the ledger, previews, and cron in words."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.clock import FakeClock
from tests.unit.api.ksana_bench import Bench, Json, benched, body

from ksana.api.contracts.cron_chinese import cron_in_chinese
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
    back, until = [], "2026-01-02T00:00:00Z"
    while until:
        page = body(await world.api.get(f"{path}/occurrences?order=newest&limit=3&to={until}"))
        back += [item["plannedFor"] for item in page["items"]]
        until = page["next"]
    assert back[-4:] == seen[::-1]
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


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("30 2 * * *", "每天 02:30"),
        ("*/15 * * * *", "每 15 分钟"),
        ("* * * * * *", "每秒"),
        ("*/20 30 9 * * *", "每天 9 点第 30 分每 20 秒"),
        ("@hourly", "每小时整点"),
        ("15 * * * *", "每小时第 15 分"),
        ("0 */2 * * *", "每 2 小时整点"),
        ("*/5 9-17 * * 1-5", "每周一至周五 9 至 17 点每 5 分钟"),
        ("0 8,12 * * SAT,SUN", "每周六、周日 08:00、12:00"),
        ("0 0 1,L */3 *", "每 3 个月的 1 日、最后一天 00:00"),
        ("0 10 LW * *", "每月最后一个工作日 10:00"),
        ("0 9 * * 1#2,5L", "每月第二个周一、最后一个周五 09:00"),
        ("0 0 * JAN-MAR *", "1 至 3 月每天 00:00"),
        ("30 2 13 * 5", "每月 13 日或每周五 02:30"),
        ("0 9 */2 * MON", "每月每 2 天且为周一 09:00"),
    ],
)
def test_cron_is_told_in_chinese(cron: str, words: str) -> None:
    assert cron_in_chinese(parse_cron(cron, field="cron").fields) == words


@pytest.mark.parametrize(
    ("cron", "after", "effect", "local"),
    [
        ("30 2 * * *", "2026-03-01", "ONCE_AFTER", ["27T02:30+01", "28T02:30+01", "29T03:00+02", "30T02:30+02"]),
        ("30 2 * * *", "2026-10-01", "ONCE_FIRST", ["24T02:30+02", "25T02:30+02", "26T02:30+01", "27T02:30+01"]),
        ("*/30 * * * *", "2026-03-01", "LEFT_OUT", ["29T01:00+01", "29T01:30+01", "29T03:00+02", "29T03:30+02"]),
        ("*/30 * * * *", "2026-10-01", "TWICE", ["25T02:00+02", "25T02:30+02", "25T02:00+01", "25T02:30+01"]),
        ("0 9 * * *", "2026-10-01", "NONE", ["23T09:00+02", "24T09:00+02", "25T09:00+01", "26T09:00+01"]),
    ],
)
async def test_the_next_change_of_the_clock_is_told_with_what_the_schedule_does_then(
    world: Bench, cron: str, after: str, effect: str, local: list[str]
) -> None:
    told = await preview(world, kind="cron", cron=cron, timezone="Europe/Zurich", after=f"{after}T00:00:00Z")
    change = told["clockChange"]
    assert change["effect"] == effect
    assert [f"{each['local'][8:16]}{each['local'][19:22]}" for each in change["instants"]][:4] == local


async def test_a_zone_whose_clock_does_not_change_has_nothing_to_tell_of_it(world: Bench) -> None:
    assert (await preview(world, kind="cron", cron="30 2 * * *", timezone="Asia/Shanghai"))["clockChange"] is None
    every = await preview(world, kind="every", every="1h", timezone="America/New_York")
    assert every["cronInWords"] is None
    change = every["clockChange"]
    assert (change["at"], change["effect"]) == ("2026-03-08T07:00:00Z", "NONE")
    assert (change["before"], change["after"]) == ("2026-03-08T02:00:00-05:00", "2026-03-08T03:00:00-04:00")
