"""Failures that somebody has seen."""

from datetime import datetime

from sqlalchemy import insert

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.events import EventType
from ksana.store.console_requests import Acknowledgement
from ksana.store.sql import schema
from ksana.store.sql.reads_failures import ALL, ALL_ID
from ksana.store.sql.rows import Statement
from ksana.store.sql.statements.journal import record_change, why
from ksana.store.sql.statements.removing import remove
from ksana.store.sql.tx import Tx

_RAISE = Statement(
    "UPDATE acknowledgements SET seen_until = CASE WHEN seen_until < :until THEN :until ELSE seen_until END"
    " WHERE kind = :kind AND target_id = :target_id"
)
_SEEN = Statement("SELECT t.seen_until FROM acknowledgements t WHERE t.kind = :kind AND t.target_id = :target_id")


def acknowledge(tx: Tx, given: list[Acknowledgement]) -> list[datetime | KsanaError]:
    return [from_micros(_acknowledge(tx, each)) for each in given]


def _acknowledge(tx: Tx, given: Acknowledgement) -> int:
    target, until = given.target, to_micros(given.until)
    key = {"kind": ALL, "target_id": ALL_ID} if target is None else {"kind": target.kind.value, "target_id": target.id}
    if tx.changed(_RAISE, until=until, **key) == 0:
        tx.core_run(insert(schema.acknowledgements).values(**key, seen_until=until))
    subject = "failures/all" if target is None else f"{target.kind}/{target.id}"
    told = {"until": given.until.isoformat(), **why(given.actor)}
    record_change(tx, tx.clock, given.actor, (EventType.FAILURES_ACKNOWLEDGED, subject, told))
    return int(tx.query(_SEEN, **key)[0].seen_until)


def forget(tx: Tx, before: int) -> int:
    """What was seen then is not there any more."""
    return remove(tx, schema.acknowledgements, schema.acknowledgements.c.seen_until < before)
