"""The ledger's rows."""

from collections.abc import Iterable

from ksana.domain.clock import to_micros
from ksana.domain.schedule import SkippedRange
from ksana.store.sql.rows import columns, insert_rows
from ksana.store.sql.tx import Tx

_OCCURRENCE = columns(
    schedule_id="int",
    planned_for="int",
    outcome="text",
    reason="text",
    last_planned_for="int",
    instants="int",
    execution_id="int",
    workflow_run_id="int",
    recorded_at="int",
)
_INSERT = insert_rows("occurrences", _OCCURRENCE)

OccurrenceRow = tuple[int, int, str, str | None, int | None, int, int | None, int | None, int]


def record_occurrences(tx: Tx, rows: list[OccurrenceRow]) -> None:
    """One row an instant, or a range of them. A second row for one instant breaks the primary key, and so the transaction."""
    if rows:
        tx.run(_INSERT, rows)


def record_skipped(tx: Tx, skipped: Iterable[tuple[int, SkippedRange]], at: int) -> None:
    """Ranges of instants that were not run, each with the id of its schedule."""
    record_occurrences(tx, [skipped_row(schedule_id, part, at) for schedule_id, part in skipped])


def skipped_row(schedule_id: int, part: SkippedRange, at: int) -> OccurrenceRow:
    last = to_micros(part.last) if part.count > 1 else None
    return (schedule_id, to_micros(part.first), part.outcome, part.reason, last, part.count, None, None, at)
