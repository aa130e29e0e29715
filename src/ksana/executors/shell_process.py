"""A command and everything that it starts, as one thing that can be watched and ended. Used by `shell` and by `python`."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson

from ksana import failpoints

GRACE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL. With it, an attempt ends within the runner's two seconds after its deadline."""
PATIENCE_SECONDS = 0.5
"""Beyond the grace: how long the supervisor may take to bury the tree before it is given up on."""
# As a module, which Python keeps compiled; found after the standard library, some of whose names are in our folder too.
_SUPERVISOR = (
    f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import shell_supervisor; shell_supervisor.main()"
)
_WINDOW_SECONDS, _WINDOW_BYTES = 0.05, 1_000_000

Sink = Callable[[int, bytes], None]


@dataclass(frozen=True, slots=True)
class Account:
    """Another user of this machine."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and as what. Nothing of it can be seen in the list of processes but the command itself."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """All of its environment."""
    cwd: str
    private: str | None = None
    """A directory that the supervisor removes should Ksana be gone."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """`cpu` (seconds), `memory`, `file_size` (bytes), `processes`."""
    user: Account | None = None
    keep: tuple[int, ...] = ()
    """Open files that it gets besides its output."""
    grace: float = GRACE_SECONDS


class ProcessTree(asyncio.SubprocessProtocol):
    """One command, under a supervisor of its own that ends with Ksana. Make it with `start`.

    Its output goes to `sink(1 or 2, data)` as it comes. A flood is slowed down, so that it cannot keep the event loop busy.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport
        self._received = 0
        self._window_ends = 0.0

    @classmethod
    async def start(cls, command: Command, sink: Sink) -> "ProcessTree":
        """OSError if there is no process to be had. A command that cannot be run ends with 127 or 126, as in a shell."""
        failpoints.reach("spawn.before", OSError)
        loop = asyncio.get_running_loop()
        _, tree = await loop.subprocess_exec(
            lambda: cls(sink),
            *(sys.executable, "-I", "-S", "-c", _SUPERVISOR),
            env=_for_the_supervisor(),
            cwd="/",
            start_new_session=True,
            pass_fds=command.keep,
        )
        tree.say(orjson.dumps(asdict(command)))
        failpoints.reach("spawn.after", OSError)
        return tree

    @property
    def pid(self) -> int:
        """The supervisor's, and the id of the session that all of the tree is in unless it has left it."""
        return self._transport.get_pid()

    @property
    def running(self) -> bool:
        return not self._exited.done()

    async def ended(self, within: float | None = None) -> bool:
        """Whether it has ended and all its output has come; waits for that, at most so long. Nothing is lost if cancelled."""
        await asyncio.wait({self._closed}, timeout=within)
        return self._closed.done()

    def exit_code(self) -> int:
        """Of one that has ended; -9 if signal 9 ended it."""
        return cast("int", self._transport.get_returncode())

    async def end(self, *, grace: bool = True) -> None:
        """Ends what is left of it. Harmless if it has ended; if cancelled, the supervisor goes on with it all the same."""
        self.say(b"stop" if grace else b"kill")
        if not await self.ended(PATIENCE_SECONDS + (GRACE_SECONDS if grace else 0)):
            self._signal(signal.SIGKILL)
            await self.ended(2 * PATIENCE_SECONDS)

    def _signal(self, number: int) -> None:
        if self.running:
            self._transport.send_signal(number)

    def say(self, line: bytes) -> None:
        """A word to the supervisor; lost if it is gone."""
        control = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if control is not None and not control.is_closing():
            control.write(line + b"\n")

    # What asyncio tells ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._window_ends:
            self._received, self._window_ends = 0, loop.time() + _WINDOW_SECONDS
        self._received += len(data)
        if self._received > _WINDOW_BYTES:
            pipe = cast("asyncio.ReadTransport", self._transport.get_pipe_transport(fd))
            pipe.pause_reading()
            loop.call_at(self._window_ends, _resume, pipe)
        self.sink(fd, data)

    def process_exited(self) -> None:
        if self._exited.done():
            return
        self._exited.set_result(None)
        loop = asyncio.get_running_loop()
        if self.exit_code() == -signal.SIGKILL:
            # Perhaps not the command but the supervisor was killed; what it would have ended is still in its session.
            # In a thread of its own, because the loop's may have been closed already.
            threading.Thread(target=_kill_session, args=(self.pid,), daemon=True).start()
        loop.call_later(PATIENCE_SECONDS, self._transport.close)  # should somebody have got away with its output

    def connection_lost(self, _error: Exception | None) -> None:
        self.process_exited()
        self._transport.close()  # asyncio warns of one that only ended by itself
        if not self._closed.done():
            self._closed.set_result(None)


def _resume(pipe: asyncio.ReadTransport) -> None:
    if not pipe.is_closing():
        pipe.resume_reading()


def _for_the_supervisor() -> dict[str, str]:
    """What a Python of our own may need to be started at all; nothing of ours."""
    names = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {name: os.environ[name] for name in names if name in os.environ}


def _kill_session(session: int) -> None:
    """Kills every process of that session. Linux only: elsewhere the list of processes is not to be had so simply."""
    for _ in range(3):  # what it forks meanwhile is found by the next look
        for pid in _members(session):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _members(session: int) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields: list[Any] = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            yield int(entry.name)
