"""Until a run has ended."""

import time

from ksana.cli.client.server import Answer, Server
from ksana.cli.client.shapes import print_run
from ksana.cli.ending import FAILED, tell
from ksana.domain.states import RUN_TERMINAL

_SOON, _LATER = 0.1, 1.0
"""Seconds between two looks: the first and the longest."""
_SUCCEEDED = "SUCCESS"


def wait_for(server: Server, run_id: str) -> int:
    """Tells the run when it has ended. 0 if it succeeded."""
    tell(f"run {run_id} began; waiting until it has ended")
    pause = _SOON
    while True:
        answer = server.ask("runs show", {"run": run_id})
        ended = _end(answer)
        if ended is not None:
            return _told(server, answer, run_id, ended)
        time.sleep(pause)
        pause = min(pause * 1.5, _LATER)


def _end(answer: Answer) -> str | None:
    """Under which name it has ended; None while it has not."""
    status = answer.part("status", str)
    if "final_status" in answer.document:  # a job's
        ended: str | None = answer.document["final_status"]
        return ended
    return status if status in RUN_TERMINAL else None


def _told(server: Server, answer: Answer, run_id: str, ended: str) -> int:
    if server.as_json:
        server.print_raw(answer)
    else:
        print_run(answer.document)
    if ended == _SUCCEEDED:
        return 0
    tell(f"run {run_id} ended {ended}")
    return FAILED
