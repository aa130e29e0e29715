"""The life of one private server: start, stop, kill, restart, pause; the same for every database."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Self

from tests.servers import leash
from tests.servers.machine import LOOPBACK, Account, free_port, private_folder, service_account

START_SECONDS = 30.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.02
START_ATTEMPTS = 5
LOG_TAIL_CHARACTERS = 2_000


class MissingError(Exception):
    """The programs of a back end are not installed. The text says which back end, and how to get it."""

    def __init__(self, label: str, how: str, looked_for: str) -> None:
        super().__init__(f"{label} is not installed: {how}")
        self.label, self.how, self.looked_for = label, how, looked_for


class ServerError(Exception):
    """A server did not come up, or ended when it should not have; the text carries the end of its log."""


class Address(ABC):
    """Where a server listens, and the databases on it. Holds no connection: any process may have one."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url})"

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL of the server's own administrative database."""

    @abstractmethod
    def create_database(self) -> str:
        """Makes a new, empty database and returns its URL."""

    @abstractmethod
    def drop_database(self, url: str) -> None:
        """Removes a database with whoever is still connected to it; one that is already gone is no error."""

    @abstractmethod
    def serves(self, folder: Path) -> bool:
        """Whether what answers here keeps its data in `folder`: not another that took the port first."""


