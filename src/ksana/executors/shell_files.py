"""The private directory of one attempt, and the two files through which a command gives more than its exit code.

The command may put anything there, also a link to a file that only Ksana can read. So the directory is kept open, and its files
are opened through it, without following links, and only if they are plain files of one name.
"""

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from typing import Any

import orjson

from ksana.executors.shell_process import Account

ARTIFACT, CHECKPOINT = "artifact.json", "checkpoint.json"
MAX_FILE = 1_000_000
PREFIX = "ksana-run-"


class Unusable(Exception):
    """A file that cannot be taken; the text says why."""


@dataclass(frozen=True, slots=True)
class PrivateDirectory:
    """Only its user may enter it. `remove` takes it away with all that is in it."""

    path: str
    fd: int

    @classmethod
    def make(cls, owner: Account | None = None) -> "PrivateDirectory":
        """OSError if there is no room."""
        path = tempfile.mkdtemp(prefix=PREFIX)
        if owner is not None:
            os.chown(path, owner.uid, owner.gid)
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def write(self, name: str, data: bytes, owner: Account | None = None) -> None:
        """Before the command begins."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=self.fd), "wb") as file:
            file.write(data)
            if owner is not None:
                os.fchown(file.fileno(), owner.uid, owner.gid)

    def read(self, name: str) -> bytes | None:
        """What is in the file; None if it is not there or empty. Unusable if it is no plain file, or too large."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unusable(f"{name} cannot be read: {(error.strerror or '').lower()}") from error
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                raise Unusable(f"{name} is not a plain file")
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise Unusable(f"{name} is larger than {MAX_FILE} bytes")
        return data or None

    def remove(self) -> None:
        os.close(self.fd)
        shutil.rmtree(self.path, ignore_errors=True)


def parsed(name: str, data: bytes) -> Any:
    """The JSON in it; Unusable if it is none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise Unusable(f"{name} is not JSON") from None
