"""A person cancels: whatever has not ended does."""

from dataclasses import dataclass
from datetime import datetime

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError, NotFound
from ksana.domain.events import Actor, EventType
from ksana.domain.execution import Execution
from ksana.domain.states import ACTIVE, AttemptStatus, ExecutionMove, ExecutionStatus
from ksana.store.sql import codec
from ksana.store.sql.statements.journal import record_change
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.settling import apply_moves, end_attempt, lock_one, read_one
from ksana.store.sql.statements.stopping import drop_helpers
from ksana.store.sql.tx import Tx

CANCEL = ExecutionMove(ACTIVE, ExecutionStatus.CANCELED)


@dataclass(frozen=True, slots=True)
class Cancellation:
    execution_id: int
    actor: Actor
    now: datetime


def cancel(tx: Tx, cancellations: list[Cancellation]) -> list[Execution | KsanaError]:
    return [_cancel(tx, wanted) for wanted in cancellations]


def _cancel(tx: Tx, wanted: Cancellation) -> Execution | KsanaError:
    row = lock_one(tx, wanted.execution_id)
    if row is None:
        return NotFound("run", wanted.execution_id)
    if row.status in CANCEL.sources:
        at = to_micros(wanted.now)
        end_attempt(tx, row, AttemptStatus.CANCELED, at, "canceled")
        apply_moves(tx, [Moved(row, CANCEL.target, at, error=row.error, reason=wanted.actor.reason)])
        drop_helpers(tx, row, wanted.actor, at)
        happening = (EventType.EXECUTION_CANCELED, f"execution/{row.id}", {"from": row.status})
        record_change(tx, at, wanted.actor, happening)
    return codec.execution(read_one(tx, row.id))
