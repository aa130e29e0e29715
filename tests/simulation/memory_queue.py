"""Executions, from wish to end: enqueued, claimed, settled, cancelled."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ksana.domain.errors import ConcurrencyLimit, InvalidInput, NotFound
from ksana.domain.events import Actor
from ksana.domain.execution import Claim, Claimed, Execution
from ksana.domain.job import ConcurrencyPolicy
from ksana.domain.lanes import lane_of
from ksana.domain.states import ACTIVE, CLAIMABLE, HOLDS_SLOT, AttemptStatus, ExecutionStatus
from ksana.store.requests import ClaimRequest, Ending, Enqueued, NewExecution
from tests.simulation.memory_ledger import job_of, refusal
from tests.simulation.memory_tables import Move, Tables, end_attempt, move, record_attempt

S = ExecutionStatus


def enqueue(tables: Tables, new: NewExecution, at: datetime) -> Enqueued:
    job = job_of(tables, new.job_id)
    name = None if new.idempotency_key is None else (job.id, new.idempotency_key.strip())
    if name is not None and name in tables.keys:
        return Enqueued(tables.executions[tables.keys[name]], created=False)
    if name is not None and not 0 < len(name[1]) <= 128:
        raise InvalidInput("idempotency_key", "must have 1 to 128 characters")
    if refusal(tables, job, by_schedule=False) is not None:
        queue = job.spec.queue_limit if job.spec.concurrency is ConcurrencyPolicy.QUEUE else 0
        raise ConcurrencyLimit(job.id, limit=job.spec.max_concurrency, queue=queue)
    row = tables.add(
        Execution(
            0,
            S.SCHEDULED,
            new.trigger,
            at,
            at,
            job_id=job.id,
            planned_for=new.ready_at,
            ready_at=new.ready_at,
            input=new.input,
            trace_id=new.trace_id,
        )
    )
    if name is not None:
        tables.keys[name] = row.id
    return Enqueued(row, created=True)


# Claiming -------------------------------------------------------------------------------------------------------------


def claim(tables: Tables, request: ClaimRequest, now: datetime) -> list[Claimed]:
    taken: list[Claimed] = []
    room = request.room()
    lanes = Counter(room.lanes)
    for queue in request.queues if request.in_turn_after is not None else ():
        heads = in_turn(ready(tables, queue, now), request.in_turn_after or "")
        _take_of(tables, heads, request, room.places, taken, lanes, now)
    for queue in request.queues:
        _take_of(tables, ready(tables, queue, now), request, room.places, taken, lanes, now)
    return taken


def _take_of(
    tables: Tables,
    rows: Sequence[Execution],
    request: ClaimRequest,
    places: int,
    taken: list[Claimed],
    lanes: Counter[str],
    now: datetime,
) -> None:
    """Of these, in this order, what there is room for: at the instance, in its lane, and in its job."""
    for row in rows:
        if len(taken) >= places:
            return
        lane = lane_of(tables.jobs[row.job_id or 0].spec)
        if lane is not None and request.per_lane is not None and lanes[lane] >= request.per_lane:
            continue
        if row.status is S.RETRYING or has_room(tables, row):
            taken.append(_take(tables, row, request.instance_id, now))
            if lane is not None:
                lanes[lane] += 1
        else:
            tables.write(replace(row, status=S.QUEUED, ready_at=None, reason="concurrency_limit", updated_at=now))


def share_of(row: Execution) -> str:
    return f"job/{row.job_id}"


def in_turn(rows: Sequence[Execution], after: str) -> list[Execution]:
    """The first of each share, from the one after the last served on, and round again."""
    heads: dict[str, Execution] = {}
    for row in rows:
        heads.setdefault(share_of(row), row)
    return [heads[share] for share in sorted(heads, key=lambda share: (share <= after, share))]


def ready(tables: Tables, queue: str, now: datetime) -> list[Execution]:
    """The earliest first."""
    found = [
        (row.ready_at, row.id)
        for row in tables.unended()
        if row.ready_at is not None and row.ready_at <= now and tables.queue_of(row) == queue
    ]
    return [tables.executions[number] for _, number in sorted(found)]


def has_room(tables: Tables, row: Execution) -> bool:
    """Whether its job may run once more, counted from its live rows. A retry has kept its slot and is not asked."""
    job = tables.jobs[row.job_id or 0]
    if not job.spec.limited:
        return True
    held = sum(other.status in HOLDS_SLOT for other in tables.unended(job.id))
    return held < job.spec.max_concurrency


def _take(tables: Tables, row: Execution, owner: str, now: datetime) -> Claimed:
    tables.began[row.id] = now
    running = replace(
        row,
        status=S.RUNNING,
        owner=owner,
        epoch=row.epoch + 1,
        attempt=row.attempt + 1,
        losses=tables.losses[row.id],
        ready_at=None,
        reason=None,
        started_at=row.started_at or now,
        updated_at=now,
    )
    return Claimed(tables.write(running), tables.jobs[row.job_id or 0], share=share_of(row))


# Settling -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settlement:
    """How an attempt ended, and where its execution goes."""

    ending: Ending
    target: ExecutionStatus
    attempt: AttemptStatus
    ready_at: datetime | None = None
    deadline_at: datetime | None = None


def mine(tables: Tables, claim: Claim) -> Execution | None:
    """The fence: the row, if it still runs under that epoch."""
    row = tables.executions.get(claim.execution_id)
    return row if row is not None and row.status is S.RUNNING and row.epoch == claim.epoch else None


def settle(tables: Tables, wanted: Settlement) -> bool:
    ending = wanted.ending
    row = mine(tables, ending.claim)
    handed_back = wanted.attempt is AttemptStatus.HANDED_BACK
    if row is None:
        if not handed_back:
            _add_evidence(tables, ending)
        return False
    record_attempt(tables, row, wanted.attempt, ending.at, ending.error, evidence=ending.evidence)
    going = Move(
        row,
        wanted.target,
        ending.at,
        ready_at=wanted.ready_at,
        deadline_at=wanted.deadline_at,
        error=ending.error,
        output=ending.output,
    )
    if handed_back:
        # It goes before whatever came after it, and its attempt does not count.
        going = replace(going, ready_at=row.planned_for or row.created_at, attempt=row.attempt - 1, error=None)
    move(tables, [going])
    return True


def _add_evidence(tables: Tables, ending: Ending) -> None:
    """The callback came first and ended the attempt: what was sent and answered is still to be told."""
    known = tables.attempts.get(ending.claim.execution_id, {})
    attempt = known.get(ending.claim.epoch)
    if attempt is not None and not attempt.evidence.request and attempt.evidence.response_code is None:
        known[attempt.epoch] = replace(attempt, evidence=ending.evidence)


def cancel(tables: Tables, execution_id: int, actor: Actor, now: datetime) -> Execution:
    row = execution_of(tables, execution_id)
    if row.status in ACTIVE:
        end_attempt(tables, row, AttemptStatus.CANCELED, now, "canceled")
        move(tables, [Move(row, S.CANCELED, now, error=row.error, reason=actor.reason)])
    return tables.executions[execution_id]


# Reading --------------------------------------------------------------------------------------------------------------


def execution_of(tables: Tables, execution_id: int) -> Execution:
    if execution_id not in tables.executions:
        raise NotFound("run", execution_id)
    return tables.executions[execution_id]


def next_ready_at(tables: Tables, queues: Sequence[str]) -> datetime | None:
    waiting = (row for row in tables.unended() if row.status in CLAIMABLE and tables.queue_of(row) in queues)
    return min((row.ready_at for row in waiting if row.ready_at is not None), default=None)


def still_mine(tables: Tables, claims: Iterable[Claim]) -> frozenset[Claim]:
    return frozenset(claim for claim in claims if mine(tables, claim) is not None)


def claims_of(tables: Tables, instance_id: str, limit: int) -> list[Claim]:
    return [Claim(row.id, row.epoch) for row in tables.unended() if row.owner == instance_id][:limit]


def queue_position(tables: Tables, execution_id: int) -> int:
    row = execution_of(tables, execution_id)
    if row.status is not S.QUEUED:
        return 0
    queued = [each for each in tables.unended(row.job_id) if each.status is S.QUEUED]
    return sum((each.planned_for, each.id) < (row.planned_for, row.id) for each in queued)
