"""Callbacks: the right to report on one attempt, the report, and the deadline."""

from datetime import datetime

from ksana.domain.errors import NotFound
from ksana.domain.execution import Execution
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.store.requests import CallbackAnswer, CallbackReport, NewCallback, ReceivedCallback
from tests.simulation.memory_queue import mine
from tests.simulation.memory_tables import Move, Tables, Token, end_attempt, move

S = ExecutionStatus
LATE = "no callback came in time"


def open_callback(tables: Tables, callback: NewCallback) -> bool:
    row = mine(tables, callback.claim)
    if row is not None:
        tables.tokens[callback.token_hash] = Token(row.id, callback.claim.epoch, callback.expires_at)
    return row is not None


def report_callback(tables: Tables, said: CallbackReport) -> CallbackAnswer:
    token = _token(tables, said)
    row = None if token is None else tables.executions.get(token.execution_id)
    if token is None or row is None or (said.token_hash is None and row.job_id != said.job_id):
        raise NotFound("callback", "unknown")
    accepted = is_valid(token, row, said)
    if accepted:
        _apply(tables, row, said)
    status = "RECEIVED" if accepted else "IGNORED"
    number = len(tables.callbacks) + 1
    tables.callbacks.append(ReceivedCallback(number, row.id, said.at, said.headers, said.body, status))
    return CallbackAnswer(tables.executions[row.id], accepted)


def is_valid(token: Token, row: Execution, said: CallbackReport) -> bool:
    """That of an earlier attempt, or one that ran out, opens nothing any more. Who shows none might be speaking of an earlier
    attempt: it is heard only where a report is waited for."""
    waited_for = {S.CALLBACK_PENDING} if said.token_hash is None else {S.CALLBACK_PENDING, S.RUNNING}
    return token.epoch == row.epoch and said.at <= token.expires_at and row.status in waited_for


def _token(tables: Tables, said: CallbackReport) -> Token | None:
    """The one that is shown; for a report by ids, the newest of that execution."""
    if said.token_hash is not None:
        return tables.tokens.get(said.token_hash)
    ours = [token for token in tables.tokens.values() if token.execution_id == said.execution_id]
    return max(ours, key=lambda token: token.epoch, default=None)


def _apply(tables: Tables, row: Execution, said: CallbackReport) -> None:
    succeeded = said.target is S.CALLBACK_SUCCESS
    end_attempt(tables, row, AttemptStatus.SUCCEEDED if succeeded else AttemptStatus.FAILED, said.at, said.error)
    move(tables, [Move(row, said.target, said.at, ready_at=said.retry_at, error=said.error, output=said.output)])


def next_deadline_at(tables: Tables) -> datetime | None:
    return min((at for row in tables.unended() if (at := row.deadline_at) is not None), default=None)


def expire_callbacks(tables: Tables, now: datetime, limit: int) -> list[int]:
    due = [(at, row.id) for row in tables.unended() if (at := row.deadline_at) is not None and at <= now]
    overdue = [tables.executions[number] for _, number in sorted(due)[:limit]]
    for row in overdue:
        end_attempt(tables, row, AttemptStatus.TIMED_OUT, now, LATE)
    move(tables, [Move(row, S.FAILED_TIMEOUT, now, error=LATE) for row in overdue])
    return [row.id for row in overdue]