class Server(ABC):
    """One private server. Raises MissingError when made on a machine without its programs.

    `start` makes the data folder and finds a port; both stay the same over `stop`, `kill` and `restart`.
    `close` ends it and removes the folder. If this process dies without that, the leash does both.

    With `durable=False` nothing waits for the disk: fast, and right wherever no test kills the server.
    """

    prefix: ClassVar[str]
    accounts: ClassVar[tuple[str, ...]] = ()
    #: Asks for an orderly end.
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    #: Asks for the fastest end that leaves nothing behind in the system; the data need not survive it.
    farewell_signal: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, *, durable: bool = False) -> None:
        self.durable = durable
        self.account: Account = service_account(*self.accounts)
        self.port = 0
        self._folder: Path | None = None
        self._leash: subprocess.Popen[str] | None = None
        self._pid = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    @abstractmethod
    def find(cls) -> object:
        """The installed programs; raises MissingError when there are none."""

    @property
    @abstractmethod
    def address(self) -> Address:
        """Where it listens, once started."""

    @abstractmethod
    def _initialise(self) -> list[str] | None:
        """The command that fills the empty folder, or None where the server does that itself."""

    @abstractmethod
    def _serve(self) -> list[str]:
        """The command that serves `folder` on `port` in the foreground."""

    @property
    def folder(self) -> Path:
        """The private folder, which holds the data and the log."""
        if self._folder is None:
            raise ServerError("the server was not started")
        return self._folder

    @property
    def url(self) -> str:
        """The URL of the server's own administrative database."""
        return self.address.url

    @property
    def running(self) -> bool:
        """Whether its process is there, paused or not."""
        return self._leash is not None and self._leash.poll() is None

    def create_database(self) -> str:
        """Makes a new, empty database and returns its URL."""
        return self.address.create_database()

    def drop_database(self, url: str) -> None:
        """Removes a database with whoever is still connected to it."""
        self.address.drop_database(url)

    def start(self) -> Self:
        """Serves until told otherwise; returns when it answers. ServerError when it does not."""
        if self.running:
            return self
        if self._folder is not None:
            self._serve_and_wait(moves=False)
            return self
        try:
            self._prepare()
            self._serve_and_wait(moves=True)
        except BaseException:
            self.close()
            raise
        return self

    def stop(self) -> None:
        """Ends it in order, as an operator would; killed if that takes longer than STOP_SECONDS."""
        self.resume()
        self._end(self.stop_signal, STOP_SECONDS)

    def kill(self) -> None:
        """Ends it and everything it forked with SIGKILL, in the middle of whatever they do."""
        self._end(signal.SIGKILL, 0)

    def restart(self) -> None:
        """Stops it, unless it is down already, and starts it on the same port and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freezes it with every connection open: clients wait and get no error."""
        if self.running:
            stopped: set[int] = set()
            # First the one that forks, then what it forked; and, where it was forking meanwhile, what came of that.
            while new := {self._pid, *leash.descendants(self._pid)} - stopped:
                leash.send(sorted(new), signal.SIGSTOP)
                stopped |= new

    def resume(self) -> None:
        """Lets a paused server go on; nothing happens to one that is not paused."""
        if self.running:
            leash.send([*leash.descendants(self._pid), self._pid], signal.SIGCONT)

    def close(self) -> None:
        """Ends it the fastest way and removes its folder. May be called again."""
        self.resume()
        self._end(self.farewell_signal, leash.GRACE_SECONDS)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder, self.port = None, 0

    def _prepare(self) -> None:
        self._folder = private_folder(f"ksana-{self.prefix}", self.account)
        command = self._initialise()
        if command is None:
            return
        code = self._launch(command).wait(START_SECONDS)
        self._forget()
        if code != 0:
            raise ServerError(f"{' '.join(command)} ended with {code}:\n{self._log_tail()}")

    def _serve_and_wait(self, *, moves: bool) -> None:
        for _ in range(START_ATTEMPTS):
            self.port = free_port() if moves else self.port
            self._launch(self._serve())
            if self._answers():
                return
            self._forget()
        raise ServerError(f"{self._describe()} ended {START_ATTEMPTS} times as it started:\n{self._log_tail()}")

    def _launch(self, command: list[str]) -> "subprocess.Popen[str]":
        arguments = [
            str(self.folder),
            f"{self.account.uid}:{self.account.gid}",
            str(int(self.farewell_signal)),
        ]
        self._leash = subprocess.Popen(
            [sys.executable, "-I", "-S", leash.__file__, *arguments, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=_environment(self.folder),
        )
        assert self._leash.stdout is not None
        pid = self._leash.stdout.readline().strip()
        if not pid:
            self._forget()
            raise ServerError(f"{command[0]} could not be run")
        self._pid = int(pid)
        return self._leash

    def _answers(self) -> bool:
        """Waits until it answers; False when it ended instead, as when its port was taken meanwhile."""
        deadline = time.monotonic() + START_SECONDS
        while not self.address.serves(self.folder):
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert self._leash is not None
                self._leash.wait(POLL_SECONDS)
                return False
            if time.monotonic() > deadline:
                raise ServerError(f"{self._describe()} gave no answer in {START_SECONDS} s:\n{self._log_tail()}")
        return True

    def _end(self, number: signal.Signals, grace_seconds: float) -> None:
        if self._leash is None:
            return
        deadline = time.monotonic() + grace_seconds
        leash.send([self._pid] if self.running else [], number)
        while self._leash.poll() is None:
            # The leash ends when the last of its descendants has: the port and the data are then free.
            if time.monotonic() >= deadline:
                leash.send(leash.descendants(self._leash.pid), signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._leash.wait(POLL_SECONDS)
        self._forget()

    def _forget(self) -> None:
        """Lets go of a leash that has ended."""
        if self._leash is not None:
            self._leash.wait(START_SECONDS)
            for pipe in (self._leash.stdin, self._leash.stdout):
                assert pipe is not None
                pipe.close()
        self._leash, self._pid = None, 0

    def _describe(self) -> str:
        return f"{type(self).__name__} on {LOOPBACK}:{self.port}"

    def _log_tail(self) -> str:
        log = self.folder / leash.LOG
        return log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:] if log.exists() else "(no log)"


def _environment(folder: Path) -> dict[str, str]:
    """Ours without what would steer a server elsewhere, with a locale and zone that every machine has."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "MYSQL_", "MARIADB_"))}
    return {**kept, "LC_ALL": "C", "TZ": "UTC", "TMPDIR": str(folder)}
