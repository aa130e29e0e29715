"""What must hold after each step, whatever happens (RELIABILITY.md §2.2), watched from outside the model.

It keeps its own books: a model whose fence, unique key or limit is broken is found out here, not by itself.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ksana.domain.execution import Attempt, Claim, Execution
from ksana.domain.instance import InstanceStatus
from ksana.domain.job import JobSpec
from ksana.domain.ledger import Occurrence
from ksana.domain.states import EXECUTION_EDGES, HOLDS_SLOT, TERMINAL, AttemptStatus, ExecutionStatus
from ksana.store.requests import CallbackAnswer, CallbackReport, NewCallback
from tests.simulation.memory_queue import Settlement
from tests.simulation.memory_store import Call
from tests.simulation.memory_tables import Tables

S = ExecutionStatus
_UNCOUNTED = frozenset({AttemptStatus.LOST, AttemptStatus.HANDED_BACK})


class Violation(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant


class Invariants:
    """A Watcher of the tables; and told of each verb that was applied."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._instants: set[tuple[int, datetime]] = set()
        self._held: Counter[int] = Counter()
        self._states: Counter[tuple[int, S]] = Counter()
        self._uncounted: Counter[int] = Counter()
        """Attempts of an execution that its policy does not count: lost or handed back."""
        self._last_attempt: dict[int, int] = {}
        self._granted: dict[str, Claim] = {}
        self._spent: set[str] = set()
        self._moves: list[tuple[Execution, Execution]] = []

    # Rows -------------------------------------------------------------------------------------------------------------

    def made(self, execution: Execution) -> None:
        self._count(execution, 1)

    def recorded(self, occurrence: Occurrence) -> None:
        key = (occurrence.schedule_id, occurrence.planned_for)
        require("I2", key not in self._instants, "a second occurrence for {}", key)
        self._instants.add(key)

    def attempted(self, attempt: Attempt) -> None:
        last = self._last_attempt.get(attempt.execution_id, 0)
        require("I4", attempt.epoch > last, "attempt of epoch {} after {}", attempt.epoch, last)
        self._last_attempt[attempt.execution_id] = attempt.epoch
        self._uncounted[attempt.execution_id] += attempt.status in _UNCOUNTED
        owner = self._tables.instances.get(attempt.owner)
        alive = owner is not None and owner.status is InstanceStatus.ALIVE
        lost = attempt.status is AttemptStatus.LOST
        require("I3", not (lost and alive), "{} lost though its owner lives", attempt.execution_id)

    def moved(self, before: Execution, after: Execution) -> None:
        self._moves.append((before, after))
        self._count(before, -1)
        self._count(after, 1)
        name = f"{before.id}: {before.status} → {after.status}"
        require("I4", before.status not in TERMINAL, "what has ended moved, {}", name)
        same = before.status is after.status
        require("I4", same or (before.status, after.status) in EXECUTION_EDGES, "no such edge, {}", name)
        claimed = after.status is S.RUNNING
        require("I4", after.epoch == before.epoch + claimed, "epoch {} → {}, {}", before.epoch, after.epoch, name)
        if claimed:
            self._check_claim(after)

    def _check_claim(self, row: Execution) -> None:
        spec = self._spec(row)
        bound = spec.retry.max_attempts + self._uncounted[row.id]
        require("I3", row.epoch <= bound, "{} is tried for the {}th time of {}", row.id, row.epoch, bound)
        held = self._held[row.job_id or 0]
        limit = spec.max_concurrency
        require("I5", not spec.limited or held <= limit, "job {} runs {} of {}", row.job_id, held, limit)

    def _count(self, row: Execution, by: int) -> None:
        job_id = row.job_id or 0
        self._states[job_id, row.status] += by
        if row.status in HOLDS_SLOT:
            self._held[job_id] += by

    def _spec(self, row: Execution) -> JobSpec:
        return self._tables.jobs[row.job_id or 0].spec

    # Verbs ------------------------------------------------------------------------------------------------------------

    def applied(self, call: Call[Any], answer: Any) -> None:
        """A verb has been applied; `answer` is what it gives, or the error that it raised."""
        moves, self._moves = self._moves, []
        match call.name:
            case "settle":
                self._settled(call.args[0], answer, moves)
            case "open_callback":
                self._opened(call.args[0], answer)
            case "report_callback":
                self._reported(call.args[0], answer, moves)
        self._nobody_waits_for_nothing(moves)

    def _settled(self, wanted: Settlement, answer: bool, moves: Iterable[tuple[Execution, Execution]]) -> None:
        claim = wanted.ending.claim
        ours = [(before, after) for before, after in moves if before.id == claim.execution_id]
        require("I4", answer == bool(ours), "settled {} says {}", claim, answer)
        for before, _ in ours:
            right = before.epoch == claim.epoch and before.status is S.RUNNING
            require("I4", right, "{} wrote to epoch {}, {}", claim, before.epoch, before.status)

    def _opened(self, callback: NewCallback, answer: bool) -> None:
        row = self._tables.executions[callback.claim.execution_id]
        right = row.status is S.RUNNING and row.epoch == callback.claim.epoch
        require("I10", answer == right, "a token for {} while it is {} {}", callback.claim, row.status, row.epoch)
        if answer:
            self._granted[callback.token_hash] = callback.claim

    def _reported(self, said: CallbackReport, answer: Any, moves: list[tuple[Execution, Execution]]) -> None:
        token = said.token_hash or ""
        accepted = isinstance(answer, CallbackAnswer) and answer.accepted
        require("I10", accepted == bool(moves), "a report that moved {} rows was accepted: {}", len(moves), accepted)
        if not accepted or said.token_hash is None:
            return
        claim, (before, _) = self._granted.get(token), moves[0]
        right = claim is not None and (before.id, before.epoch) == (claim.execution_id, claim.epoch)
        require("I10", right, "the token of {} moved {} of epoch {}", claim, before.id, before.epoch)
        require("I10", token not in self._spent, "the token of {} counted twice", claim)
        self._spent.add(token)

    def _nobody_waits_for_nothing(self, moves: Iterable[tuple[Execution, Execution]]) -> None:
        """A queued run is let in by the end of another: without one that may end, it would wait for ever."""
        for job_id in {after.job_id or 0 for _, after in moves}:
            if self._states[job_id, S.QUEUED]:
                before_it = self._held[job_id] + self._states[job_id, S.SCHEDULED]
                limit = self._tables.jobs[job_id].spec.max_concurrency
                require("I11", before_it >= limit, "job {} has room, and runs that wait for it", job_id)


def require(invariant: str, holds: bool, message: str, *values: object) -> None:
    if not holds:
        raise Violation(invariant, message.format(*values))
