"""What happened, as a page; and the hub that tells everybody who listens what happens."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.contract.store.world import ANNA
from tests.unit.api.console.live_bench import Console, opened
from tests.unit.engine.workflow_world import Flow, node

from ksana.api.live import listening
from ksana.api.live.listening import Batch, Listener, Wanted
from ksana.api.live.reader import EventReader
from ksana.api.live.stream import EventStream, written
from ksana.api.live.telling import Told
from ksana.domain.errors import StoreUnavailable
from ksana.domain.job import Job

PATIENCE = 20.0
SOON = timedelta(seconds=1)


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    async with opened(tmp_path) as console:
        yield console


async def a_job(console: Console) -> Job:
    return (await console.sim.job()).job


async def taken(console: Console, listener: Listener) -> Batch:
    """The next batch, when time has passed."""
    console.clock.advance(SOON)
    batch = await listener.take(PATIENCE)
    assert batch is not None
    return batch


async def unavailable(*_: object) -> None:
    raise StoreUnavailable("not now")


def subjects(batch: Batch) -> list[str]:
    return [orjson.loads(each.text)["subject"] for each in batch.events]


# Pages


async def test_events_are_told_with_the_run_and_the_target_that_they_are_about(console: Console) -> None:
    job = await a_job(console)
    run = await console.sim.run(job)
    await console.sim.settle()
    page = await console.get("/events")
    about = {(each["type"], each["run"], each["target"] and each["target"]["id"]) for each in page["items"]}
    assert about >= {("job.created", None, job.key), ("execution.ended", str(run.id), job.key)}
    assert page["next"] == page["items"][-1]["id"]
    assert await console.get("/events", after=page["next"]) == {"items": [], "next": page["next"]}
    assert len((await console.get("/events", limit=1))["items"]) == 1


async def test_what_was_deleted_is_told_by_the_key_that_it_had(console: Console) -> None:
    job = await a_job(console)
    await console.sim.store.delete_job(job.id, ANNA)
    [created, deleted] = (await console.get("/events", types="job"))["items"]
    assert (created["target"], deleted["target"]) == (None, {"kind": "job", "id": job.key})


async def test_a_page_is_narrowed_by_types_subject_and_run(console: Console) -> None:
    jobs = [await a_job(console) for _ in range(3)]
    flow = Flow(console.sim)
    key = await flow.run([node("a")])
    run = await console.sim.store.workflow_run_by_key(key)

    async def found(**query: Any) -> list[str]:
        return [each["subject"] for each in (await console.get("/events", **query))["items"]]

    assert await found(types="job.created,workflow") == [
        *(f"job/{job.id}" for job in jobs),
        f"workflow/{run.workflow_id}",
    ]
    assert await found(subject=f"job/{jobs[1].id}") == [f"job/{jobs[1].id}"]
    of_run = await console.get("/events", run=key)
    assert {each["subject"] for each in of_run["items"]} == {f"run/{run.id}"}
    assert {(each["run"], each["target"]["id"]) for each in of_run["items"]} == {(key, run.workflow_key)}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"after": "x"}, (400, "after")),
        ({"limit": 0}, (400, "limit")),
        ({"types": "job,nothing"}, (400, "types")),
        ({"subject": "x"}, (400, "subject")),
        ({"unknown": 1}, (400, "unknown")),
        ({"run": "1", "subject": "job/1"}, (400, "run")),
        ({"run": "999"}, (404, "")),
        ({"run": "nobody"}, (404, "")),
    ],
)
async def test_a_wrong_question_is_named(console: Console, query: dict[str, Any], told: tuple[int, str]) -> None:
    assert await console.refused("/events", **query) == told


# The hub


async def test_a_listener_hears_what_happens_from_now_on(console: Console) -> None:
    await a_job(console)
    with console.hub.listening(Wanted()) as listener:
        await console.hub.begin(listener, None)
        job = await a_job(console)
        batch = await taken(console, listener)
        assert (subjects(batch), batch.more) == ([f"job/{job.id}"], False)
        assert batch.position == batch.events[-1].id


async def test_who_comes_back_hears_what_came_meanwhile_and_nothing_twice(console: Console) -> None:
    missed = [await a_job(console) for _ in range(2)]
    first = (await console.get("/events", types="job"))["items"][0]["id"]
    with console.hub.listening(Wanted(frozenset({"job"}))) as listener:
        await console.hub.begin(listener, first)
        later = await a_job(console)
        heard = subjects(await taken(console, listener))
        if len(heard) == 1:
            heard += subjects(await taken(console, listener))
        assert heard == [f"job/{missed[1].id}", f"job/{later.id}"]


async def test_each_hears_what_it_asked_for(console: Console) -> None:
    job = await a_job(console)
    with (
        console.hub.listening(Wanted(subject=f"job/{job.id}")) as one,
        console.hub.listening(Wanted(frozenset({"job.created"}))) as other,
    ):
        await console.hub.begin(one, None)
        await console.hub.begin(other, None)
        new = await a_job(console)
        await console.sim.store.delete_job(job.id, ANNA)
        assert subjects(await taken(console, one)) == [f"job/{job.id}"]
        assert subjects(await taken(console, other)) == [f"job/{new.id}"]


async def test_of_very_much_the_newest_is_told_and_that_there_was_more(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "MOST_AT_ONCE", 2)
    with console.hub.listening(Wanted()) as listener:
        await console.hub.begin(listener, None)
        jobs = [await a_job(console) for _ in range(3)]
        batch = await taken(console, listener)
        assert (subjects(batch), batch.more) == ([f"job/{job.id}" for job in jobs[1:]], True)


def test_what_a_listener_does_not_take_in_time_falls_out_and_is_told_as_more() -> None:
    async def fallen() -> Batch | None:
        listener = Listener(Wanted())
        for number in range(listening.MOST_AT_ONCE + 1):
            listener.offer([Told(number, b"{}")], number, more=False)
        return await listener.take(0)

    batch = asyncio.run(fallen())
    assert batch is not None
    assert (len(batch.events), batch.events[0].id, batch.more) == (listening.MOST_AT_ONCE, 1, True)


async def test_what_could_not_be_told_is_told_as_more(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    with console.hub.listening(Wanted()) as listener:
        await console.hub.begin(listener, None)
        monkeypatch.setattr(console.sim.store, "origins", unavailable)
        await a_job(console)
        batch = await taken(console, listener)
        assert (batch.events, batch.more) == ((), True)
        monkeypatch.undo()
        job = await a_job(console)
        batch = await taken(console, listener)
        assert (subjects(batch), batch.more) == ([f"job/{job.id}"], False)


async def test_what_came_late_is_told_though_the_rest_could_not_be_read(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_job(console)
    reader = EventReader(console.sim.store, console.clock)
    reader._gaps = {1: console.clock.monotonic() + PATIENCE}
    monkeypatch.setattr(console.sim.store, "events", unavailable)
    with pytest.raises(StoreUnavailable):
        await reader.read()
    monkeypatch.undo()
    reader._last = await console.sim.store.newest_event_id()
    assert [event.id for event in (await reader.read()).events] == [1]


async def test_what_could_not_be_read_is_read_with_the_next_look(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    with console.hub.listening(Wanted()) as listener:
        await console.hub.begin(listener, None)
        assert console.hub._reading is not None
        reading, loop = console.hub._reading
        await loop.stop()
        job = await a_job(console)
        monkeypatch.setattr(console.sim.store, "events", unavailable)
        console.clock.advance(SOON)
        with pytest.raises(StoreUnavailable):
            await reading.run_once(console.clock.now())
        monkeypatch.undo()
        console.clock.advance(SOON)
        await reading.run_once(console.clock.now())
        batch = await listener.take(0)
        assert batch is not None
        assert subjects(batch) == [f"job/{job.id}"]


async def test_nothing_is_read_while_nobody_listens(console: Console) -> None:
    with console.hub.listening(Wanted()) as listener:
        await console.hub.begin(listener, None)
        assert console.hub._reading is not None
    assert console.hub._reading is None


async def test_streams_end_when_the_hub_is_closed_and_later_ones_at_once(console: Console) -> None:
    with console.hub.listening(Wanted()) as listener:
        await console.hub.begin(listener, None)
        await console.hub.close()
        assert await listener.take(PATIENCE) is None
    answer = await console.api.get("/api/v1/events", headers={"Accept": "text/event-stream"})
    assert (answer.text, answer.headers["content-type"]) == ("retry: 1000\n\n", "text/event-stream; charset=utf-8")


@pytest.mark.parametrize("last", ["x", "-1", str(2**53), "0" * 20 + "9" * 20, "0" * 20 + "9" * 5_000])
async def test_a_stream_refuses_a_wrong_last_id(console: Console, last: str) -> None:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
    answer = await console.api.get("/api/v1/events", headers=headers)
    assert (answer.status_code, answer.json()["details"]["field"]) == (400, "Last-Event-ID")


def test_a_batch_is_one_message_and_an_empty_one_a_comment() -> None:
    assert written(Batch([Told(7, b'{"id":7}')], more=True, position=9)) == (
        b'id: 9\nevent: changes\ndata: {"events":[{"id":7}],"more":true}\n\n'
    )
    assert written(Batch([], more=False, position=9)) == b": still here\nid: 9\n\n"


async def test_a_listener_that_does_not_read_is_cut_off(console: Console) -> None:
    async def stuck(_: object) -> None:
        await asyncio.Event().wait()

    async def nothing() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    stream = EventStream(console.hub, Wanted(), None, patience=0.01)
    await asyncio.wait_for(stream({"type": "http"}, nothing, stuck), PATIENCE)
    assert console.hub._listeners == set()
