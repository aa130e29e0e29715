"""Reads the database as it is, past Ksana: the tables by their names, and nothing of Ksana's code."""

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, NullPool, create_engine, make_url, text

from tests.faults.history import AttemptRow, Dump, Execution, InstanceRow, Occurrence

DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "sqlite": "sqlite"}
NOW = {
    "postgresql": "extract(epoch from clock_timestamp()) * 1000000",
    "mysql": "unix_timestamp(now(6)) * 1000000",
    "sqlite": "(julianday('now') - 2440587.5) * 86400000000",
}
SECOND = 1_000_000


class Reader:
    """Of one database."""

    def __init__(self, url: str) -> None:
        address = make_url(url)
        self._kind = address.get_backend_name()
        self._engine = create_engine(address.set(drivername=DRIVERS[self._kind]), poolclass=NullPool)

    def dump(self) -> Dump:
        """Everything, in one transaction."""
        wall = time.time()
        with self._engine.connect() as connection:
            return Dump(
                wall,
                frozenset(row.name for row in _rows(connection, _SCHEDULES)),
                [_execution(row) for row in _rows(connection, _EXECUTIONS)],
                [_attempt(row) for row in _rows(connection, "SELECT * FROM attempts")],
                [_occurrence(row) for row in _rows(connection, _OCCURRENCES)],
                self._instances(connection),
                [(row.execution_id, row.status) for row in _rows(connection, "SELECT * FROM callbacks")],
            )

    def owners(self) -> dict[str, list[tuple[str, int]]]:
        """Of what runs now: by its schedule, the instances (their names end with the process's number) and epochs."""
        found: dict[str, list[tuple[str, int]]] = {}
        with self._engine.connect() as connection:
            for row in _rows(connection, _RUNNING):
                found.setdefault(row.name, []).append((row.instance, row.epoch))
        return found

    def ended(self) -> dict[int, str]:
        """Executions that have ended, and how."""
        with self._engine.connect() as connection:
            rows = _rows(connection, "SELECT id, status FROM executions WHERE ended_at IS NOT NULL")
            return {row.id: row.status for row in rows}

    def under_way(self) -> int:
        """Executions that have not ended."""
        with self._engine.connect() as connection:
            return int(_rows(connection, "SELECT count(*) AS n FROM executions WHERE ended_at IS NULL")[0].n)

    def behind(self, wall: float) -> int:
        """Schedules that have not fired yet what was due by then."""
        with self._engine.connect() as connection:
            rows = _rows(connection, _BEHIND, wall=int(wall * SECOND))
            return int(rows[0].n)

    def query(self, statement: str, **values: Any) -> Sequence[Any]:
        """Whatever a scenario wants to know beside."""
        with self._engine.connect() as connection:
            return _rows(connection, statement, **values)

    def _instances(self, connection: Connection) -> list[InstanceRow]:
        rows = _rows(connection, f"SELECT id, name, status, expires_at - ({NOW[self._kind]}) AS lease FROM instances")
        return [InstanceRow(row.id, row.name, row.status, float(row.lease) / SECOND) for row in rows]


def _rows(connection: Connection, statement: str, **values: Any) -> Sequence[Any]:
    return connection.execute(text(statement), values).all()


def _execution(row: Any) -> Execution:
    return Execution(
        row.id,
        row.name or "",
        None if row.schedule_id is None else _seconds(row.planned_for),
        row.triggered_by,
        row.status,
        row.owner,
        row.epoch,
        row.attempt,
        row.created_at / SECOND,
        _seconds(row.ended_at),
    )


def _attempt(row: Any) -> AttemptRow:
    return AttemptRow(
        row.execution_id, row.epoch, row.status, row.owner, row.started_at / SECOND, row.ended_at / SECOND
    )


def _occurrence(row: Any) -> Occurrence:
    last = row.planned_for if row.last_planned_for is None else row.last_planned_for
    return Occurrence(row.name, row.planned_for / SECOND, last / SECOND, row.instants, row.outcome, row.reason)


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / SECOND


_SCHEDULES = (
    "SELECT jobs.name FROM schedules JOIN jobs ON jobs.id = schedules.job_id WHERE schedules.deleted_at IS NULL"
)
_EXECUTIONS = "SELECT executions.*, jobs.name FROM executions LEFT JOIN jobs ON jobs.id = executions.job_id"
_OCCURRENCES = (
    "SELECT occurrences.*, jobs.name FROM occurrences JOIN schedules ON schedules.id = occurrences.schedule_id"
    " JOIN jobs ON jobs.id = schedules.job_id"
)
_RUNNING = (
    "SELECT jobs.name, instances.name AS instance, executions.epoch FROM executions"
    " JOIN jobs ON jobs.id = executions.job_id JOIN instances ON instances.id = executions.owner"
)
_BEHIND = "SELECT count(*) AS n FROM schedules WHERE status = 'ACTIVE' AND next_fire_at <= :wall"
