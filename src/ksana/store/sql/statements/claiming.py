"""Claiming: what is ready becomes this instance's, never more of a job than its limit allows.

Two instances must not both find a job's last free slot, and the end of a run must not overlook the execution that a claim
is just about to queue. On a database with row locks, in this order and never waiting for a job:

1. the ready executions (the earliest, or the first of each share in turn), passing over those that another claim has locked;
2. the rows of their jobs that have a limit, passing over those that another claim is counting;
3. the rows that hold those jobs' slots, shared: whoever is ending one of them is waited for, or waits.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.execution import Claimed
from ksana.domain.job import ConcurrencyPolicy, Job
from ksana.domain.lanes import lane_of
from ksana.domain.states import CLAIMABLE, ExecutionMove, ExecutionStatus
from ksana.domain.values import immutable
from ksana.domain.workflow import NodeClaim
from ksana.store.requests import ClaimRequest
from ksana.store.sql import codec
from ksana.store.sql.rows import Statement, columns, id_rows, keeping, update_by_id
from ksana.store.sql.statements import turns
from ksana.store.sql.statements.advancing import COUNTED, COUNTS, WANTED
from ksana.store.sql.statements.known_jobs import KnownJobs
from ksana.store.sql.statements.lane_lookup import LaneLookup
from ksana.store.sql.statements.moves import Moved
from ksana.store.sql.statements.node_claims import Flows, KnownRuns, flows_of, node_claims
from ksana.store.sql.statements.settling import apply_moves
from ksana.store.sql.statements.slots import holders
from ksana.store.sql.tx import Tx

GIVE_UP = ExecutionMove(CLAIMABLE, ExecutionStatus.FAILED)
CLAIM = ExecutionMove(CLAIMABLE, ExecutionStatus.RUNNING)
PARK = ExecutionMove(frozenset({ExecutionStatus.SCHEDULED}), ExecutionStatus.QUEUED)
DROP = ExecutionMove(CLAIMABLE, ExecutionStatus.CANCELED)
LOOKS = (1, 64, 256)
"""How many a claim looks at: further each time that it met a full job or lane, so that one such does not hide the others."""
SHARE_LOOKS = (*LOOKS, 1_024)
"""The same for shares, of each of which only the first is looked at: few, whatever their backlogs are."""

_IDS = columns(id="int")
_READY = Statement(
    f"SELECT {WANTED} FROM executions t {{by_ready}} WHERE t.worker_queue = :queue AND t.ready_at <= :now"
    " ORDER BY t.ready_at, t.id LIMIT :look {skip_locked}",
    many=True,
    apart=True,
)
# + 0: no index has it in this form, so that rows are found by their id, and not all that are ready gone through.
_LOCK_HEADS = Statement(
    f"SELECT {WANTED} FROM {{rows}} {{join}} executions t {{by_id}} ON t.id = r.id WHERE t.ready_at + 0 <= :now"
    " ORDER BY t.id {skip_locked}",
    _IDS,
    many=True,
)
_LIMITS = Statement(
    "SELECT t.id, t.max_concurrency FROM {rows} {join} jobs t {by_id} ON t.id = r.id ORDER BY t.id {for_update_jobs}",
    _IDS,
)
_CLAIMED = {
    "status": f"'{CLAIM.target}'",
    "owner": ":owner",
    "epoch": "t.epoch + 1",
    "attempt": "t.attempt + 1",
    "reason": "NULL",
    "started_at": "COALESCE(t.started_at, :now)",
    "attempt_started_at": ":now",
    "updated_at": ":now",
}
_CLAIM = keeping(update_by_id("executions", _IDS, ready_at="NULL", **_CLAIMED))
# PENDING → RUNNING, through a SCHEDULED that nobody could have seen.
_CLAIM_HELD = keeping(update_by_id("executions", COUNTS, **COUNTED, **_CLAIMED))
_PARK = update_by_id(
    "executions", _IDS, status=f"'{PARK.target}'", ready_at="NULL", reason="'concurrency_limit'", updated_at=":now"
)


@immutable
class Wish:
    request: ClaimRequest
    now: datetime
    lookup: LaneLookup
    known: KnownJobs
    known_runs: KnownRuns


def claim(tx: Tx, wishes: list[Wish]) -> list[list[Claimed] | KsanaError]:
    return [_claim(tx, wish) for wish in wishes]


def _claim(tx: Tx, wish: Wish) -> list[Claimed]:
    taking = Taking(tx, wish)
    taking.release_limited()
    after = wish.request.in_turn_after
    if after is not None:
        for queue in wish.request.queues:
            _take_in_turn(taking, queue, after)
    for queue in wish.request.queues:
        hidden = _take_earliest(taking, queue)
        if hidden and after is None:
            _take_in_turn(taking, queue, "")
    return taking.claimed


def _take_earliest(taking: "Taking", queue: str) -> bool:
    """Whether places are left though not all that is ready was looked at: what did not fit may hide others behind it."""
    for look in taking.looks(LOOKS):
        if taking.left <= 0:
            return False
        if taking.some_lane_is_full and look > 1:
            return True  # in turn, one of each share is looked at, and not all of a backlog that does not fit
        most = max(look, taking.left)
        ready = taking.tx.query(_READY, queue=queue, now=taking.now, look=most)
        is_all = len(ready) < most
        passed_over = taking.take(ready + taking.held(queue) if is_all else ready)
        if is_all or not passed_over:
            return False
    return taking.left > 0


def _take_in_turn(taking: "Taking", queue: str, after: str) -> None:
    """One of each share, from the one after the last served on, and round again: further as long as places are left."""
    shares = turns.Turns(taking.tx, queue, after, taking.now)
    for look in taking.looks(SHARE_LOOKS):
        if taking.left <= 0:
            return
        most = max(look, taking.left)
        heads = shares.following(most)
        if look == SHARE_LOOKS[0] and len(heads) == 1 < most and taking.has_one_queue:
            return  # nobody else waits: the earliest of it are taken at once
        ids = [each.id for each in taking.fitting(heads) if each.id is not None]
        places = {execution_id: place for place, execution_id in enumerate(ids)}
        ready = taking.tx.query(_LOCK_HEADS, id_rows(ids), now=taking.now) if ids else []
        taking.take(sorted(ready, key=lambda row: places[row.id]))
        if len(heads) < most:
            return


class Taking:
    """What one claim takes: from each of its looks what fits, until it is full."""

    def __init__(self, tx: Tx, wish: Wish) -> None:
        self.tx = tx
        # What ends in this transaction has ended before its turn came, but maybe after it was asked for.
        self.now = max(to_micros(wish.now), tx.clock)
        self.at = from_micros(self.now)
        self.claimed: list[Claimed] = []
        self._wish = wish
        room = wish.request.room()
        self._places = room.places
        self._lanes = dict(room.lanes)
        self._job_rows: dict[int, Row[Any]] = {}
        self._jobs: dict[int, Job] = {}

    @property
    def left(self) -> int:
        return self._places - len(self.claimed)

    def looks(self, all_of_them: tuple[int, ...]) -> tuple[int, ...]:
        """How far to look: no further than to what comes first while a lane is full, unless asked to search."""
        return all_of_them if self._wish.request.search or not self._lanes else all_of_them[:1]

    @property
    def has_one_queue(self) -> bool:
        return len(self._wish.request.queues) == 1

    @property
    def some_lane_is_full(self) -> bool:
        return any(self._is_full(lane) for lane in self._lanes)

    def fitting(self, heads: list[turns.Head]) -> list[turns.Head]:
        """Those whose lane is not known to be full; few more than there are places, since each is locked."""
        if self.some_lane_is_full:
            lanes = self._wish.lookup.lanes(self.tx, (head.share for head in heads), self._wish.now)
            heads = [head for head in heads if not self._is_full(lanes.get(head.share))]
        return heads[: 4 * self.left + LOOKS[1]]

    def take(self, ready: list[Row[Any]]) -> bool:
        """Takes what fits of what is ready, in this order. Whether it has passed over any that others may stand behind."""
        if not ready:
            return False
        tx, wish = self.tx, self._wish
        self._meet_jobs({row.job_id for row in ready if row.job_id is not None})
        job_rows, jobs = self._job_rows, self._jobs
        ready = _without_deleted(tx, ready, job_rows, jobs, wish)
        flows = flows_of(tx, ready, wish.known_runs)
        ready = _without_unreadable(tx, ready, flows, wish)
        mine, parked, passed = self._chosen(ready, jobs, flows, _room(tx, ready, job_rows))
        if parked:
            tx.run(_PARK, id_rows(parked), now=self.now)
        self._write(mine)
        nodes = node_claims(tx, [row for row in mine if row.workflow_run_id is not None], flows, self.at)
        self.claimed += [_claimed(row, jobs, nodes.get(row.id), wish.request.instance_id, self.at) for row in mine]
        return bool(parked) or passed

    def release_limited(self) -> None:
        """Where the limit of a job is to be kept, the rows tell: then all that has become ready in this transaction is written."""
        held = self.tx.held
        jobs = {held.found[each].job_id for each in held.rows} - {None} if held is not None else set()
        if jobs:
            self._meet_jobs(jobs)
            if any(_is_limited(self._job_rows[each]) for each in jobs & self._job_rows.keys()):
                self.tx.release()

    def held(self, queue: str) -> list[Row[Any]]:
        """What has become ready in this transaction and is not written yet: to be taken last, since it was ready last."""
        held = self.tx.held
        found = [held.found[each] for each in sorted(held.rows)] if held is not None else []
        return [row for row in found if row.worker_queue == queue]

    def _write(self, mine: list[Row[Any]]) -> None:
        held = {} if self.tx.held is None else self.tx.held.rows
        # First, since to claim the others has those written that are held back.
        taken = [held.pop(row.id) for row in mine if row.id in held]
        ids = {row_id for row_id, *_ in taken}
        written = [row.id for row in mine if row.id not in ids]
        owned = {"owner": self._wish.request.instance_id, "now": self.now}
        if taken:
            self.tx.run(_CLAIM_HELD, sorted(taken), **owned)
        if written:
            self.tx.run(_CLAIM, id_rows(written), **owned)
        if self.tx.live is not None:
            self.tx.live.claimed(mine, self._wish.request.instance_id, self.now)

    def _meet_jobs(self, job_ids: set[int]) -> None:
        """Reads those that no earlier look of this claim has read."""
        rows, jobs = self._wish.known.meet(self.tx, job_ids - self._job_rows.keys())
        self._job_rows |= rows
        self._jobs |= jobs

    def _chosen(
        self, ready: list[Row[Any]], jobs: dict[int, Job], flows: Flows, room: dict[int | None, int | None]
    ) -> tuple[list[Row[Any]], list[int], bool]:
        """Those to be taken, those to be queued because their job is full, and whether a full lane made it pass over one."""
        mine: list[Row[Any]] = []
        parked: list[int] = []
        passed, left = False, self.left
        lanes = {job_id: lane_of(job.spec) for job_id, job in jobs.items()}
        for row in ready:
            if len(mine) == left:
                break
            lane = lanes.get(row.job_id) if row.workflow_run_id is None else _lane_of_node(row, flows)
            if self._is_full(lane):
                passed = True
            elif _fits(row, room):
                mine.append(row)
                if lane is not None:
                    self._lanes[lane] = self._lanes.get(lane, 0) + 1
            elif row.job_id in room:
                parked.append(row.id)
        return mine, parked, passed

    def _is_full(self, lane: str | None) -> bool:
        most = self._wish.request.per_lane
        return most is not None and lane is not None and self._lanes.get(lane, 0) >= most


def _lane_of_node(row: Row[Any], flows: Flows) -> str | None:
    made = flows.nodes.get(row.id)
    return None if made is None else lane_of(made.spec)


def _claimed(row: Row[Any], jobs: dict[int, Job], node: NodeClaim | None, owner: str, at: datetime) -> Claimed:
    if node is None:
        return Claimed(codec.running(row, owner, at), jobs[row.job_id], share=row.share)
    made = node.snapshot
    job = Job(row.job_id or 0, made.job_key or "", made.spec, 0, at, at)
    return Claimed(codec.running(row, owner, at), job, node, row.share)


def _without_unreadable(tx: Tx, ready: list[Row[Any]], flows: Flows, wish: Wish) -> list[Row[Any]]:
    """A node of which nobody can read what it is has failed; it must not keep the others from running."""
    broken = {row.id for row in ready if row.workflow_run_id is not None and row.id not in flows.nodes}
    if not broken:
        return ready
    error = "what its run started with cannot be read"
    apply_moves(tx, [Moved(row, GIVE_UP.target, to_micros(wish.now), error=error) for row in ready if row.id in broken])
    return [row for row in ready if row.id not in broken]


def _without_deleted(
    tx: Tx, ready: list[Row[Any]], rows: dict[int, Row[Any]], jobs: dict[int, Job], wish: Wish
) -> list[Row[Any]]:
    """What was asked for while its job was being deleted does not run; nor what nobody can read any more, which must not keep
    the others from running. A node runs with what its run started with, whatever has become of the job."""
    reasons = {job_id: "job_deleted" for job_id, row in rows.items() if row.deleted_at is not None}
    reasons = dict.fromkeys(rows.keys() - jobs.keys(), "job_unreadable") | reasons
    if not reasons:
        return ready
    gone = [row for row in ready if row.job_id in reasons and row.workflow_run_id is None]
    apply_moves(tx, [Moved(row, DROP.target, to_micros(wish.now), reason=reasons[row.job_id]) for row in gone])
    dropped = {row.id for row in gone}
    return [row for row in ready if row.id not in dropped]


def _room(tx: Tx, ready: list[Row[Any]], jobs: dict[int, Row[Any]]) -> dict[int | None, int | None]:
    """How many more may start of each job: None is any number; a job that another claim is counting is left out."""
    starting = {row.job_id for row in ready if row.status == ExecutionStatus.SCHEDULED}
    limited = [job_id for job_id in starting & jobs.keys() if _is_limited(jobs[job_id])]
    # A job that was purged, and a node that carries its job itself (None), have no limit.
    room: dict[int | None, int | None] = dict.fromkeys({row.job_id for row in ready} - set(limited))
    if limited:
        limits = {row.id: row.max_concurrency for row in tx.query(_LIMITS, id_rows(limited))}
        held = holders(tx, list(limits)) if limits else {}
        room |= {job_id: limit - held[job_id] for job_id, limit in limits.items()}
    return room


def _is_limited(job: Row[Any]) -> bool:
    return bool(job.concurrency != ConcurrencyPolicy.PARALLEL)


def _fits(row: Row[Any], room: dict[int | None, int | None]) -> bool:
    if row.status == ExecutionStatus.RETRYING:
        return True  # it has kept its slot
    if row.job_id not in room:
        return False
    places = room[row.job_id]
    if places is None:
        return True
    room[row.job_id] = places - 1
    return places > 0
