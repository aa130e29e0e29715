"""A plan of 500 tenants and 5 stages, 20 at a time, and `kill -9` in the middle. What the stages did is told by their target alone,
which is also printed as JSON.

make bench ARGS="--only plans"
"""

import itertools
import json
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2

from bench.report import Line
from bench.serving import Served, serve

TENANTS, STAGES, MOST = 500, 5, 20
WORKERS = 32
"""More than may be under way, so that it is the plan that limits them."""
CALL_SECONDS = 0.02
MOST_SECONDS = 300
ENDED = {"COMPLETED", "FAILED", "CANCELLED"}
PLAN = "/api/v1/plans/bench"


@dataclass
class Log:
    """Every call at its beginning and at its end, in order, and each kill."""

    lines: list[tuple[str, int, str, str]] = field(default_factory=list)
    """What (began, ended or killed), the number of the call, the tenant, the stage."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def add(self, what: str, number: int = 0, tenant: str = "", stage: str = "") -> None:
        with self.lock:
            self.lines.append((what, number, tenant, stage))

    def began(self) -> int:
        with self.lock:
            return sum(what == "began" for what, *_ in self.lines)


class Witness(BaseHTTPRequestHandler):
    """Writes down each call, at its beginning and at its end."""

    log: Log

    def do_GET(self) -> None:
        _, tenant, stage = self.path.split("/")
        number = next(self.log.numbers)
        self.log.add("began", number, tenant, stage)
        time.sleep(CALL_SECONDS)
        self.log.add("ended", number, tenant, stage)
        with suppress(ConnectionError):  # who asked was killed
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        """Says nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@dataclass
class Seen:
    """What the target saw."""

    calls: int
    stages: int
    """Different ones."""
    most_at_once: int
    two_at_once_of_a_tenant: int
    out_of_order: int
    again_though_completed: int
    again_in_flight: int
    more_than_twice: int
    status: str
    completed: int
    seconds: float


def measure() -> list[Line]:
    log = Log()
    target = Server(("127.0.0.1", 0), type("Handler", (Witness,), {"log": log}))
    threading.Thread(target=target.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
            seen = _measure(Path(folder), target.server_port, log)
    finally:
        target.shutdown()
        target.server_close()
    print(json.dumps(asdict(seen), indent=2))
    return _lines(seen)


def _measure(folder: Path, port: int, log: Log) -> Seen:
    tenants = [f"t-{number:03d}" for number in range(TENANTS)]
    url = f"http://127.0.0.1:{port}/{{{{ params.tenantId }}}}/"
    plan = {
        "planId": "bench",
        "name": "bench",
        "stages": [{"name": f"s{n}", "type": "http", "config": {"url": f"{url}s{n}"}} for n in range(STAGES)],
        "tenants": tenants,
        "maxConcurrency": MOST,
        "autoStart": True,
    }
    with patch.dict(os.environ, {"WORKERS": str(WORKERS)}):
        served = serve(folder)
        began = time.monotonic()
        httpx2.post(f"{served.base}/api/v1/plans", json=plan, timeout=60).raise_for_status()
        deadline = began + MOST_SECONDS
        while log.began() < TENANTS * STAGES // 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        completed = _completed(served)
        served.end(signal.SIGKILL)
        log.add("killed")
        served = serve(folder)
    while (found := _plan(served))["status"] not in ENDED and time.monotonic() < deadline:
        time.sleep(0.1)
    seconds = time.monotonic() - began
    served.end(signal.SIGTERM)
    return _seen(log, completed, found, seconds)


def _seen(log: Log, completed: set[tuple[str, str]], plan: dict[str, Any], seconds: float) -> Seen:
    times: Counter[tuple[str, str]] = Counter()
    under_way: dict[int, str] = {}
    last: dict[str, str] = {}
    most = two = order = again = 0
    killed = False
    for what, number, tenant, stage in log.lines:
        if what == "killed":  # what the dead process left open is over
            killed = True
            under_way.clear()
        elif what == "ended":
            under_way.pop(number, None)
        else:
            two += tenant in under_way.values()
            order += stage < last.get(tenant, "")
            again += killed and (tenant, stage) in completed
            last[tenant] = stage
            under_way[number] = tenant
            most = max(most, len(under_way))
            times[tenant, stage] += 1
    return Seen(
        calls=times.total(),
        stages=len(times),
        most_at_once=most,
        two_at_once_of_a_tenant=two,
        out_of_order=order,
        again_though_completed=again,
        again_in_flight=sum(count == 2 for call, count in times.items() if call not in completed),
        more_than_twice=sum(count > 2 for count in times.values()),
        status=str(plan["status"]),
        completed=int(plan["tasks"]["completed"]),
        seconds=round(seconds, 1),
    )


def _lines(seen: Seen) -> list[Line]:
    name = f"a plan of {TENANTS} tenants and {STAGES} stages, kill -9"
    done = seen.status == "COMPLETED" and seen.completed == TENANTS
    return [
        Line(name, f"{seen.status}, {seen.completed} tenants, {seen.seconds:.0f} s", "COMPLETED, all", done),
        Line("stages that ran", f"{seen.stages:,}", f"{TENANTS * STAGES:,}", seen.stages == TENANTS * STAGES),
        Line("tenants at once, at the most", str(seen.most_at_once), f"<= {MOST}", seen.most_at_once <= MOST),
        Line(
            "calls of a tenant beside another, or out of order",
            f"{seen.two_at_once_of_a_tenant}, {seen.out_of_order}",
            "0, 0",
            seen.two_at_once_of_a_tenant == seen.out_of_order == 0,
        ),
        Line(
            "completed stages done again; more than twice",
            f"{seen.again_though_completed}, {seen.more_than_twice}",
            "0, 0",
            seen.again_though_completed == seen.more_than_twice == 0,
        ),
        Line("stages in flight done again", str(seen.again_in_flight), f"<= {MOST}", seen.again_in_flight <= MOST),
    ]


def _completed(served: Served) -> set[tuple[str, str]]:
    """The stages that are said to be complete."""
    found: set[tuple[str, str]] = set()
    for page in itertools.count(1):
        query = {"page": page, "size": 100}
        body = httpx2.get(f"{served.base}{PLAN}/tasks", params=query, timeout=60).json()
        for task in body["items"]:
            found |= {(task["tenantId"], stage) for stage in task["stageNames"][: task["completedStages"]]}
        if page * body["size"] >= body["total"]:
            break
    return found


def _plan(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{served.base}{PLAN}", timeout=60).json()
    return found
