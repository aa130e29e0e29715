"""Events and audit entries, written with what they tell of."""

from collections.abc import Mapping, Sequence
from typing import Any

from ksana.domain.events import Actor, EventType
from ksana.store.sql.rows import brief, columns, insert_rows, storable, to_json
from ksana.store.sql.tx import Tx

_EVENT = columns(type="text", at="int", subject="text", data="text")
_INSERT_EVENTS = insert_rows("events", _EVENT)
_AUDIT = columns(
    at="int", actor="text", address="text", request_id="text", action="text", subject="text", reason="text", data="text"
)
_INSERT_AUDIT = insert_rows("audit_entries", _AUDIT)

Happening = tuple[EventType, str, Mapping[str, Any] | None]
"""What happened, to what (`kind/id`), and the rest."""


def record_events(tx: Tx, at: int, happenings: Sequence[Happening]) -> None:
    if happenings:
        tx.run(_INSERT_EVENTS, [(kind._value_, at, subject, to_json(data)) for kind, subject, data in happenings])


def record_change(tx: Tx, at: int, actor: Actor, happening: Happening) -> None:
    """A change that somebody asked for: an event, and an audit entry that says who."""
    record_changes(tx, at, [(actor, happening)])


def record_changes(tx: Tx, at: int, changes: Sequence[tuple[Actor, Happening]]) -> None:
    if changes:
        record_events(tx, at, [happening for _, happening in changes])
        rows = [_audit_row(at, actor, kind._value_, subject, data) for actor, (kind, subject, data) in changes]
        tx.run(_INSERT_AUDIT, rows)


def record_audit(tx: Tx, at: int, actor: Actor, action: str, subject: str, data: Mapping[str, Any] | None) -> None:
    """What somebody asked for, where what followed from it is told by events of its own."""
    tx.run(_INSERT_AUDIT, [_audit_row(at, actor, action, subject, data)])


def why(actor: Actor) -> dict[str, str]:
    """What somebody gave as the reason, for the event that tells of it; who it was is in the audit."""
    return {"reason": fitting(actor.reason, 255)} if actor.reason else {}


def _audit_row(at: int, actor: Actor, action: str, subject: str, data: Mapping[str, Any] | None) -> tuple[Any, ...]:
    return (
        at,
        fitting(actor.name, 128),
        fitting(actor.address, 64),
        fitting(actor.request_id, 128),
        action,
        subject,
        brief(actor.reason),
        to_json(data),
    )


def fitting(value: str, length: int) -> str:
    return (storable(value) or "")[:length]
