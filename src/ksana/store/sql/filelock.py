"""One process per SQLite file: a lock that the kernel gives back when its holder dies, with a note saying who that is."""

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from ksana.domain.errors import StoreError, StoreInUse
from ksana.store.sql.dialects import dialect_of


def hold_file(url: str) -> "FileLock | None":
    """Makes this the one process that has a SQLite file open; None for databases that several may share."""
    if dialect_of(url).shared:
        return None
    from ksana.store.sql.dialects.sqlite import database_path  # noqa: PLC0415

    lock = FileLock(lock_path(database_path(url)))
    lock.acquire()
    return lock


def lock_path(path: Path) -> Path:
    """The lock of the file at `path`."""
    return path.with_name(path.name + ".lock")


class FileLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None
        self.left = ""
        """The note of who had it before, if that one did not give it back."""

    def acquire(self) -> None:
        """StoreInUse, naming the holder, if another process has it; StoreError if the folder cannot be written to."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(
                f"cannot write to the data directory {self._path.parent}: {error.strerror or error};"
                " choose another with --data-dir or DATA_DIR"
            ) from error
        file = os.fdopen(descriptor, "r+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = file.read().strip() or "another process"
            file.close()
            raise StoreInUse(
                f"the data directory {self._path.parent} is in use by {holder}: stop it, or choose another with --data-dir"
            ) from error
        self.left = file.read().strip()
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        self._file = file

    def release(self) -> None:
        """Gives it back, and takes the note out: all is in order."""
        if self._file is not None:
            self._file.truncate(0)
        self.abandon()

    def abandon(self) -> None:
        """Gives it back as a process does that is killed: with its note."""
        if self._file is not None:
            self._file.close()
            self._file = None
