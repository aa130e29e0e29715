"""A job's runs in the order of their instants: where the index of jobs has their states first, each state is asked, and what they
answer is put together."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from ksana.domain.states import TERMINAL
from ksana.store.requests import ExecutionFilter
from ksana.store.sql.paging import Listing, number_of, rows_of, state_values
from ksana.store.sql.reads_runs import EVERY_STATE, of_executions
from ksana.store.sql.rows import Statement
from ksana.store.sql.statements.slots import JOB_STATES, job_states
from ksana.store.sql.tx import Tx

# One look at the end of an index for each, whatever its history.
_NEWEST = Statement(
    "SELECT t.* FROM {rows} {join} executions t ON t.id = (SELECT e.id FROM executions e {by_job_status}"
    " WHERE e.job_id = r.id AND e.status = r.status ORDER BY e.planned_for DESC, e.id DESC LIMIT 1)",
    JOB_STATES,
)
_WITH_MORE = Statement(
    "SELECT r.id FROM {rows} WHERE (SELECT t.id FROM executions t {by_job_status} WHERE t.job_id = r.id AND t.status = r.status"
    " ORDER BY t.planned_for, t.id LIMIT 1 OFFSET :each) IS NOT NULL",
    JOB_STATES,
)
_EXECUTION = Statement("SELECT t.* FROM executions t WHERE t.id = :id")
_KEYS = "t.id, t.planned_for, t.workflow_run_id"
_ENDED_BY = Listing(
    "executions",
    ("planned_for", "id"),
    # Nodes go with the workflow run that they belong to.
    ("t.job_id = :job_id", "t.planned_for <= :until", "t.workflow_run_id IS NULL", "t.ended_at IS NOT NULL"),
    len(TERMINAL),
    _KEYS,
    index="ix_executions_job_status",
)


def last_ended(tx: Tx, job_ids: Iterable[int]) -> dict[int, Row[Any]]:
    """The last run of each that has ended; nothing of a job without one."""
    last: dict[int, Row[Any]] = {}
    for row in tx.query(_NEWEST, job_states(job_ids, TERMINAL)):
        known = last.get(row.job_id)
        if known is None or _place(known) < _place(row):
            last[row.job_id] = row
    return last


def _place(row: Row[Any]) -> tuple[bool, int, int]:
    """One that is for no instant comes before all others."""
    return (row.planned_for is not None, row.planned_for or 0, row.id)


def last_alone(tx: Tx, job_id: int, few: int) -> Row[Any] | None:
    """The last that has ended and was no node, if it is among the last few: no index has them apart."""
    listing, values = of_executions(tx.dialect, ExecutionFilter(job_id=job_id, statuses=TERMINAL))
    last = rows_of(tx, replace(listing, columns=_KEYS), few, values)
    alone = [row.id for row in last if row.workflow_run_id is None]
    found = tx.query(_EXECUTION, id=alone[0]) if alone else []
    return found[0] if found else None


def jobs_with_more(tx: Tx, job_ids: Iterable[int], most: int) -> list[int]:
    """Those that have more runs. One of which no state has its part of `most` has no more in all; the others are counted."""
    found = tx.query(_WITH_MORE, job_states(job_ids, EVERY_STATE), each=most // len(EVERY_STATE))
    return [job_id for job_id in sorted({row.id for row in found}) if _has_more(tx, job_id, most)]


def _has_more(tx: Tx, job_id: int, most: int) -> bool:
    listing, values = of_executions(tx.dialect, ExecutionFilter(job_id=job_id))
    return number_of(tx, listing, values, most + 1) > most


def beyond(tx: Tx, job_id: int, newest: int) -> int | None:
    """The instant of the last run before the newest so many; None if there are no more."""
    listing, values = of_executions(tx.dialect, ExecutionFilter(job_id=job_id))
    found = rows_of(tx, replace(listing, columns=_KEYS), 1, values, offset=newest)
    return found[0].planned_for if found else None


def ended_by(tx: Tx, job_id: int, until: int, limit: int) -> list[int]:
    """The oldest runs for instants up to that one that have ended."""
    values = {"job_id": job_id, "until": until, **state_values(TERMINAL)}
    return [row.id for row in rows_of(tx, _ENDED_BY, limit, values)]
