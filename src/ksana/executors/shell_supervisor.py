"""The process between Ksana and a command: it ends the command's whole tree when it is told to, and when Ksana is gone.

It runs in a Python without site packages and imports nothing of Ksana's, nor `typing`, so that it starts in milliseconds. On its
standard input comes one line of JSON (`shell_process.Command`), then perhaps `stop` (SIGTERM, and SIGKILL after a grace) or `kill`.
The end of its input means that Ksana is gone, however that came about: then it does as for `stop`, and removes the private
directory too. Whatever the command has left behind when it ends is killed. The supervisor ends as the command did: with its exit
code, or by its signal.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
NOT_FOUND, NOT_ALLOWED = 127, 126
_LINUX = sys.platform == "linux"
_LIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "memory": resource.RLIMIT_AS,
    "file_size": resource.RLIMIT_FSIZE,
    "processes": resource.RLIMIT_NPROC,
}


class Control:
    """What Ksana says. `gone` once it says nothing any more."""

    def __init__(self) -> None:
        self.gone = False
        self._unread = b""

    def first_line(self) -> bytes | None:
        """Waits for it; None if Ksana is gone before it came."""
        while b"\n" not in self._unread and not self.gone:
            self.read()
        line, _, self._unread = self._unread.partition(b"\n")
        return None if self.gone else line

    def read(self) -> None:
        data = os.read(0, 65_536)
        self.gone = not data
        self._unread += data

    def says(self, word: bytes) -> bool:
        return word in self._unread.split(b"\n")


class Watch:
    """One command from its start to the end of its tree."""

    def __init__(self, control: Control, command: "Mapping[str, Any]") -> None:
        self._control = control
        self._grace = float(command["grace"])
        self._kill_at: float | None = None
        self._woken = _signals_as_bytes()
        self._pid = _begun(command)

    def until_it_ends(self) -> int:
        """Its status, as `waitpid` tells it, once nothing of its tree is left."""
        while True:
            status = _reaped(self._pid)
            if status is not None:
                _signal_group(self._pid, signal.SIGKILL)
                _end_descendants()
                return status
            self._end_if_told()  # before waiting: it may have been told together with the command
            self._wait()

    def _wait(self) -> None:
        watched = [self._woken] if self._control.gone else [self._woken, 0]
        left = None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())
        ready, _, _ = select.select(watched, [], [], left)
        if self._woken in ready and signal.SIGTERM in os.read(self._woken, 4_096):
            self._stop()
        if 0 in ready:
            self._control.read()

    def _end_if_told(self) -> None:
        if self._control.gone or self._control.says(b"stop"):
            self._stop()
        overdue = self._kill_at is not None and time.monotonic() >= self._kill_at
        if overdue or self._control.says(b"kill"):
            _signal_group(self._pid, signal.SIGKILL)
            self._kill_at = time.monotonic() + 1  # should a member of the group have been born meanwhile

    def _stop(self) -> None:
        if self._kill_at is None:
            _signal_group(self._pid, signal.SIGTERM)
            self._kill_at = time.monotonic() + self._grace


def main() -> None:
    control = Control()
    line = control.first_line()
    if line is None:
        return
    command = json.loads(line)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    status = Watch(control, command).until_it_ends()
    if control.gone:
        _remove(command["private"])
    _end_like(status)


def _begun(command: "Mapping[str, Any]") -> int:
    """The pid of the command, which leads a process group of its own."""
    supervisor = os.getpid()
    signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGTERM}
    )  # one that comes before the command has begun must not get lost
    pid = os.fork()
    if pid == 0:
        _become(command, supervisor)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    with suppress(OSError):  # the child does so too: whoever comes first
        os.setpgid(pid, pid)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    for kept in command["keep"]:
        os.close(kept)
    return pid


def _become(command: "Mapping[str, Any]", supervisor: int) -> None:
    """Turns this process into the command; it never returns."""
    argv = command["argv"]
    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.umask(0o077)
        # Python ignores the first two, and what is ignored stays so in whatever is executed.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        _limit(command["limits"])
        _switch_user(command["user"])
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # after the user is switched, which would clear it
        if os.getppid() != supervisor:
            os._exit(NOT_FOUND)
        os.chdir(command["cwd"])
        os.execvpe(argv[0], argv, command["env"])  # noqa: S606 - that is what it is for
    except BaseException as error:  # noqa: BLE001 - it must not go on as a second supervisor
        told = error.strerror if isinstance(error, OSError) else str(error)
        os.write(2, f"{argv[0]}: {told}\n".encode("utf-8", "replace"))
        os._exit(NOT_ALLOWED if isinstance(error, PermissionError) else NOT_FOUND)


def _limit(limits: Mapping[str, int]) -> None:
    for name, value in limits.items():
        _, hard = resource.getrlimit(_LIMITS[name])
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(_LIMITS[name], (allowed, allowed))


def _switch_user(user: "Mapping[str, Any] | None") -> None:
    if user is not None:
        os.setgroups(user["groups"])
        os.setgid(user["gid"])
        os.setuid(user["uid"])


def _signals_as_bytes() -> int:
    """A file that has a byte for each signal that came: what is waited for together with Ksana's words."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    noted: Callable[[int, Any], None] = lambda _number, _frame: None  # noqa: E731 - the byte is all that is wanted
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, noted)
    return reading


def _reaped(pid: int) -> int | None:
    """The status of the command if it has ended. Orphans of its tree, which are given to us, are buried on the way."""
    while True:
        try:
            found, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if found == pid:
            return status
        if found == 0:
            return None


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nobody is left in it; macOS says so with the latter
        os.killpg(group, number)


def _end_descendants() -> None:
    """Kills what has left the group: orphaned, it became our child, and so do its own children when it dies."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for pid in _children():
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> Iterator[int]:
    me = os.getpid()
    for name in os.listdir("/proc") if _LINUX else ():  # noqa: PTH208 - pathlib would double the time to start
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - likewise
                    # The name, in brackets, may have anything in it.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            if parent == me:
                yield int(name)


def _prctl(option: int, value: int) -> None:
    """Linux alone has it. Elsewhere, what leaves the command's group is not found again."""
    if _LINUX:
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _remove(directory: str | None) -> None:
    if directory is not None:
        import shutil  # noqa: PLC0415 - costs as much as all the rest, and is seldom needed

        shutil.rmtree(directory, ignore_errors=True)


def _end_like(status: int) -> None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))
