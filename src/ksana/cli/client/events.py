"""`ksana events`."""

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from cyclopts import Parameter

from ksana.cli.client.flags import Limit
from ksana.cli.client.server import LOCAL, Answer, Query, Server
from ksana.cli.client.showing import Column, plain, write
from ksana.cli.ending import UNREACHABLE, Refusal, tell

EVENT_STREAM = "text/event-stream"
SILENCE_SECONDS = 45.0
"""A server that lives says something every 15 seconds."""
_EVENTS: list[Column] = [
    ("ID", "id"),
    ("AT", "at"),
    ("TYPE", "type"),
    ("SUBJECT", "subject"),
    ("RUN", "run"),
    ("DATA", "data"),
]


def events_(
    *,
    follow: Annotated[bool, Parameter(name="--follow", negative="", help="Print what happens, from now on.")] = False,
    types: Annotated[
        str | None, Parameter(name="--types", help="Only these, by commas, as execution.ended or execution.")
    ] = None,
    subject: Annotated[str | None, Parameter(name="--subject", help="Only what happened to this, as job/1.")] = None,
    run: Annotated[str | None, Parameter(name="--run", help="Only what happened to this run.")] = None,
    after: Annotated[int | None, Parameter(name="--after", help="What came after the event with this id.")] = None,
    limit: Limit = 100,
    server: Server = LOCAL,
) -> int:
    """Print what happened, oldest first; with --follow, what happens."""
    narrowed: Query = {"types": types, "subject": subject, "run": run, "after": after}
    if follow:
        return _follow(server, narrowed)
    return server.list_items("events", _EVENTS, {**narrowed, "limit": limit})


def _follow(server: Server, narrowed: Query) -> int:
    """Until somebody interrupts it; a Refusal that says how to go on when the server ends it."""
    reached: str | None = None
    for position, data in messages(server.stream("events", {}, narrowed, EVENT_STREAM, SILENCE_SECONDS)):
        reached = position
        if data is None:
            continue
        for event in data.part("events", list):
            write(json.dumps(event, ensure_ascii=False) if server.as_json else _line(event))
        if data.part("more", bool):
            tell("there were too many events: older ones were left out")
    again = f"; go on with --after {reached}" if reached else ""
    raise Refusal(f"the server has ended the stream{again}", UNREACHABLE)


def messages(parts: Iterable[bytes]) -> Iterator[tuple[str | None, Answer | None]]:
    """The id so far and the data of each message of an event stream; without data for those that only say where it stands."""
    last: str | None = None
    data: Answer | None = None
    for line in _lines(parts):
        name, _, value = line.partition(":")
        if name == "id":
            last = value.strip()
        elif name == "data":
            data = Answer(value.encode())
        elif not line and (last or data):
            yield last, data
            data = None


def _lines(parts: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


def _line(event: dict[str, Any]) -> str:
    return "  ".join(" ".join(plain(event.get(path)).split()) for _, path in _EVENTS)
