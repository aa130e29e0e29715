"""From a trigger at one instance to the start of the call by another: PostgreSQL, which tells, and MariaDB, which is looked at.

make bench ARGS="--only wakeups"
"""

import signal
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
from tests.servers.base import MissingError, Server
from tests.servers.mysql import MySqlServer
from tests.servers.postgresql import PostgresServer

from bench.report import Line
from bench.serving import serve

TIMES = 200
WARM_UP = 5
"""Triggers that are not counted: the first call of a worker connects, and loads what it needs."""
BUDGETS_MS = {"PostgreSQL": 50.0, "MariaDB": 250.0}
SERVERS: dict[str, type[Server]] = {"PostgreSQL": PostgresServer, "MariaDB": MySqlServer}
PAUSE_SECONDS = 0.137
"""Between two triggers: no multiple of how often anybody looks."""
PATIENCE = 30.0


class Target(BaseHTTPRequestHandler):
    """Says when it was called."""

    called: threading.Event
    at: list[float]

    def do_POST(self) -> None:
        self.at.append(time.monotonic())
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
        self.called.set()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        """Says nothing."""


def measure() -> list[Line]:
    return [line for name, kind in SERVERS.items() for line in _measure(name, kind)]


def _measure(name: str, kind: type[Server]) -> list[Line]:
    handler = type("Handler", (Target,), {"called": threading.Event(), "at": []})
    with ExitStack() as ending:
        try:
            database = ending.enter_context(kind())
        except MissingError as error:
            return [Line(f"trigger to start elsewhere, {name}", f"not measured: {error}", "", None)]
        target = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        ending.callback(target.server_close)
        threading.Thread(target=target.serve_forever, daemon=True).start()
        ending.callback(target.shutdown)
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="ksana-bench-")))
        shared = ("--database-url", database.create_database())
        front = serve(folder, *shared, "--roles", "api,scheduler")
        ending.callback(front.end, signal.SIGTERM)
        ending.callback(serve(folder, *shared, "--roles", "worker").end, signal.SIGTERM)
        took = sorted(_latencies(front.base, target.server_port, handler))
    worst = took[int(len(took) * 0.99)]
    budget = BUDGETS_MS[name]
    figure = f"median {took[len(took) // 2]:.1f} ms, p99 {worst:.1f} ms of {len(took)}"
    return [Line(f"trigger to start elsewhere, {name}", figure, f"p99 ≤ {budget:g} ms", worst <= budget)]


def _latencies(base: str, port: int, handler: Any) -> list[float]:
    task = {"name": "wake", "cron_expr": "0 0 1 1 *", "http_method": "POST", "target_url": f"http://127.0.0.1:{port}/"}
    took: list[float] = []
    with httpx2.Client(base_url=base, timeout=PATIENCE) as api:
        number = (
            api.post("/api/v1/tasks", json={**task, "concurrency_policy": "PARALLEL"}).raise_for_status().json()["id"]
        )
        for number_of_try in range(WARM_UP + TIMES):
            time.sleep(PAUSE_SECONDS)
            handler.called.clear()
            api.post(f"/api/v1/tasks/{number}/trigger").raise_for_status()
            answered = time.monotonic()
            if not handler.called.wait(PATIENCE):
                raise RuntimeError("a run that was triggered did not start")
            if number_of_try >= WARM_UP:
                took.append((handler.at[-1] - answered) * 1_000)
    return took
