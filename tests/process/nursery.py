"""Processes of Ksana that need not import it: one that has imported everything forks, and each fork runs one command.

To import takes a second and a half, and the tests start hundreds. A fork is a process as any other, with a number, files,
variables and a folder of its own; from `ksana.cli.main.main` on, it does what `python -m ksana.cli.main` does.
The tests of a command start it `fresh`, too: from nothing, as a shell does.
"""

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
IMPORTED = (
    "ksana.cli.app",
    "ksana.cli.audit",
    "ksana.cli.client.events",
    "ksana.cli.client.failures",
    "ksana.cli.client.instances",
    "ksana.cli.client.jobs",
    "ksana.cli.client.nodes",
    "ksana.cli.client.plans",
    "ksana.cli.client.runs",
    "ksana.cli.client.schedules",
    "ksana.cli.client.tenants",
    "ksana.cli.client.tree",
    "ksana.cli.client.workflows",
    "ksana.cli.config",
    "ksana.cli.doctor",
    "ksana.cli.main",
    "ksana.cli.migrate",
    "ksana.cli.process",
    "ksana.cli.purge",
    "ksana.cli.serve",
    "alembic.command",
    "cel",
    "ksana.executors.http",
    "ksana.executors.wait",
    "ksana.store.sql.fresh",
    "jsonschema_rs",
    "psycopg",
    "pydantic.v1",
    "pymysql",
    "sqlalchemy.dialects.mysql.pymysql",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uvicorn.protocols.http.httptools_impl",
)
"""What a command would import. One that is not listed is imported by the fork."""
NUMBER_BYTES = 4
"""All numbers are told with so many: the length of an order, the process that was begun, and how it ended."""


@dataclass
class Forked:
    """A process that the nursery has begun: as `subprocess.Popen` has it."""

    pid: int
    stdout: IO[str]
    stderr: IO[str]
    told: socket.socket
    """Where its end will be told."""
    returncode: int | None = field(default=None, init=False)

    def poll(self) -> int | None:
        """Its exit code, if it has ended; less than nothing if a signal ended it."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; subprocess.TimeoutExpired if it goes on."""
        if self.returncode is None:
            self.told.settimeout(timeout)
            try:
                told = self.told.recv(NUMBER_BYTES)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("ksana", timeout or 0) from None
            assert told, "the nursery has gone"
            self.returncode = int.from_bytes(told, signed=True)
            self.told.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The process that forks, and the desk at which to ask it. It ends when the desk is closed, and its forks with it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._desk, theirs = socket.socketpair()
        self._one_at_a_time = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.process.nursery", str(theirs.fileno())],
                cwd=ROOT,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # what a terminal sends to stop the session reaches it as the end of the desk
            )

    def start(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Forked:
        """`ksana` with these arguments."""
        told, telling = socket.socketpair()
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        order = json.dumps([list(arguments), str(cwd), dict(env)]).encode()
        try:
            with self._one_at_a_time:
                socket.send_fds(self._desk, [len(order).to_bytes(NUMBER_BYTES)], [out_end, err_end, telling.fileno()])
                self._desk.sendall(order)
        finally:
            telling.close()
            os.close(out_end)
            os.close(err_end)
        pid = told.recv(NUMBER_BYTES)
        assert pid, "the nursery has gone"
        return Forked(int.from_bytes(pid), os.fdopen(out, encoding="utf-8"), os.fdopen(err, encoding="utf-8"), told)

    def close(self) -> None:
        self._desk.close()
        self._process.wait()


class _Forks:
    """The side that forks. It has one thread, so that nothing is held when it does."""

    def __init__(self, desk: socket.socket) -> None:
        self._desk = desk
        self._ended, self._woken = socket.socketpair()
        self._telling: dict[int, socket.socket] = {}
        self._woken.setblocking(False)

    def serve(self) -> bool:
        """Takes orders until the desk is closed, then False. Returns in each fork, too: True."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken.fileno())
        with selectors.DefaultSelector() as ready:
            ready.register(self._desk, selectors.EVENT_READ)
            ready.register(self._ended, selectors.EVENT_READ)
            while True:
                asked = {key.fileobj for key, _ in ready.select()}
                if self._ended in asked:
                    self._tell_ends()
                if self._desk in asked:
                    length, files, *_ = socket.recv_fds(self._desk, NUMBER_BYTES, 3)
                    if not length:
                        return False
                    if self._fork(self._order(int.from_bytes(length)), files):
                        return True

    def kill(self) -> None:
        """Ends all forks."""
        for pid in self._telling:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _order(self, length: int) -> list[Any]:
        text = b""
        while len(text) < length:
            text += self._desk.recv(length - len(text))
        order: list[Any] = json.loads(text)
        return order

    def _fork(self, order: list[Any], files: list[int]) -> bool:
        """Whether this is the fork."""
        out, err, telling = files
        told = socket.socket(fileno=telling)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._desk, self._ended, self._woken, told, *self._telling.values()):
                end.close()
            os.setsid()  # what is sent to a session or a group reaches this process alone
            os.dup2(out, 1)
            os.dup2(err, 2)
            _become(*order)
        os.close(out)
        os.close(err)
        if pid != 0:
            self._telling[pid] = told
            told.sendall(pid.to_bytes(NUMBER_BYTES))
        return pid == 0

    def _tell_ends(self) -> None:
        self._ended.recv(1024)
        for pid in list(self._telling):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with self._telling.pop(pid) as told, contextlib.suppress(BrokenPipeError):
                    told.sendall(os.waitstatus_to_exitcode(status).to_bytes(NUMBER_BYTES, signed=True))


def _become(arguments: list[str], cwd: str, env: dict[str, str]) -> None:
    """Makes of this process what `python -m ksana.cli.main` would have been."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.path[0] = cwd
    sys.argv[1:] = arguments


def _main() -> None:
    gc.disable()
    for name in IMPORTED:
        import_module(name)
    gc.enable()
    gc.freeze()  # or else the first collection of each fork would copy all pages
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a session in the background was told to ignore
    forks = _Forks(socket.socket(fileno=int(sys.argv[1])))
    if forks.serve():
        import_module("ksana.cli.main").main()
    forks.kill()


if __name__ == "__main__":
    _main()
