"""`/api/v1/events` as a stream from a real server: what happens is told, a listener resumes, and the end of the server ends it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ANSWER_SECONDS, BACK_ENDS, ON_SQLITE, empty_database, serving
from tests.contract.api.cronjob_world import create, trigger
from tests.contract.api.witness import Target

EVENTS = "/api/v1/events"
ON_SHARED = pytest.mark.parametrize("back_end", BACK_ENDS[1:2], indirect=True)


class Stream:
    """A stream of events, read on until something has come."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.last = ""

    def message(self) -> dict[str, str]:
        """The next, with its comments as `""`."""
        found: dict[str, str] = {}
        for line in self._lines:
            if not line:
                return found
            name, _, value = line.partition(":")
            found[name] = value.strip()
            self.last = found.get("id", self.last)
        raise EOFError

    def until(self, event_type: str) -> dict[str, Any]:
        while True:
            for event in json.loads(self.message().get("data", '{"events": []}'))["events"]:
                if event["type"] == event_type:
                    return dict(event)


@contextmanager
def listening(api: httpx2.Client, **headers: str) -> Iterator[Stream]:
    """A stream that has begun."""
    with api.stream("GET", EVENTS, headers={"Accept": "text/event-stream", **headers}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        stream = Stream(answer.iter_lines())
        assert stream.message() == {"retry": "1000"}
        assert stream.last == ""
        if not headers:
            stream.message()
        yield stream


@ON_SQLITE
def test_what_happens_is_told_and_who_comes_back_misses_nothing(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/ok"))
    with listening(api) as stream:
        run = trigger(api, task)
        ended = stream.until("execution.ended")
        assert (ended["run"], ended["target"]["kind"], ended["data"]["status"]) == (str(run), "job", "SUCCESS")
        last = stream.last
    again = trigger(api, task)
    with listening(api, **{"Last-Event-ID": last}) as stream:
        found = stream.until("execution.ended")
        while found["run"] != str(again):
            found = stream.until("execution.ended")


@ON_SHARED
def test_what_another_instance_does_is_told_and_the_end_of_a_server_ends_its_streams(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with ExitStack() as ending:
        url = ending.enter_context(empty_database(back_end, tmp_path, request))
        one = ending.enter_context(serving(tmp_path, url, {}))
        other = ending.enter_context(serving(tmp_path, url, {}))
        apis = [httpx2.Client(base_url=each.base, timeout=ANSWER_SECONDS) for each in (one, other)]
        here, there = [ending.enter_context(api) for api in apis]
        with listening(here) as stream:
            task = create(there, "http://127.0.0.1:1/")
            assert stream.until("job.created")["subject"] == f"job/{task}"
            assert one.end() == 0
            with pytest.raises(EOFError):
                stream.until("nothing more")
