"""A run of 1,000 nodes, and `kill -9` ten times at random moments. What the nodes did is told by their target alone.

make bench ARGS="--only kills"
"""

import random
import signal
import tempfile
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2

from bench.report import Line
from bench.serving import Served, serve

LAYERS, WIDTH, KILLS = 40, 25, 10
SEED = 20_260_131
MOST_SECONDS = 300


class Witness(BaseHTTPRequestHandler):
    """Writes down each call, at its beginning and at its end."""

    log: list[tuple[str, str]]
    lock: threading.Lock

    def do_GET(self) -> None:
        node = self.path.lstrip("/")
        with self.lock:
            self.log.append(("began", node))
        time.sleep(0.02)
        with self.lock:
            self.log.append(("ended", node))
        with suppress(ConnectionError):  # who asked was killed
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        """Says nothing."""


def measure() -> list[Line]:
    log: list[tuple[str, str]] = []
    handler = type("Handler", (Witness,), {"log": log, "lock": threading.Lock()})
    target = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=target.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
            return _measure(Path(folder), target.server_port, log)
    finally:
        target.shutdown()
        target.server_close()


def graph(choose: random.Random) -> dict[str, list[str]]:
    nodes: dict[str, list[str]] = {}
    for layer in range(LAYERS):
        for place in range(WIDTH):
            before = [f"l{layer - 1}-{each}" for each in choose.sample(range(WIDTH), 3)] if layer else []
            nodes[f"l{layer}-{place}"] = before
    return nodes


def _measure(folder: Path, port: int, log: list[tuple[str, str]]) -> list[Line]:
    choose = random.Random(SEED)
    nodes = graph(choose)
    document = [
        {"id": key, "type": "http", "cfg": {"url": f"http://127.0.0.1:{port}/{key}"}, "dependsOn": before}
        for key, before in nodes.items()
    ]
    served = serve(folder)
    _post(served, "/api/v1/workflows", {"workflowId": "kills", "name": "kills", "dag": {"nodes": document}})
    _post(served, "/api/v1/workflows/kills:start", {"runId": "run"})
    seen: list[tuple[int, set[str]]] = []
    """At each kill: how many lines the log had, and what had succeeded by then."""
    deadline = time.monotonic() + MOST_SECONDS
    while len(seen) < KILLS and _status(served) not in {"SUCCESS", "FAILED"} and time.monotonic() < deadline:
        time.sleep(choose.uniform(0.05, 0.6))
        done = {node for node, state in _nodes(served).items() if state == "SUCCESS"}
        seen.append((len(log), done))
        served.end(signal.SIGKILL)
        served = serve(folder)
    while (status := _status(served)) not in {"SUCCESS", "FAILED"} and time.monotonic() < deadline:
        time.sleep(0.1)
    states = _nodes(served)
    served.end(signal.SIGTERM)
    again = {node for place, done in seen for what, node in log[place:] if what == "began" and node in done}
    out_of_order = _out_of_order(nodes, log)
    return [
        Line(
            f"{len(nodes):,} nodes, kill -9",
            f"{len(seen)} times; the run ended {status}",
            "SUCCESS",
            status == "SUCCESS",
        ),
        Line(
            "nodes that have not succeeded",
            str(sum(each != "SUCCESS" for each in states.values())),
            "0",
            all(each == "SUCCESS" for each in states.values()),
        ),
        Line("nodes done again after they had succeeded", str(len(again)), "0", not again),
        Line("nodes begun before what they depend on had ended", str(out_of_order), "0", out_of_order == 0),
        Line("calls in all", str(sum(what == "began" for what, _ in log)), "", None),
    ]


def _out_of_order(nodes: dict[str, list[str]], log: list[tuple[str, str]]) -> int:
    ended: set[str] = set()
    wrong = 0
    for what, node in log:
        if what == "ended":
            ended.add(node)
        else:
            wrong += any(before not in ended for before in nodes[node])
    return wrong


def _post(served: Served, path: str, body: dict[str, Any]) -> None:
    httpx2.post(served.base + path, json=body, timeout=60).raise_for_status()


def _status(served: Served) -> str:
    return str(httpx2.get(f"{served.base}/api/v1/runs?workflowId=kills", timeout=60).json()["items"][0]["status"])


def _nodes(served: Served) -> dict[str, str]:
    rows = httpx2.get(f"{served.base}/api/v1/runs/run/nodes", timeout=60).json()
    return {row["nodeId"]: row["status"] for row in rows}
