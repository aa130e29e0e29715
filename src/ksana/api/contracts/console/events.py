"""`GET /api/v1/events`: what happened, as a page, or as a stream while it happens."""

import re
from typing import Annotated

from fastapi import Header, Query, Request, Response

from ksana.api.app import Contract
from ksana.api.contracts.console.event_models import ChangesShown, EventsShown
from ksana.api.contracts.jobchain.routes import Permission, needing
from ksana.api.contracts.keys import found_run
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.shapes import answer, problems
from ksana.api.live.hub import Hub
from ksana.api.live.listening import Wanted
from ksana.api.live.stream import EVENT_STREAM, EventStream
from ksana.api.openapi import answer_of
from ksana.api.routing import new_router
from ksana.api.services import Services
from ksana.domain.errors import InvalidInput
from ksana.domain.events import Event, EventType
from ksana.domain.ids import LARGEST_INTEGER
from ksana.store.base import Store

PATH = "/api/v1/events"
MOST = 1_000
MOST_LOOKED_AT = 10_000
"""Events that a page with `types` looks at to find its own."""
_TYPES = frozenset({name for each in EventType for name in (each.value, each.value.partition(".")[0])})
_SUBJECT = re.compile(r"[a-z]{1,20}/[A-Za-z0-9._~:-]{1,120}")
_LAST = "Last-Event-ID"
_AS_JSON = answer_of(ChangesShown, "")["content"]["application/json"]
_ANSWERS: dict[int | str, dict[str, object]] = {
    200: {
        "description": f"A page; with `Accept: {EVENT_STREAM}` a stream, whose messages have this as their `data`.",
        "content": {EVENT_STREAM: _AS_JSON},
    }
}


class EventQuery(StrictQuery):
    after: int | None = Query(None, ge=0, le=LARGEST_INTEGER, description="What came after the event with this id.")
    limit: int = Query(100, ge=1, le=MOST, description="Of a page.")
    types: str | None = Query(
        None,
        max_length=2_000,
        description="Only these, by commas: `execution.ended`, or `execution` for all of a kind.",
    )
    subject: str | None = Query(None, max_length=160, description="Only what happened to this, as in `job/1`.")
    run: str | None = Query(None, description="Only what happened to the run with this id.")


def events_contract(services: Services, hub: Hub) -> Contract:
    router, store = new_router("Console"), services.store

    @router.get(
        PATH,
        response_model=EventsShown,
        responses={**_ANSWERS, **problems(400, 404)},
        summary="What happened, or what happens",
        openapi_extra=needing(Permission.RUN_READ),
    )
    async def events(
        request: Request,
        query: Annotated[EventQuery, Query()],
        last: Annotated[str | None, Header(alias=_LAST, description="Of a stream: the same as `after`.")] = None,
    ) -> Response:
        """What happened, oldest first. Asked for as an event stream, it begins now, or after the event that it names, and goes on:
        batches, no closer than 250 ms, and a comment every 15 s. What came already can come again, nothing is left out
        unless `more` says so."""
        wanted = await _wanted(store, query)
        if EVENT_STREAM in request.headers.get("accept", ""):
            return EventStream(hub, wanted, query.after if last is None else _read_id(last))
        found, following = await _page(store, wanted, query.after or 0, query.limit)
        return answer({"items": await hub.teller.shown(found), "next": following})

    return Contract(router)


async def _wanted(store: Store, query: EventQuery) -> Wanted:
    types = frozenset(filter(None, (query.types or "").split(",")))
    for unknown in sorted(types - _TYPES):
        raise InvalidInput(
            "types", f"there are no events {unknown!r}; as in execution.ended, or execution for all of those"
        )
    subject = query.subject
    if subject is not None and _SUBJECT.fullmatch(subject) is None:
        raise InvalidInput("subject", "must be a kind and an id, as in job/1")
    if query.run is None:
        return Wanted(types, subject)
    if subject is not None:
        raise InvalidInput("run", "cannot be given with subject: a run is one")
    return Wanted(types, await _subject_of(store, query.run))


async def _subject_of(store: Store, run: str) -> str:
    """NotFound."""
    if run.isascii() and run.isdigit() and len(run) <= len(str(LARGEST_INTEGER)):
        return f"execution/{(await store.execution(int(run))).id}"
    return f"run/{(await found_run(store, run)).id}"


def _read_id(text: str) -> int:
    known = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_INTEGER))
    if not known or int(text) > LARGEST_INTEGER:
        raise InvalidInput(_LAST, "must be the id of an event, a whole number")
    return int(text)


async def _page(store: Store, wanted: Wanted, after: int, limit: int) -> tuple[list[Event], int]:
    """The next that fit, and where to go on from: behind them, or behind the last that was looked at."""
    found: list[Event] = []
    at_once = MOST if wanted.types else limit
    for _ in range(MOST_LOOKED_AT // MOST):
        events = await store.events(after, at_once, wanted.subject)
        for event in events:
            after = event.id
            if wanted.fits(event):
                found.append(event)
            if len(found) == limit:
                return found, after
        if len(events) < at_once:
            break
    return found, after
