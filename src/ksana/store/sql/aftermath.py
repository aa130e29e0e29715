"""A SQLite file whose process was killed is checked before it is used: what is damaged is named and not gone on with.

A killed process loses nothing by itself; but whoever kills processes may be a disk, or a person who then tidies up. A process
that ends in order takes its note out of the lock file, and so one that did not is known.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from ksana.domain.errors import StoreError, StoreInUse
from ksana.store.sql.dialects import dialect_of
from ksana.store.sql.filelock import FileLock, lock_path
from ksana.telemetry import log

SOUND = "ok"


def check_after_crash(url: str) -> None:
    """StoreError, with the file and what is wrong with it, if it cannot be trusted. Nothing for a database that is in use, was
    closed in order, or is a server's."""
    dialect = dialect_of(url)
    if dialect.shared or not dialect.exists(url):
        return
    from ksana.store.sql.dialects.sqlite import database_path  # noqa: PLC0415 - as in `dialect_of`

    path = database_path(url)
    lock = FileLock(lock_path(path))
    try:
        lock.acquire()
    except StoreInUse:
        return
    try:
        if lock.left:
            _check(path)
    except BaseException:
        lock.abandon()
        raise
    lock.release()


def _check(path: Path) -> None:
    logged = path.with_name(path.name + "-wal").exists()
    began = time.monotonic()
    found = _findings(path)
    if found != SOUND:
        raise StoreError(
            f"{path} is damaged: {found}; put a copy in its place, or save what can be read of it with `sqlite3 {path} .recover`"
        )
    log().info(
        "checked after a crash", action="store.checked", file=str(path), seconds=round(time.monotonic() - began, 3)
    )
    if not logged:
        log().warning(
            "the last process was killed, and its log of the last writes is not there: if nobody has opened the file since, and"
            " the log was removed, they are missing",
            action="store.log_missing",
            file=f"{path}-wal",
        )


def _findings(path: Path) -> str:
    """`ok`, or the first that is wrong."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            return str(connection.execute("PRAGMA quick_check(1)").fetchone()[0]).replace("\n", " ")
    except sqlite3.Error as error:
        return str(error)
