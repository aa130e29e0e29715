"""A disk of its own size, which a scenario fills and gives room again: a tmpfs that only its processes see.

A process holds the mount namespace; whoever is to have the disk enters it. From outside, files are reached through `/proc`.
Where the machine allows none of this, MissingError says so.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.process.conftest import COMMAND, PATIENCE, Serving, environment
from tests.servers.base import MissingError
from tests.servers.machine import free_port

FILLER = "filler"
CHUNK = 4_096


class Disk:
    """So many kilobytes at `folder`."""

    def __init__(self, folder: Path, kilobytes: int) -> None:
        folder.mkdir()
        self.folder = folder
        if shutil.which("unshare") is None or shutil.which("nsenter") is None:
            raise MissingError("a disk of its own", "unshare and nsenter are not here", "unshare")
        self._holder = subprocess.Popen(
            [
                *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
                f"mount -t tmpfs -o size={kilobytes}k,mode=700 tmpfs '{folder}' && echo ready && exec cat",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline().strip() != "ready":
            self.close()
            raise MissingError("a disk of its own", "this machine does not let us mount one", "mount")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The mount goes with its holder."""
        for pipe in (self._holder.stdin, self._holder.stdout, self._holder.stderr):
            assert pipe is not None
            pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._holder.wait(PATIENCE)

    @property
    def outside(self) -> Path:
        """Its folder, for who has not entered."""
        return Path(f"/proc/{self._holder.pid}/root{self.folder}")

    @property
    def free(self) -> int:
        found = os.statvfs(self.outside)
        return found.f_bavail * found.f_frsize

    def fill(self) -> int:
        """Takes all the room that is left; how many bytes that was."""
        taken = 0
        with (self.outside / FILLER).open("ab", buffering=0) as file, suppress(OSError):
            while True:
                taken += file.write(b"x" * CHUNK)
        return taken

    def relieve(self) -> None:
        """Gives back what `fill` took."""
        (self.outside / FILLER).unlink()

    def command(self, words: Sequence[str]) -> list[str]:
        """As a process that has the disk."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", *words]


class Confined:
    """An instance of Ksana that has the disk, and writes its log there, too."""

    def __init__(self, disk: Disk, env: Mapping[str, str]) -> None:
        self._disk = disk
        self._env = {"LOG_LEVEL": "info", "KSANA_SERVER_GRACEFUL_TIMEOUT": "2s", **env}
        self.port = free_port()
        self._serving: Serving | None = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ended(self) -> bool:
        return self._serving is None or self._serving.process.poll() is not None

    def start(self) -> float:
        """Until it is ready; how many seconds that took."""
        began = time.monotonic()
        log = self._disk.folder / "ksana.log"
        serve = " ".join([*COMMAND, "serve", "--port", str(self.port)])
        process = subprocess.Popen(
            self._disk.command(["sh", "-c", f"exec {serve} 2>> '{log}'"]),
            cwd=self._disk.folder.parent,
            env=environment(self._env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._serving = Serving(process)
        self._serving.read()
        self._serving.wait_ready()
        return time.monotonic() - began

    def end(self, how: signal.Signals) -> int:
        assert self._serving is not None
        code = self._serving.end(how)
        self._serving = None
        return code

    def close(self) -> None:
        if self._serving is not None:
            self._serving.close()
