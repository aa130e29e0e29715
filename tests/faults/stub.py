"""What shell jobs run: it writes itself into the witness's log, leaves a child in the background, and takes its time.

`python -I -S stub.py LOG SCHEDULE SECONDS`, with the variables that Ksana gives to commands. The child has left the session, and so
ends only if whoever watches over the command finds it there, too.
"""

import json
import os
import subprocess
import sys
import time

VARIABLES = {
    "run": "KSANA_RUN_ID",
    "job": "KSANA_JOB",
    "planned": "KSANA_SCHEDULED_AT",
    "attempt": "KSANA_ATTEMPT",
    "key": "KSANA_IDEMPOTENCY_KEY",
}


def write(log: str, **what: object) -> None:
    line = json.dumps({**what, "n": f"sh{os.getpid()}", "wall": time.time(), "mono": time.monotonic()}) + "\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.write(file, line.encode())
    os.close(file)


def main(log: str, schedule: str, seconds: str) -> None:
    child = subprocess.Popen(["sleep", seconds], start_new_session=True, stdin=subprocess.DEVNULL)
    told = {name: os.environ[variable] for name, variable in VARIABLES.items() if variable in os.environ}
    write(log, phase="start", kind="shell", schedule=schedule, mode="shell", pids=[os.getpid(), child.pid], **told)
    time.sleep(float(seconds) if told.get("attempt", "1") == "1" else 0)
    child.kill()
    child.wait()
    write(log, phase="end", how="answered")


if __name__ == "__main__":
    main(*sys.argv[1:])
