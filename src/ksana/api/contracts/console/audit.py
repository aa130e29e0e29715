"""`GET /api/v1/audit`: who did what."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Annotated, Any, Protocol

from fastapi import Query, Response
from pydantic import BeforeValidator, ConfigDict, Field

from ksana.api.contracts.console.origins import OriginShown, origins_shown
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.keys import found_job, found_plan, found_schedule, found_task, found_workflow
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.shapes import Shown, answer
from ksana.api.contracts.values import empty_as_none, printable
from ksana.api.services import Services
from ksana.api.times import rfc3339
from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.ids import LARGEST_INTEGER
from ksana.store.base import Store
from ksana.store.console_requests import AuditFilter
from ksana.store.requests import AuditEntry, PageRequest

AUDIT = "/api/v1/audit"
MOST_SHOWN = 200
_ENTRY: dict[str, Any] = {
    "id": 17,
    "at": "2026-01-31T12:00:00Z",
    "actor": "anonymous",
    "address": "127.0.0.1",
    "requestId": "0199f0c4",
    "action": "run.canceled",
    "subject": "execution/42",
    "run": "42",
    "target": {"kind": "job", "id": "ping", "name": "ping", "taskId": 1, "deleted": False},
    "reason": "no longer needed",
    "data": {},
}
Empty = BeforeValidator(empty_as_none)
Subject = Annotated[
    str,
    Field(
        max_length=160,
        examples=["job/1"],
        description="`kind/id`, as entries have it; also with the id that the API knows it by (of a task, its `taskId`).",
    ),
]
ActorName = Annotated[str, Field(max_length=128)]
Cursor = Annotated[str, Field(max_length=32, description="`next` of the page before.")]


class _Numbered(Protocol):
    @property
    def id(self) -> int: ...


_FOUND: Mapping[str, Callable[[Store, str], Awaitable[_Numbered]]] = {
    "job": found_job,
    "workflow": found_workflow,
    "schedule": found_schedule,
    "plan": found_plan,
    "task": found_task,
}


class AuditEntryShown(OriginShown):
    """Something that somebody asked for, written in the transaction that did it."""

    id: int
    at: str
    actor: str
    address: str = Field(description="From where it was asked.")
    request_id: str
    action: str = Field(examples=["job.deleted"])
    subject: str = Field(examples=["job/1"], description="What it was done to: `kind/id`, with the store's own number.")
    reason: str | None
    data: dict[str, Any]


class AuditShown(Shown):
    """Newest first."""

    model_config = ConfigDict(json_schema_extra={"example": {"items": [_ENTRY], "next": "17"}})

    items: list[AuditEntryShown]
    next: str | None = Field(description="The cursor of the next page; null: this is the last.")


class AuditQuery(StrictQuery):
    subject: Annotated[Subject | None, Empty] = None
    actor: Annotated[ActorName | None, Empty] = None
    cursor: Annotated[Cursor | None, Empty] = None
    size: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = 50


class Audit:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        yield Route("GET", AUDIT, self.find, "Who did what", Permission.AUDIT_READ, AuditShown, (400,))

    async def find(self, query: Annotated[AuditQuery, Query()]) -> Response:
        """Every change that somebody asked for, newest first, as long as retention keeps it."""
        filters = AuditFilter(
            subject=None if query.subject is None else await self._subject(printable(query.subject, field="subject")),
            actor=None if query.actor is None else printable(query.actor, field="actor"),
        )
        # One more than is shown tells whether there is a next page.
        page = PageRequest(size=query.size + 1, before_id=_before(query.cursor))
        found = list((await self._services.store.audit_entries(page, filters)).items)
        items, more = found[: query.size], len(found) > query.size
        origins = await origins_shown(self._services.store, {each.subject for each in items})
        shown = [{**_shown(each), **origins[each.subject]} for each in items]
        return answer({"items": shown, "next": str(items[-1].id) if more else None})

    async def _subject(self, text: str) -> str:
        """With the store's own number, which entries have."""
        kind, _, key = text.partition("/")
        if kind not in _FOUND or key.isdigit():
            return text
        try:
            return f"{kind}/{(await _FOUND[kind](self._services.store, key)).id}"
        except NotFound:
            return text


def _before(cursor: str | None) -> int:
    if cursor is None:
        return LARGEST_INTEGER
    if not (cursor.isascii() and cursor.isdigit() and int(cursor) <= LARGEST_INTEGER):
        raise InvalidInput("cursor", "is not what `next` of a page was")
    return int(cursor)


def _shown(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": rfc3339(entry.at),
        "actor": entry.actor.name,
        "address": entry.actor.address,
        "requestId": entry.actor.request_id,
        "action": entry.action,
        "subject": entry.subject,
        "reason": entry.actor.reason or None,
        "data": dict(entry.data),
    }
