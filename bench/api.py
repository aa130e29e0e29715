"""How fast the HTTP interface answers: lists and details with 1,000,000 runs in the database, and triggers.

make bench ARGS="--only api"

One client asks one question after the other of a real `ksana serve` (SQLite), over one connection. A trigger is measured from the
request to the arrival of the call at the target, with two commits between them.
"""

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx2

from bench.databases import FILE
from bench.filling import fill_history
from bench.options import Options
from bench.report import Line, at_most
from bench.serving import Called, serving, target
from bench.spread import Spread, percentile

ANSWER_MS = 50.0
JOBS = 100
WARM_UP = 10
PATIENCE = 60.0
SEED = 20_260_131
PAUSE_SECONDS = 0.017
"""Between two triggers: no multiple of how often anybody looks."""
RUNS = "/api/v1/runs"
TRIGGER = "trigger to call"
Asked = Callable[[random.Random, int], str]


def _deep(chance: random.Random, runs: int) -> int:
    """The number of a run somewhere in the middle of history."""
    return chance.randint(runs // 4, 3 * runs // 4)


QUESTIONS: Mapping[str, Asked] = {
    "list of all": lambda _, __: RUNS,
    "list of all, page 10": lambda _, __: f"{RUNS}?page=10",
    "list of all, deep by cursor": lambda chance, runs: f"{RUNS}?before_id={_deep(chance, runs)}",
    "list of failures": lambda _, __: f"{RUNS}?status=FAILED",
    "list of failures, deep by cursor": lambda chance, runs: f"{RUNS}?status=FAILED&before_id={_deep(chance, runs)}",
    "list of a task": lambda chance, _: f"{RUNS}?task_id={chance.randint(1, JOBS)}",
    "list of a task's failures": lambda chance, _: f"{RUNS}?task_id={chance.randint(1, JOBS)}&status=FAILED",
    "list of a task, deep by cursor": lambda chance, runs: f"/api/v1/tasks/1/runs?before_id={_deep(chance, runs)}",
    "list of tasks": lambda _, __: "/api/v1/tasks",
    "a run": lambda chance, runs: f"{RUNS}/{chance.randint(1, runs)}",
}


def measure(options: Options) -> list[Line]:
    chance = random.Random(SEED)
    took: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as name, target() as called:
        folder = Path(name)
        fill_history(f"sqlite:///{folder / FILE}", options.history, JOBS)
        with serving(folder) as served, httpx2.Client(base_url=served.base, timeout=PATIENCE) as api:
            for _ in range(options.times):
                for what, question in QUESTIONS.items():
                    urls = [question(chance, options.history) for _ in range(WARM_UP + options.questions)]
                    took.setdefault(what, []).append(list(_asked(api, urls))[WARM_UP:])
                took.setdefault(TRIGGER, []).append(list(_triggered(api, called, options.questions)))
    return [line for what, times in took.items() for line in _lines(what, options.history, times)]


def _asked(api: httpx2.Client, urls: list[str]) -> Iterator[float]:
    """Milliseconds until each was answered."""
    for url in urls:
        began = time.perf_counter()
        api.get(url).raise_for_status()
        yield 1_000 * (time.perf_counter() - began)


def _triggered(api: httpx2.Client, called: Called, times: int) -> Iterator[float]:
    """Milliseconds from each request to the call."""
    name = f"trigger-{time.time_ns()}"
    task = {"name": name, "cron_expr": "0 0 1 1 *", "http_method": "POST", "target_url": f"{called.url}/run"}
    made = api.post("/api/v1/tasks", json={**task, "concurrency_policy": "PARALLEL"}).raise_for_status().json()
    called.times()
    asked = []
    for _ in range(WARM_UP + times):
        time.sleep(PAUSE_SECONDS)
        asked.append(time.time())
        api.post(f"/api/v1/tasks/{made['id']}/trigger").raise_for_status()
        called.wait_for(len(asked), PATIENCE)
    for began, at in list(zip(asked, called.times(), strict=True))[WARM_UP:]:
        yield 1_000 * (at - began)


def _lines(what: str, runs: int, times: list[list[float]]) -> list[Line]:
    halves, most = (Spread.of(percentile(each, part) for each in times) for part in (0.5, 0.99))
    name, budget = f"{what}, {runs:,} runs", None if what == TRIGGER else at_most(ANSWER_MS)
    return [Line.of(f"{name}: p50", halves, "ms"), Line.of(f"{name}: p99", most, "ms", budget)]
