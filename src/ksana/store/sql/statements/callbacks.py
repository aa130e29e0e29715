"""Callbacks: the right to report on one attempt, the report, and the deadline."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError, NotFound
from ksana.domain.events import EventType
from ksana.domain.states import AttemptStatus, ExecutionMove, ExecutionStatus
from ksana.store.requests import CallbackAnswer, CallbackReport, NewCallback
from ksana.store.sql import codec, schema
from ksana.store.sql.rows import Statement, columns, insert_rows, storable, to_json
from ksana.store.sql.statements import runs
from ksana.store.sql.statements.journal import record_events
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.settling import apply_moves, end_attempt, lock_claims, lock_one, read_one
from ksana.store.sql.statements.tenant_tasks import fenced_out
from ksana.store.sql.tx import Tx

_S = ExecutionStatus
_REPORTABLE = frozenset({_S.RUNNING, _S.CALLBACK_PENDING})
REPORTS = {target: ExecutionMove(_REPORTABLE, target) for target in (_S.CALLBACK_SUCCESS, _S.FAILED, _S.RETRYING)}
EXPIRE = ExecutionMove(frozenset({_S.CALLBACK_PENDING}), _S.FAILED_TIMEOUT)
LATE = "no callback came in time"
MAX_IGNORED = 100
MAX_IGNORED_LENGTH = 10_000

_OVERDUE = Statement(
    "SELECT t.* FROM executions t WHERE t.deadline_at <= :now ORDER BY t.deadline_at, t.id LIMIT :most {skip_locked}"
)
_TOKEN = columns(execution_id="int", epoch="int", token_hash="text", expires_at="int")  # noqa: S106
_INSERT_TOKENS = insert_rows("callback_tokens", _TOKEN)
_INSERT_CALLBACKS = insert_rows(
    "callbacks", columns(execution_id="int", epoch="int", received_at="int", headers="text", body="text", status="text")
)


@dataclass(frozen=True, slots=True)
class Expiry:
    now: datetime
    limit: int


def open_callbacks(tx: Tx, callbacks: list[NewCallback]) -> list[bool | KsanaError]:
    mine = lock_claims(tx, [callback.claim for callback in callbacks])
    rows = [
        (callback.claim.execution_id, callback.claim.epoch, callback.token_hash, to_micros(callback.expires_at))
        for callback in callbacks
        if callback.claim in mine
    ]
    if rows:
        tx.run(_INSERT_TOKENS, rows)
    return [callback.claim in mine for callback in callbacks]


def report(tx: Tx, reports: list[CallbackReport]) -> list[CallbackAnswer | KsanaError]:
    return [_report(tx, said) for said in reports]


def _report(tx: Tx, said: CallbackReport) -> CallbackAnswer | KsanaError:
    token = _token(tx, said)
    row = lock_one(tx, token.execution_id) if token is not None else None
    if token is None or row is None or (said.token_hash is None and row.job_id != said.job_id):
        return NotFound("callback", "unknown")
    at = to_micros(said.at)
    # The token of an earlier attempt, or one that ran out, opens nothing any more.
    valid = token.epoch == row.epoch and at <= token.expires_at
    # Who shows no token might be speaking of an earlier attempt: it is heard only where a report is waited for.
    sources = REPORTS[said.target].sources if said.token_hash is not None else EXPIRE.sources
    accepted = valid and row.status in sources and not _fenced_out(tx, row)
    if accepted:
        _apply(tx, row, said, at)
    kept = "RECEIVED" if accepted else "IGNORED"
    if accepted or _room_for_ignored(tx, row.id):
        body = said.body if accepted else said.body[:MAX_IGNORED_LENGTH]
        tx.run(_INSERT_CALLBACKS, [(row.id, token.epoch, at, to_json(said.headers), storable(body), kept)])
    record_events(tx, at, [(EventType.CALLBACK_RECEIVED, f"execution/{row.id}", {"status": kept})])
    return CallbackAnswer(codec.execution(read_one(tx, row.id)), accepted)


def _fenced_out(tx: Tx, row: Row[Any]) -> bool:
    """A stage of a tenant that somebody else has by now."""
    return bool(fenced_out(tx, runs.lock(tx, [row.workflow_run_id]).values()))


def _room_for_ignored(tx: Tx, execution_id: int) -> bool:
    """Evidence of what came too late is kept, but nobody fills the database with it."""
    came = schema.callbacks.c
    some = select(came.id).where(came.execution_id == execution_id).limit(MAX_IGNORED)
    return len(tx.core(some)) < MAX_IGNORED


def _apply(tx: Tx, row: Row[Any], said: CallbackReport, at: int) -> None:
    succeeded = said.target is _S.CALLBACK_SUCCESS
    end_attempt(tx, row, AttemptStatus.SUCCEEDED if succeeded else AttemptStatus.FAILED, at, said.error)
    ready_at = codec.micros(said.retry_at)
    apply_moves(tx, [Moved(row, said.target, at, ready_at=ready_at, error=said.error, output=said.output)])


def _token(tx: Tx, said: CallbackReport) -> Row[Any] | None:
    """The token that is shown; for a report by ids, the newest one that was opened for that execution."""
    tokens = schema.callback_tokens.c
    if said.token_hash is not None:
        found = tx.core(select(schema.callback_tokens).where(tokens.token_hash == said.token_hash))
    else:
        newest = select(schema.callback_tokens).where(tokens.execution_id == said.execution_id)
        found = tx.core(newest.order_by(tokens.epoch.desc()).limit(1))
    return found[0] if found else None


def expire_callbacks(tx: Tx, expiries: list[Expiry]) -> list[list[int] | KsanaError]:
    return [_expire(tx, expiry) for expiry in expiries]


def _expire(tx: Tx, expiry: Expiry) -> list[int]:
    at = to_micros(expiry.now)
    overdue = [row for row in tx.query(_OVERDUE, now=at, most=expiry.limit) if row.status in EXPIRE.sources]
    for row in overdue:
        end_attempt(tx, row, AttemptStatus.TIMED_OUT, at, LATE)
    apply_moves(tx, [Moved(row, EXPIRE.target, at, error=LATE) for row in overdue])
    return [row.id for row in overdue]
