"""What an attempt keeps while it runs: checkpoints, artifacts, logs. Fenced like its end."""

from dataclasses import dataclass
from typing import Any

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.execution import Claim
from ksana.store.sql.rows import Statement, columns, insert_rows, storable, to_json, update_by_id
from ksana.store.sql.statements import runs, tenant_tasks
from ksana.store.sql.statements.settling import lock_claims
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import LogChunk

_CHECKPOINT = update_by_id(
    "executions", columns(id="int", checkpoint="text"), checkpoint="r.checkpoint", updated_at=":at"
)
_ARTIFACT = update_by_id("executions", columns(id="int", output="text"), output="r.output", updated_at=":at")
# By epoch alone: the last words of an attempt may come just after its end.
_OF_EPOCH = Statement(
    "SELECT t.id, t.epoch FROM {rows} {join} executions t ON t.id = r.id WHERE t.epoch = r.epoch",
    columns(id="int", epoch="int"),
)
_INSERT_LOGS = insert_rows(
    "execution_logs", columns(execution_id="int", epoch="int", seq="int", at="int", stream="text", text="text")
)
_KNOWN_LOGS = Statement(
    "SELECT t.execution_id, t.epoch, t.seq FROM {rows} {join} execution_logs t"
    " ON t.execution_id = r.execution_id AND t.epoch = r.epoch AND t.seq = r.seq",
    columns(execution_id="int", epoch="int", seq="int"),
)


@dataclass(frozen=True, slots=True)
class Note:
    claim: Claim
    value: Any


def save_checkpoints(tx: Tx, notes: list[Note]) -> list[bool | KsanaError]:
    held = runs.lock(tx, [note.claim.workflow_run_id for note in notes])
    answers = _save(tx, notes, _CHECKPOINT)
    kept = {note.claim.workflow_run_id for note, saved in zip(notes, answers, strict=True) if saved is True}
    tenant_tasks.checkpoints_saved(tx, [run for run_id, run in held.items() if run_id in kept], tx.clock)
    return answers


def save_artifacts(tx: Tx, notes: list[Note]) -> list[bool | KsanaError]:
    return _save(tx, notes, _ARTIFACT)


def _save(tx: Tx, notes: list[Note], statement: Statement) -> list[bool | KsanaError]:
    mine = lock_claims(tx, [note.claim for note in notes])
    # Of several about one attempt, the last.
    last = {note.claim: note.value for note in notes if note.claim in mine}
    if last:
        tx.run(statement, sorted((claim.execution_id, to_json(value)) for claim, value in last.items()), at=tx.clock)
    return [note.claim in mine for note in notes]


def append_logs(tx: Tx, batches: list[tuple[LogChunk, ...]]) -> list[int | KsanaError]:
    """How many of each were new: what was written before its answer was lost is not written again."""
    chunks = [chunk for batch in batches for chunk in batch]
    claims = sorted({(chunk.claim.execution_id, chunk.claim.epoch) for chunk in chunks})
    mine = {(row.id, row.epoch) for row in tx.query(_OF_EPOCH, claims)}
    named = {_name(chunk): chunk for chunk in chunks if _name(chunk)[:2] in mine}
    for row in tx.query(_KNOWN_LOGS, sorted(named)):
        named.pop((row.execution_id, row.epoch, row.seq))
    if named:
        tx.run(
            _INSERT_LOGS,
            [(*name, to_micros(chunk.at), chunk.stream, storable(chunk.text)) for name, chunk in sorted(named.items())],
        )
    return [sum(_name(chunk) in named for chunk in batch) for batch in batches]


def _name(chunk: LogChunk) -> tuple[int, int, int]:
    return (chunk.claim.execution_id, chunk.claim.epoch, chunk.seq)
