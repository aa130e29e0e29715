"""The private database that an open JSON file lives in. It holds whatever SQL asks for and is thrown away at the end."""

import shutil
import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import SQLAlchemyError

from ksana.domain.errors import StoreError, StoreUnavailable
from ksana.domain.states import TERMINAL
from ksana.store.jsonfile.paths import scratch_folder
from ksana.store.requests import Diagnosis, StoreOptions
from ksana.store.sql import fresh
from ksana.store.sql.dialects.sqlite import SqliteDialect
from ksana.store.sql.errors import translate
from ksana.store.sql.filelock import FileLock
from ksana.store.sql.statements.slots import status_list

# Which jobs the file may say something else about after this transaction. Triggers, so that no statement, however it came to
# be, can change what is kept and go unnoticed; claims, retries and heartbeats touch none of it. The ledger needs no trigger:
# whatever adds to it writes to the schedule, too; and a row that retention removes may stay in the file.
_CHANGES = "CREATE TABLE mirror_changes (job_id INTEGER PRIMARY KEY)"
# Not OR IGNORE: what the statement that set it off says of conflicts would take its place.
_TRIGGER = (
    "CREATE TRIGGER {name} AFTER {what} BEGIN INSERT INTO mirror_changes SELECT {job}"
    " WHERE NOT EXISTS (SELECT 1 FROM mirror_changes WHERE job_id = {job}); END"
)
_ENDED = status_list(TERMINAL)
_TRIGGERS = (
    _TRIGGER.format(name="mirror_new_jobs", what="INSERT ON jobs", job="NEW.id"),
    _TRIGGER.format(name="mirror_jobs", what="UPDATE ON jobs", job="NEW.id"),
    _TRIGGER.format(
        name="mirror_new_schedules", what="INSERT ON schedules WHEN NEW.job_id IS NOT NULL", job="NEW.job_id"
    ),
    _TRIGGER.format(name="mirror_schedules", what="UPDATE ON schedules WHEN NEW.job_id IS NOT NULL", job="NEW.job_id"),
    _TRIGGER.format(name="mirror_new_runs", what="INSERT ON executions WHEN NEW.job_id IS NOT NULL", job="NEW.job_id"),
    _TRIGGER.format(
        name="mirror_runs",
        what=f"UPDATE OF status ON executions WHEN NEW.job_id IS NOT NULL AND (NEW.status IN ({_ENDED})"
        f" OR OLD.status IN ({_ENDED}))",
        job="NEW.job_id",
    ),
    _TRIGGER.format(name="mirror_old_runs", what="DELETE ON executions WHEN OLD.job_id IS NOT NULL", job="OLD.job_id"),
)


class ScratchDialect(SqliteDialect):
    """SQLite whose own file needs to outlive nothing: the JSON file does."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def writing_engine(self, url: str, options: StoreOptions, *, patient: bool = False) -> Engine:
        engine = super().writing_engine(url, options, patient=patient)

        @event.listens_for(engine, "connect")
        def _hurry(connection: Any, record: Any) -> None:  # noqa: ARG001
            connection.execute("PRAGMA synchronous = OFF")

        return engine

    def diagnose(self, connection: Connection) -> list[Diagnosis]:
        told = f"{self._path} is replaced and synced before each answer; run history is not kept over a restart"
        others = [finding for finding in super().diagnose(connection) if finding.name != "durability"]
        return [Diagnosis("durability", "ok", told), *others]


class ScratchLock(FileLock):
    """The file's lock; whoever gives it back takes the private database away first."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.with_name(path.name + ".lock"))
        self._folder = scratch_folder(path)

    def release(self) -> None:
        if self._file is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        super().release()


def make(path: Path, dialect: ScratchDialect, options: StoreOptions) -> str:
    """An empty database with all tables; its URL. What a process that was killed left is removed. The lock must be held."""
    folder = scratch_folder(path)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise StoreUnavailable(f"{folder} cannot be made: {error.strerror or error}") from error
    url = f"sqlite:///{folder / 'ksana.db'}"
    engine = dialect.writing_engine(url, options)
    try:
        with engine.connect() as connection:
            driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
            driver.executescript(_script())
    except (SQLAlchemyError, sqlite3.Error) as error:
        told = translate(error)
        raise told if isinstance(told, StoreError) else StoreUnavailable(f"{folder} cannot be used: {error}") from error
    finally:
        engine.dispose()
    return url


@lru_cache
def _script() -> str:
    """All tables, and what notes changes to them."""
    return ";\n".join(["BEGIN", *fresh.tables(), _CHANGES, *_TRIGGERS, "COMMIT"])
