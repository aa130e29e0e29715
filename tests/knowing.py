"""In all tests, whatever a writer believes to know of running executions and workflow runs is compared with what is stored."""

from typing import Any

from ksana.domain.execution import Claim
from ksana.store.sql.live import Live, Running
from ksana.store.sql.statements.runs import RunNow


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
            believed = found.row._replace(**counts)
            stored = self._stored("workflow_runs", names, run_id)
            assert stored == tuple(believed), f"believed {believed}, stored {stored}"
        return found

    def _stored(self, table: str, names: tuple[str, ...], row_id: int) -> tuple[Any, ...] | None:
        question = f"SELECT {', '.join(names)} FROM {table} WHERE id = ?"
        found: tuple[Any, ...] | None = self._connection.cursor().execute(question, (row_id,)).fetchone()
        return found
