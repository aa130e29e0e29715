"""Runs one command on a leash: when whoever holds the other end of standard input goes, so does the command.

Run as a script, `leash.py FOLDER UID:GID SIGNAL COMMAND...`. Prints the command's process id, then lives as
long as the command and everything it forked. At the end of standard input it asks the command to stop with
SIGNAL, kills what is left after GRACE_SECONDS, and removes FOLDER: even a holder killed with SIGKILL leaves
nothing behind.

Uses the standard library alone, because the script starts without site-packages.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

GRACE_SECONDS = 3.0
KILL_AGAIN_SECONDS = 0.05
LOG = "server.log"
PR_SET_CHILD_SUBREAPER = 36
STDIN = 0


def descendants(root: int) -> list[int]:
    """The processes below `root`, parents first; empty when it is gone."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found[1:]


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Signals each process that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _parents() -> Iterator[tuple[int, int]]:
    if Path("/proc/self/stat").exists():
        return _parents_by_proc()
    return _parents_by_ps()


def _parents_by_proc() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):  # noqa: PTH208 - a thousand Path objects per look would be for nothing
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{entry}/stat").read_text(errors="replace")
                # The command's name stands in brackets and may hold anything, brackets and blanks too.
                yield int(entry), int(stat.rpartition(")")[2].split()[1])


def _parents_by_ps() -> Iterator[tuple[int, int]]:
    listing = subprocess.run(["/bin/ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        pid, parent = line.split()
        yield int(pid), int(parent)


def _adopt_orphans() -> None:
    """Makes ours what a killed server had forked: that we end then means that all of it has (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _spawn(folder: Path, account: str, command: list[str]) -> int:
    uid, gid = (int(number) for number in account.split(":"))
    changes = uid != os.geteuid()
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=uid if changes else None,
            group=gid if changes else None,
            extra_groups=[] if changes else None,
        ).pid


def _reap(server: int) -> int:
    """Waits for the server and for all that it left to us; the server's exit code."""
    code = 1
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code
        if pid == server:
            code = os.waitstatus_to_exitcode(status)


def _end_with_holder(server: int, farewell: signal.Signals, let_go: threading.Event) -> None:
    while os.read(STDIN, 1):  # not sys.stdin, whose lock Python wants as it exits
        pass
    let_go.set()
    send(descendants(os.getpid()), signal.SIGCONT)  # a paused process would not hear the farewell
    send([server], farewell)
    wait = threading.Event().wait
    wait(GRACE_SECONDS)
    while True:  # until _reap has nothing left and the process ends under us
        send(descendants(os.getpid()), signal.SIGKILL)
        wait(KILL_AGAIN_SECONDS)


def main(arguments: list[str]) -> int:
    """Runs the command to its end and returns its exit code, 128 + n for signal n."""
    folder, account, farewell, *command = arguments
    _adopt_orphans()
    server = _spawn(Path(folder), account, command)
    print(server, flush=True)
    let_go = threading.Event()
    number = signal.Signals(int(farewell))
    threading.Thread(target=_end_with_holder, args=(server, number, let_go), daemon=True).start()
    code = _reap(server)
    if let_go.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
