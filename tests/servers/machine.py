"""What the machine offers to a private server: programs, an account to run as, a folder, a free port."""

import os
import pwd
import random
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAM_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local/mysql/bin",
    "/opt/homebrew/bin",
    "/opt/homebrew/opt/*/bin",
    "/usr/local/opt/*/bin",
)
# Below Linux's (32768) and macOS's (49152) ranges for outgoing connections: none of those takes the port of a
# server that is down for a restart.
PORTS = range(20_000, 32_000)
LOOPBACK = "127.0.0.1"
MEMORY = "/dev/shm"
MEMORY_BYTES = 4 << 30


@dataclass(frozen=True)
class Account:
    """Who a server runs as."""

    uid: int
    gid: int


def find_program(*names: str) -> Path | None:
    """The first of `names` that is installed: on the PATH, else where packages hide their servers."""
    for name in names:
        on_path = shutil.which(name)
        if on_path is not None:
            return Path(on_path)
        for folder in _program_folders():
            if os.access(folder / name, os.X_OK):
                return folder / name
    return None


def _program_folders() -> Iterator[Path]:
    for pattern in PROGRAM_FOLDERS:
        # The highest version first: postgresql/16 before postgresql/9.6 is the one that matters.
        yield from sorted(Path("/").glob(pattern.lstrip("/")), key=_version, reverse=True)


def _version(folder: Path) -> list[int]:
    return [int(digits) for digits in "".join(c if c.isdigit() else " " for c in str(folder)).split()]


def service_account(*preferred: str) -> Account:
    """Ourselves; for root, which databases refuse to run as, the first account of `preferred`, or nobody."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    for name in (*preferred, "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise LookupError(f"root needs one of these accounts to run a server: {', '.join(preferred)}, nobody")


def private_folder(prefix: str, account: Account) -> Path:
    """A new folder that belongs to `account`, below folders that it can pass.

    The path stays short, because a Unix socket in it may have no more than about 100 characters.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=_passable([tempfile.gettempdir(), "/tmp", "/var/tmp"])))
    if account.uid != os.geteuid():
        os.chown(folder, account.uid, account.gid)
    return folder.resolve()


def memory_folder() -> str | None:
    """Where files are kept in memory, if there is such a place with room for all servers, from which programs may run."""
    if sys.platform != "linux" or not os.access(MEMORY, os.W_OK | os.X_OK):
        return None
    place = os.statvfs(MEMORY)
    roomy = place.f_bavail * place.f_frsize >= MEMORY_BYTES
    return MEMORY if roomy and not place.f_flag & os.ST_NOEXEC else None


def _passable(candidates: Iterable[str]) -> Path:
    folders = [Path(candidate).resolve() for candidate in candidates]
    if os.geteuid() != 0:
        return folders[0]
    for folder in folders:
        if all(parent.stat().st_mode & stat.S_IXOTH for parent in (folder, *folder.parents)):
            return folder
    raise LookupError(f"no temporary folder that another account can pass: {', '.join(map(str, folders))}")


def free_port() -> int:
    """A loopback port that is free now. Another may take it first: whoever starts a server tries again."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
