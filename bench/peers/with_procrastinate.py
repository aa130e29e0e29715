"""Procrastinate on PostgreSQL: HTTP calls as jobs, by one worker. Needs procrastinate and aiohttp."""

import asyncio
import sys
import time

import aiohttp
import procrastinate

from bench.peers.telling import BODY, DATABASE, PATIENCE, TARGET, numbers, tell, worker

AT_ONCE = 32
TOGETHER = 500
DONE = "SELECT count(*) AS done FROM procrastinate_jobs WHERE status = 'succeeded'"
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=DATABASE, min_size=4, max_size=20))
sessions: list[aiohttp.ClientSession] = []


@app.task(name="post")
async def post() -> None:
    async with sessions[0].post(TARGET, json=BODY) as answer:
        await answer.read()


async def work() -> None:
    """Until told to stop."""
    async with aiohttp.ClientSession() as session, app.open_async():
        sessions.append(session)
        await app.run_worker_async(concurrency=AT_ONCE, wait=True)


async def runs(count: int) -> None:
    async with app.open_async():
        await post.defer_async()
        await _done(1)
        began = time.perf_counter()
        for first in range(0, count, TOGETHER):
            await post.batch_defer_async(*[{} for _ in range(min(TOGETHER, count - first))])
        await _done(count + 1)
        tell(count, time.perf_counter() - began)


async def _done(jobs: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while (await app.connector.execute_query_one_async(DONE))["done"] < jobs:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not done in {PATIENCE:.0f} s")
        await asyncio.sleep(0.02)


async def prepare() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


if __name__ == "__main__":
    if sys.argv[1] == "work":
        asyncio.run(work())
    else:
        asyncio.run(prepare())
        with worker("bench.peers.with_procrastinate"):
            asyncio.run(runs(*numbers()))
