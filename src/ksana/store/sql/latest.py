"""A job's runs in the order of their instants: the index of jobs has their states first, so each state is asked, and what they
answer is put together."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from ksana.domain.states import TERMINAL
from ksana.store.requests import ExecutionFilter
from ksana.store.sql.paging import Listing, rows_of, state_values
from ksana.store.sql.reads_runs import EVERY_STATE, of_executions
from ksana.store.sql.rows import Statement, columns, id_rows
from ksana.store.sql.statements.slots import JOB_STATES, job_states
from ksana.store.sql.tx import Tx

# One look at the end of an index for each, whatever its history.
_NEWEST = Statement(
    "SELECT t.job_id, t.planned_for, t.id FROM {rows} {join} executions t ON t.id = (SELECT e.id FROM executions e {by_job_status}"
    " WHERE e.job_id = r.id AND e.status = r.status ORDER BY e.planned_for DESC, e.id DESC LIMIT 1)",
    JOB_STATES,
)
_THESE = Statement("SELECT t.* FROM {rows} {join} executions t ON t.id = r.id", columns(id="int"))
_WITH_MORE = Statement(
    "SELECT r.id FROM {rows} WHERE (SELECT t.id FROM executions t {by_job_status} WHERE t.job_id = r.id AND t.status = r.status"
    " ORDER BY t.planned_for, t.id LIMIT 1 OFFSET :each) IS NOT NULL",
    JOB_STATES,
)
_KEYS = "t.id, t.planned_for, t.workflow_run_id"
_ENDED_BY = Listing(
    "executions",
    ("planned_for", "id"),
    # Nodes go with the workflow run that they belong to.
    ("t.job_id = :job_id", "t.planned_for <= :until", "t.workflow_run_id IS NULL"),
    len(TERMINAL),
    _KEYS,
    index="ix_executions_job_status",
)


def last_ended(tx: Tx, job_ids: Iterable[int]) -> list[Row[Any]]:
    """The last run of each that has ended; nothing of a job without one."""
    newest: dict[int, tuple[int, int]] = {}
    for row in tx.query(_NEWEST, job_states(job_ids, TERMINAL)):
        newest[row.job_id] = max(newest.get(row.job_id, (0, 0)), (row.planned_for or 0, row.id))
    return tx.query(_THESE, id_rows(run_id for _, run_id in newest.values()))


def last_alone(tx: Tx, job_id: int, few: int) -> Row[Any] | None:
    """The last that has ended and was no node, if it is among the last few: no index has them apart."""
    listing, values = of_executions(ExecutionFilter(job_id=job_id, statuses=TERMINAL))
    last = rows_of(tx, replace(listing, columns=_KEYS), few, values)
    alone = [row.id for row in last if row.workflow_run_id is None]
    return tx.query(_THESE, id_rows(alone[:1]))[0] if alone else None


def jobs_that_may_have_more(tx: Tx, job_ids: Iterable[int], most: int) -> list[int]:
    """Without those of which no state has its part of `most`: they have no more than that in all."""
    found = tx.query(_WITH_MORE, job_states(job_ids, EVERY_STATE), each=most // len(EVERY_STATE))
    return sorted({row.id for row in found})


def beyond(tx: Tx, job_id: int, newest: int) -> int | None:
    """The instant of the last run before the newest so many; None if there are no more."""
    listing, values = of_executions(ExecutionFilter(job_id=job_id))
    found = rows_of(tx, replace(listing, columns=_KEYS), 1, values, offset=newest)
    return found[0].planned_for if found else None


def ended_by(tx: Tx, job_id: int, until: int, limit: int) -> list[int]:
    """The oldest runs for instants up to that one that have ended."""
    values = {"job_id": job_id, "until": until, **state_values(TERMINAL)}
    return [row.id for row in rows_of(tx, _ENDED_BY, limit, values)]
