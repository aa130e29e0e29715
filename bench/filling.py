"""Databases that are filled before anything is served from them: written straight into the tables, since through the HTTP
interface a hundred thousand schedules or a million runs would take hours. The rows are such as Ksana itself writes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, insert, select, text

from ksana.domain.clock import to_micros
from ksana.domain.job import ConcurrencyPolicy, Contract, JobSpec
from ksana.domain.schedule import ScheduleSpec
from ksana.store.requests import StoreOptions
from ksana.store.sql import codec, migrate, schema
from ksana.store.sql.dialects import dialect_of
from ksana.store.sql.statements.jobs import _columns as job_columns

TOGETHER = 5_000
SEED = 1_000
"""Runs that are written row by row; the others are copies of them, twice as many each time."""
SPACING = 250_000
"""Microseconds between two runs: a million of them are three days, too young to be purged."""
EACH_FAILED = 20
"""One of so many runs failed."""
EACH_OF_FIRST = 20, 1
"""One of so many, that with this rest, is the first job's, so that a page of it is full with few runs in all; the others are
everybody's in turn."""
BODY = '{"a":1}'


class Planned(NamedTuple):
    schedule: ScheduleSpec
    first: datetime


def fill_schedules(
    url: str,
    target: str,
    planned: Sequence[Planned],
    concurrency: ConcurrencyPolicy = ConcurrencyPolicy.QUEUE,
    jobs: int | None = None,
) -> None:
    """A new database with so many jobs (as many as schedules, if nothing is said) that POST to the target, each with its share
    of these schedules."""
    with _new(url) as connection:
        _insert_jobs(connection, jobs or len(planned), target, concurrency)
        ids = connection.execute(select(schema.jobs.c.id).order_by(schema.jobs.c.id)).scalars().all()
        schedules = [_schedule(ids[number % len(ids)], number, each) for number, each in enumerate(planned)]
        _insert(connection, schema.schedules, schedules)


def fill_history(url: str, runs: int, jobs: int, planned: Sequence[Planned] = ()) -> None:
    """A new database with so many runs of so many jobs, all ended, each with its attempt. If there is a schedule for each job,
    they are runs of that, with their instants."""
    with _new(url) as connection:
        _insert_jobs(connection, jobs, "http://127.0.0.1/", ConcurrencyPolicy.PARALLEL)
        ids = connection.execute(select(schema.jobs.c.id).order_by(schema.jobs.c.id)).scalars().all()
        _insert(connection, schema.schedules, [_schedule(ids[at], at, each) for at, each in enumerate(planned)])
        since = time.time_ns() // 1_000 - runs * 2 * SPACING
        first = [_run(ids, number, since, planned=bool(planned)) for number in range(min(SEED, runs))]
        _insert(connection, schema.executions, first)
        written = min(SEED, runs)
        while written < runs:
            more = min(written, runs - written)
            connection.execute(text(_COPY), {"shift": written * SPACING, "first": since + more * SPACING})
            written += more
        connection.execute(text(_ATTEMPTS), _EVIDENCE)
        if planned:
            connection.execute(text(_INSTANTS))


@contextmanager
def _new(url: str) -> Iterator[Connection]:
    migrate.upgrade(url, StoreOptions())
    engine = dialect_of(url).writing_engine(url, StoreOptions(), patient=True)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def _insert_jobs(connection: Connection, jobs: int, target: str, concurrency: ConcurrencyPolicy) -> None:
    config = {"method": "POST", "url": target, "body": BODY}
    contract = Contract.CRONJOB
    specs = (
        JobSpec(f"bench-{each}", "http", config, concurrency=concurrency, contract=contract) for each in range(jobs)
    )
    _insert(connection, schema.jobs, [{**job_columns(spec), "public_id": spec.name, **_STAMPS} for spec in specs])


def _schedule(job_id: int, number: int, planned: Planned) -> dict[str, Any]:
    first = to_micros(planned.first)
    return {
        "public_id": f"schedule-{number}",
        "job_id": job_id,
        "kind": planned.schedule.kind,
        "spec": codec.schedule_spec_json(planned.schedule),
        "status": "ACTIVE",
        "next_planned_for": first,
        "next_fire_at": first,
        **_STAMPS,
    }


def _run(job_ids: Sequence[int], number: int, since: int, *, planned: bool) -> dict[str, Any]:
    at = since + number * SPACING
    failed = number % EACH_FAILED == 0
    each, rest = EACH_OF_FIRST
    job_id = job_ids[0 if number % each == rest else number % len(job_ids)]
    return {
        "job_id": job_id,
        "schedule_id": job_id if planned else None,
        "planned_for": at,
        "triggered_by": "schedule",
        "worker_queue": "default",
        "status": "FAILED" if failed else "SUCCESS",
        "error": "HTTP 500" if failed else None,
        "epoch": 1,
        "attempt": 1,
        "open_dependencies": 0,
        "created_at": at,
        "started_at": at,
        "attempt_started_at": at,
        "ended_at": at,
        "updated_at": at,
    }


def _insert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    for first in range(0, len(rows), TOGETHER):
        connection.execute(insert(table), rows[first : first + TOGETHER])


_STAMPS = {"version": 1, "created_at": 0, "updated_at": 0}
_SAME = "job_id, schedule_id, triggered_by, worker_queue, status, error, epoch, attempt, open_dependencies"
_TIMES = ("planned_for", "created_at", "started_at", "attempt_started_at", "ended_at", "updated_at")
_COPY = f"""
INSERT INTO executions ({_SAME}, {", ".join(_TIMES)})
SELECT {_SAME}, {", ".join(f"{each} + :shift" for each in _TIMES)} FROM executions WHERE planned_for < :first ORDER BY id
"""
_ATTEMPTS = """
INSERT INTO attempts (execution_id, epoch, number, status, owner, started_at, ended_at, error, request, request_body,
                      response_code, response_headers, response_body)
SELECT id, 1, 1, CASE status WHEN 'FAILED' THEN 'FAILED' ELSE 'SUCCEEDED' END, 'bench', started_at, ended_at, error,
       :request, :body, CASE status WHEN 'FAILED' THEN 500 ELSE 200 END, :headers, :answer
FROM executions
"""
_INSTANTS = """
INSERT INTO occurrences (schedule_id, planned_for, outcome, instants, execution_id, recorded_at)
SELECT schedule_id, planned_for, 'FIRED', 1, id, planned_for FROM executions ORDER BY id
"""
_EVIDENCE = {
    "request": '{"method":"POST","url":"http://127.0.0.1/","headers":{"User-Agent":"ksana"}}',
    "body": BODY,
    "headers": '{"Content-Type":"application/json"}',
    "answer": '{"ok":true}',
}
