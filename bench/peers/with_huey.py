"""Huey on SQLite, every commit on the disk: HTTP calls as tasks, and chains of tasks as pipelines. Needs huey and requests."""

import sys
import threading
import time

import requests
from huey import SqliteHuey

from bench.peers.telling import BODY, FILE, TARGET, numbers, often, tell, wait_until, worker

THREADS = 16
PATIENCE = 600
huey = SqliteHuey("bench", filename=FILE, fsync=True, results=True, store_none=True)
own = threading.local()


@huey.task()
def post() -> int:
    if not hasattr(own, "session"):
        own.session = requests.Session()
    return int(own.session.post(TARGET, json=BODY).status_code)


@huey.task()
def nothing(*_: object) -> int:
    return 1


def work() -> None:
    """Until told to stop."""
    huey.create_consumer(workers=THREADS, worker_type="thread", initial_delay=0.02, max_delay=0.1).run()


def runs(count: int) -> None:
    post()(blocking=True, timeout=PATIENCE)
    began = time.perf_counter()
    for _ in range(count):
        post()
    wait_until(lambda: huey.result_count() >= count)
    tell(count, time.perf_counter() - began)


def chains(count: int, length: int) -> None:
    times = often(count * length)
    for _ in range(times):
        _chains(count, length)
    began = time.perf_counter()
    for _ in range(times):
        _chains(count, length)
    tell(times * count * length, time.perf_counter() - began)


def _chains(count: int, length: int) -> None:
    ends = []
    for _ in range(count):
        pipeline = nothing.s()
        for _ in range(length - 1):
            pipeline = pipeline.then(nothing)
        ends.append(huey.enqueue(pipeline))
    for end in ends:
        end.get(blocking=True, timeout=PATIENCE)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work()
    else:
        with worker("bench.peers.with_huey"):
            done = runs if sys.argv[1] == "runs" else chains
            done(*numbers())
