"""What nodes and runs have written, at `…/logs`: as text, by parts, followed."""

import asyncio
from collections.abc import Awaitable

import httpx2
import pytest
from tests.unit.api.jobchain.workflow_bench import CURRENT, RUNS, Desk, node, told, waiting
from tests.unit.api.ksana_bench import body

from ksana.api.contracts.jobchain import log_reading
from ksana.api.system import Health
from ksana.domain.execution import Claim
from ksana.domain.outcome import Failed, Outcome, Succeeded
from ksana.executors.base import ExecutionContext
from ksana.store.workflow_requests import LogChunk

LOGS = f"{RUNS}/r/nodes/a/logs"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reading, "POLL_SECONDS", 0.01)


async def written(desk: Desk, name: str, *texts: str, first: int = 1) -> None:
    """The attempt under way, or the last one, writes these."""
    run = await desk.store.workflow_run_by_key("r")
    execution = (await desk.store.node_run(run.id, name)).execution
    claim = Claim(execution.id, execution.epoch)
    chunks = [LogChunk(claim, first + number, desk.clock.now(), "stdout", text) for number, text in enumerate(texts)]
    assert await desk.store.append_logs(chunks) == len(texts)


async def test_all_that_was_written_is_a_text(desk: Desk) -> None:
    await desk.start(node("a"))
    await written(desk, "a", *(f"line {number}\n" for number in range(1200)))
    answer = await desk.api.get(LOGS)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == "".join(f"line {number}\n" for number in range(1200))
    assert (await desk.api.get(LOGS, params={"after": "1.1198"})).text == "line 1198\nline 1199\n"


async def test_parts_come_with_a_cursor(desk: Desk) -> None:
    await desk.start(node("a"))
    assert await desk.get(LOGS, format="json") == {"items": [], "cursor": None}
    await written(desk, "a", "one\n", "two\n", "three\n")
    page = await desk.get(LOGS, format="json", limit=2)
    part = {"epoch": 1, "seq": 1, "at": "2026-01-01T00:00:00Z", "stream": "stdout", "text": "one\n"}
    assert (page["items"][0], page["cursor"]) == (part, "1.2")
    rest = await desk.get(LOGS, format="json", after=page["cursor"])
    assert ([each["text"] for each in rest["items"]], rest["cursor"]) == (["three\n"], "1.3")
    assert await desk.get(LOGS, format="json", after="1.3") == {"items": [], "cursor": "1.3"}


async def test_it_is_read_from_its_end_backwards(desk: Desk) -> None:
    await desk.start(node("a"))
    assert await desk.get(LOGS, format="json", before="end") == {"items": [], "cursor": None, "before": None}
    await written(desk, "a", *(f"line {number}\n" for number in range(1, 51)))
    page = await desk.get(LOGS, format="json", before="end", limit=30)
    assert [page["items"][at]["seq"] for at in (0, -1)] == [21, 50]
    assert (page["cursor"], page["before"]) == ("1.50", "1.21")
    page = await desk.get(LOGS, format="json", before=page["before"])
    assert [page["items"][at]["seq"] for at in (0, -1)] == [1, 20]
    assert page["before"] is None


async def test_backwards_it_comes_in_pieces_of_a_bounded_size(desk: Desk) -> None:
    await desk.start(node("a"))
    await written(desk, "a", *["x" * (log_reading.MOST_TEXT // 2)] * 5)
    page = await desk.get(LOGS, format="json", before="end")
    assert ([each["seq"] for each in page["items"]], page["before"]) == ([4, 5], "1.4")


async def test_one_attempt_is_asked_for_by_its_number(desk: Desk) -> None:
    outcomes: list[Outcome] = [Failed("no", retryable=False), Succeeded()]

    def answer(_: ExecutionContext) -> Outcome:
        return outcomes.pop(0)

    desk.sim.target.answer = answer
    await desk.start(node("a"))
    await written(desk, "a", "first\n")
    await desk.order(f"{RUNS}/r/nodes/a:retry")
    await written(desk, "a", "second\n")
    assert (await desk.api.get(LOGS)).text == "first\nsecond\n"
    for attempt, text in ((1, "first\n"), (2, "second\n"), (3, "")):
        assert (await desk.api.get(LOGS, params={"attempt": attempt})).text == text
        page = await desk.get(LOGS, format="json", before="end", attempt=attempt)
        assert "".join(each["text"] for each in page["items"]) == text
    assert (await desk.api.get(LOGS, params={"attempt": 1, "follow": "true"})).text == "first\n"


async def test_it_is_followed_until_the_node_has_ended(desk: Desk) -> None:
    await desk.start(waiting("a"))
    following = asyncio.create_task(_text(desk.api.get(LOGS, params={"follow": "true"})))
    await written(desk, "a", "one\n")
    await asyncio.sleep(0.05)
    assert not following.done()
    await written(desk, "a", "last words\n", first=2)
    await desk.order(f"{RUNS}/r/nodes/a:complete")
    assert await following == "one\nlast words\n"


async def test_a_server_that_stops_ends_it(desk: Desk) -> None:
    await desk.start(waiting("a"))
    following = asyncio.create_task(_text(desk.api.get(LOGS, params={"follow": "true"})))
    await asyncio.sleep(0.05)
    assert not following.done()
    CURRENT.health = Health.STOPPING
    assert await following == ""


async def test_the_run_of_a_job_has_logs_as_well(desk: Desk) -> None:
    run = await desk.sim.run((await desk.sim.job()).job)
    await desk.sim.settle()
    execution = await desk.store.execution(run.id)
    await desk.store.append_logs([LogChunk(Claim(run.id, execution.epoch), 1, desk.clock.now(), "stderr", "oops\n")])
    assert (await desk.api.get(f"{RUNS}/{run.id}/logs")).text == "oops\n"
    assert body(await desk.api.get(f"{RUNS}/{run.id}/logs?format=json"))["items"][0]["stream"] == "stderr"
    assert told(await desk.api.get(f"{RUNS}/x/logs"))[:2] == (400, "INVALID_ID")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("after=x", "after"),
        ("after=1", "after"),
        ("attempt=0", "attempt"),
        ("format=xml", "format"),
        ("follow=maybe", "follow"),
        ("follow=true&format=json", "follow"),
        ("limit=0", "limit"),
        ("before=end", "before"),
        ("before=x&format=json", "before"),
        ("before=end&after=1.1&format=json", "before"),
    ],
)
async def test_a_wrong_query_is_named(desk: Desk, query: str, field: str) -> None:
    await desk.start(node("a"))
    status, code, details = told(await desk.api.get(f"{LOGS}?{query}"))
    assert (status, code, details["field"]) == (400, "VALIDATION_ERROR", field)


async def _text(asked: Awaitable[httpx2.Response]) -> str:
    return (await asked).text
