"""A file that is replaced as a whole: whoever reads it, even after a crash, finds the old contents or the new."""

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from ksana import failpoints
from ksana.domain.errors import CommitUnknown, StoreError, StoreFull, StoreUnavailable
from ksana.store.jsonfile import paths

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PRIVATE = 0o600


def read(path: Path) -> bytes | None:
    """What it holds; None if it is not there. StoreError if it is, and cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def replace(path: Path, parts: Iterable[bytes]) -> None:
    """Durable when it returns. StoreFull, StoreUnavailable: it is as it was. CommitUnknown: it was replaced, but whether that
    would outlive a power cut is unknown."""
    new = paths.temporary(path)
    try:
        _write(new, parts)
        failpoints.reach("rename.before", OSError)
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise _refused(path, error) from error
    try:
        failpoints.reach("rename.after", OSError)
        _sync_folder(path.parent)
    except OSError as error:
        raise CommitUnknown(
            f"{path} was replaced, but its folder cannot be synced ({error.strerror or error}):"
            " whether this was written is unknown"
        ) from error


def move_aside(path: Path) -> Path:
    """Renames it to a name that nothing has; that name. Nothing is ever overwritten: who holds the lock is alone."""
    aside = paths.set_aside(path)
    try:
        path.rename(aside)
        _sync_folder(path.parent)
    except OSError as error:
        raise _refused(path, error) from error
    return aside


def remove_stray(path: Path) -> None:
    """What a crash before the rename left behind: it was never answered."""
    stray = paths.temporary(path)
    try:
        stray.unlink(missing_ok=True)
    except OSError as error:
        raise _refused(stray, error) from error


def _write(path: Path, parts: Iterable[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """A rename is on the disk when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(path: Path, error: OSError) -> StoreError:
    told = f"{path} cannot be written: {error.strerror or error}"
    return StoreFull(told) if error.errno in _NO_ROOM else StoreUnavailable(told)
