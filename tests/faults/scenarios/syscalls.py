"""The same kills without any help of the product: by strace, at the n-th write to a file."""

import re
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

from tests.faults import chores
from tests.faults.arena import Arena
from tests.faults.history import History, Verdict
from tests.faults.scenarios import scenario
from tests.faults.scenarios.failpoints import Killed, judged, spread, summed, unfaulted
from tests.faults.trials import ONLY, Trial, all_of, trial
from tests.servers.base import MissingError

POINTS = 40
AT_ONCE = 3
ATTACHED_SECONDS = 10.0


@scenario("F3s", "kill at writes to the file, by strace", stores=("sqlite",), gate=False)
def kill_at_system_calls(arena: Arena) -> tuple[History, Verdict]:
    """As F3; counted for each thread, as strace does."""
    if shutil.which("strace") is None:
        raise MissingError("strace", "apt-get install strace", "strace")
    wanted, first = unfaulted(arena)
    writes = _writes(arena)
    points = spread(arena, [(number, "pwrite64") for number in range(1, writes + 1)], POINTS)
    found: list[Killed] = all_of(points, partial(_killed, arena, wanted), AT_ONCE)
    history, verdict = summed(arena, first, found)
    verdict.figures["writes"] = writes
    return history, verdict


def _writes(arena: Arena) -> int:
    """How often the thread that writes most does."""
    counted = trial(arena, "counted")
    log = counted.folder / "writes"
    try:
        counted.start()
        tracing = _attach(counted, "-o", str(log), "-e", "trace=pwrite64")
        chores.do(counted)
        counted.close()
        tracing.wait(ATTACHED_SECONDS)
    finally:
        counted.close()
    threads = re.findall(r"^(\d+) +pwrite64", log.read_text(), re.MULTILINE)
    return max(threads.count(thread) for thread in set(threads))


def _killed(arena: Arena, wanted: chores.Standing, point: tuple[int, str]) -> Killed:
    number, call = point
    tried = trial(arena, f"s{number:04}")
    tracing = None
    try:
        tried.start()
        tracing = _attach(tried, "-o", "/dev/null", "-e", f"inject={call}:signal=SIGKILL:when={number}")
        return judged(tried, wanted, f"{number}:{call}")
    except AssertionError as error:
        return Killed(f"{number}:{call}", tried.deaths, [str(error)])
    finally:
        tried.close()
        if tracing is not None:
            tracing.wait(ATTACHED_SECONDS)


def _attach(tried: Trial, *options: str) -> subprocess.Popen[bytes]:
    """strace on all threads of the instance, once it holds them; it ends with the instance."""
    pid = tried.instances.all[ONLY].pid
    tracing = subprocess.Popen(["strace", "-f", "-qq", *options, "-p", str(pid)])
    deadline = time.monotonic() + ATTACHED_SECONDS
    while not _all_traced(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _all_traced(pid), "strace could not attach"
    return tracing


def _all_traced(pid: int) -> bool:
    states = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return bool(states) and all("\nTracerPid:\t0\n" not in state for state in states)
