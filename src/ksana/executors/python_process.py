"""One process for functions, as the server sees it: started, given an attempt at a time, ended as a tree."""

import asyncio
import secrets
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from ksana.executors.python_functions import PythonOptions
from ksana.executors.shell_env import as_json, inherited
from ksana.executors.shell_files import PrivateDirectory
from ksana.executors.shell_output import Output
from ksana.executors.shell_process import GRACE_SECONDS, Command, ProcessTree

MAX_MESSAGE = 4_000_000
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[2]);"
    " from ksana.executors.python_worker import main; main(int(sys.argv[1]))"
)


class WorkerDied(Exception):
    """The process is gone; the text says how it ended."""


class Worker:
    """Make it with `start`, and `end` it, whatever happens."""

    def __init__(self, directory: PrivateDirectory) -> None:
        self._directory = directory
        self._tree: ProcessTree | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None
        self._output = Output(_unheard)
        self._marks: _Marks | None = None
        self.attempts = 0

    @classmethod
    async def start(cls, options: PythonOptions) -> "Worker":
        """One that is ready. OSError if there is none to be had; WorkerDied, with the reason, if the modules fail."""
        worker = cls(PrivateDirectory.make())
        try:
            await worker._begin(options)
        except BaseException:
            await asyncio.shield(asyncio.create_task(worker.end()))
            raise
        return worker

    @property
    def usable(self) -> bool:
        return self._tree is not None and self._tree.running and not self._reader.at_eof()

    def begin(self, run: Mapping[str, Any], output: Output) -> None:
        """Gives it an attempt, whose output goes to `output`."""
        self.attempts += 1
        mark = f"\0ksana-{secrets.token_hex(16)}\0"
        self._marks = _Marks(mark.encode(), output)
        self.send({"run": run, "mark": mark})

    def send(self, message: Mapping[str, Any]) -> None:
        """Lost if the process is gone; `receive` tells so."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(as_json(message).encode() + b"\n")

    async def receive(self) -> dict[str, Any]:
        """Its next message. WorkerDied if it is gone, or does not keep to the protocol."""
        try:
            line = await self._reader.readline()
            if line.endswith(b"\n"):
                message: dict[str, Any] = orjson.loads(line)
                return message
        except (OSError, ValueError):
            pass
        raise WorkerDied(await self._how_it_ended())

    async def outputs_come(self) -> None:
        """Waits for the marks: then all output of the attempt has come."""
        if self._marks is not None:
            await self._marks.seen.wait()
            self._marks = None

    async def end(self) -> None:
        """Kills it with all that it has started. Harmless if it has ended."""
        try:
            if self._tree is not None:
                await self._tree.end(grace=False)
            if self._writer is not None:
                self._writer.close()
                with suppress(OSError):
                    await self._writer.wait_closed()
        finally:
            await asyncio.to_thread(self._directory.remove)

    async def _begin(self, options: PythonOptions) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = Command(
                # The path is given here and not in a variable, which processes that a function starts would inherit.
                argv=[sys.executable, "-I", "-c", _START, str(theirs.fileno()), as_json(_path())],
                env=inherited(options.env),
                cwd=self._directory.path,
                private=self._directory.path,
                keep=(theirs.fileno(),),
            )
            self._reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=MAX_MESSAGE)
            self._tree = await ProcessTree.start(command, self._received)
        self.send({"modules": options.modules, "directory": self._directory.path})
        try:
            await self.receive()
        except WorkerDied as error:
            raise WorkerDied(self._output.last_error() or str(error)) from error

    def _received(self, fd: int, data: bytes) -> None:
        if self._marks is not None:
            self._marks.received(fd, data)
        else:
            self._output.received(fd, data)

    async def _how_it_ended(self) -> str:
        tree = self._tree
        if tree is None:
            return "it did not start"
        if not await tree.ended(GRACE_SECONDS):  # it has hung up, and lives on
            await tree.end(grace=False)
        if tree.running:
            return "it cannot be ended"
        code = tree.exit_code()
        return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _path() -> list[str]:
    """Where this process finds its modules, from whatever directory one looks."""
    return [str(Path(entry).absolute()) for entry in sys.path]


def _unheard(text: str, stream: str) -> None:
    """What is written between attempts, while the modules are imported say, is in nobody's log."""


class _Marks:
    """Hands output on until the mark has come on both streams; `seen` is set then. What comes after it is nobody's."""

    def __init__(self, mark: bytes, output: Output) -> None:
        self._mark = mark
        self._output = output
        self._held = {1: b"", 2: b""}
        self._open = {1, 2}
        self.seen = asyncio.Event()

    def received(self, fd: int, data: bytes) -> None:
        if fd not in self._open:
            return
        before, found, _ = (self._held[fd] + data).partition(self._mark)
        # The mark may come in two parts: what could be its beginning waits for the rest.
        start = before.rfind(b"\0", -len(self._mark)) if not found else -1
        keep = start if start >= 0 and self._mark.startswith(before[start:]) else len(before)
        self._held[fd] = before[keep:]
        if before[:keep]:
            self._output.received(fd, before[:keep])
        if found:
            self._open.discard(fd)
            if not self._open:
                self._output.finish()
                self.seen.set()
