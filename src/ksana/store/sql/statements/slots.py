"""Room in a job: how many of its executions hold a slot, and who is next when one is given back."""

from collections.abc import Iterable, Mapping

from ksana.domain.states import HOLDS_SLOT, ExecutionMove, ExecutionStatus
from ksana.store.sql.rows import Statement, columns, update_by_id
from ksana.store.sql.tx import Tx

PROMOTE = ExecutionMove(frozenset({ExecutionStatus.QUEUED}), ExecutionStatus.SCHEDULED)

_JOBS = columns(id="int")
_IDS = columns(id="int")
JOB_STATES = columns(id="int", status="key")
"""Pairs, not a list of states beside a list of jobs: so each database looks up, and locks, exactly the rows that count."""


def job_states(job_ids: Iterable[int], statuses: frozenset[ExecutionStatus]) -> list[tuple[int, str]]:
    wanted = sorted(status._value_ for status in statuses)
    return [(job_id, status) for job_id in sorted(set(job_ids)) for status in wanted]


def status_list(statuses: frozenset[ExecutionStatus]) -> str:
    """For an IN (…); literals, so that the planner knows them."""
    return ", ".join(f"'{status}'" for status in sorted(statuses))


# Found first and locked after, by a key that never moves. In one locking read, a row that another transaction takes from one
# of these states to another while it is waited for is in neither: PostgreSQL tests it again with the state it had, and MySQL
# has passed the part of the index where it now stands. Nothing can join them in between: that needs the lock of the job.
_HOLDERS = Statement(
    "SELECT t.id FROM {rows} {join} executions t {by_job_status} ON t.job_id = r.id AND t.status = r.status ORDER BY t.id",
    JOB_STATES,
)
# The share locks make the end of a run, which frees a slot, and the claim that finds none free wait for each other: else the
# claim could queue an execution just after the last one who would wake it had looked.
_STILL_HOLDING = Statement(
    "SELECT t.job_id, t.id FROM {rows} {join} executions t {by_id} ON t.id = r.id"
    f" WHERE t.status IN ({status_list(HOLDS_SLOT)}) ORDER BY t.id {{for_share}}",
    _IDS,
)
_WITH_QUEUE = Statement(
    "SELECT r.id FROM {rows} WHERE EXISTS (SELECT 1 FROM executions q"
    f" WHERE q.job_id = r.id AND q.status IN ({status_list(PROMOTE.sources)}))",
    _JOBS,
)
_OLDEST_QUEUED = Statement(
    f"SELECT t.id FROM executions t WHERE t.job_id = :job_id AND t.status = '{ExecutionStatus.QUEUED}'"
    " ORDER BY t.planned_for, t.id LIMIT :places {skip_locked}"
)
_PROMOTE = update_by_id(
    "executions",
    _IDS,
    status=f"'{PROMOTE.target}'",
    # Its own time, so that it goes before whatever came after it.
    ready_at="COALESCE(t.planned_for, t.created_at)",
    reason="NULL",
    updated_at=":at",
)


def holders(tx: Tx, job_ids: list[int]) -> dict[int, int]:
    """How many of each job's executions hold a slot, counted from the rows themselves, which stay as they are until the end
    of this transaction."""
    counts = dict.fromkeys(job_ids, 0)
    found = [(row.id,) for row in tx.query(_HOLDERS, job_states(job_ids, HOLDS_SLOT))]
    if found:
        for row in tx.query(_STILL_HOLDING, found):
            counts[row.job_id] += 1
    return counts


def release(tx: Tx, places: Mapping[int, int], at: int) -> None:
    """QUEUED → SCHEDULED for as many of each job's oldest as it has places again. One too many does no harm: the claim counts."""
    if not places:
        return
    waiting = tx.query(_WITH_QUEUE, [(job_id,) for job_id in sorted(places)])
    promoted: list[tuple[int]] = []
    for (job_id,) in waiting:
        promoted += [(row.id,) for row in tx.query(_OLDEST_QUEUED, job_id=job_id, places=places[job_id])]
    if promoted:
        tx.run(_PROMOTE, sorted(promoted), at=at)
