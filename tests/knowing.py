"""In all tests, whatever a writer believes to know of running executions and workflow runs is compared with what is stored."""

from typing import Any

from ksana.domain.execution import Claim
from ksana.domain.states import ACTIVE, FAILURES, STOPS, ExecutionStatus
from ksana.store.sql.live import Live, Running, Waiting
from ksana.store.sql.statements.runs import UNTOLD, RunNow


class Checked(Live[RunNow]):
    """The same, with a question each time. By a cursor of its own, so that it is not counted among those that a test counts."""

    _connection: Any = None

    def begin(self, connection: Any) -> None:
        self._connection = connection
        super().begin(connection)

    def running(self, claim: Claim) -> Running | None:
        found = super().running(claim)
        if found is not None:
            stored = self._stored("executions", found._fields, found.id)
            assert stored == tuple(found), f"believed {found}, stored {stored}"
        return found

    def take_run(self, run_id: int) -> RunNow | None:
        found = super().take_run(run_id)
        if found is not None:
            assert not found.changed
            assert found.goes_on_as_before
            assert (found.reason, found.error) == (found.row.reason, found.row.error)
            names = found.row._fields
            counts = {"open_nodes": found.open, "failed_nodes": found.failed, "stopped_nodes": found.stopped}
            believed = found.row._replace(**counts, updated_at=found.told_at)
            stored = self._stored("workflow_runs", names, run_id)
            if stored is not None and not found.counted:
                stored = self._with_its_counts(found.row._make(stored))
            assert stored == tuple(believed), f"believed {believed}, stored {stored}"
        return found

    def take_waiting(self, run_id: int, node_id: str) -> Waiting | None:
        found = super().take_waiting(run_id, node_id)
        if found is not None:
            assert found.status == ExecutionStatus.SCHEDULED
            stored = self._stored("executions", found._fields, found.id)
            assert stored == tuple(found._replace(status=ExecutionStatus.PENDING.value)), (
                f"believed {found}, stored {stored}"
            )
        return found

    def _with_its_counts(self, stored: Any) -> tuple[Any, ...]:
        """A run whose row does not tell them."""
        assert stored.open_nodes == UNTOLD
        question = "SELECT status FROM executions WHERE workflow_run_id = ? AND parent_id IS NULL"
        states = [each for (each,) in self._connection.cursor().execute(question, (stored.id,))]
        open_, failed, stopped = (sum(each in kind for each in states) for kind in (ACTIVE, FAILURES, STOPS))
        return tuple(stored._replace(open_nodes=open_, failed_nodes=failed, stopped_nodes=stopped))

    def _stored(self, table: str, names: tuple[str, ...], row_id: int) -> tuple[Any, ...] | None:
        question = f"SELECT {', '.join(names)} FROM {table} WHERE id = ?"
        found: tuple[Any, ...] | None = self._connection.cursor().execute(question, (row_id,)).fetchone()
        return found
