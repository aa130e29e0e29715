"""APScheduler 3 with its jobs on SQLite: HTTP calls as jobs that are due at once. It keeps no history; the rows that say how a call
went are written here, one commit each, as somebody would who needs them. Needs apscheduler, sqlalchemy and aiohttp."""

import asyncio
import sqlite3
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bench.peers.telling import BODY, DATABASE, FILE, PATIENCE, TARGET, numbers, tell

AT_ONCE = 64
ADDED_TOGETHER = 20
RULES = {"misfire_grace_time": None, "coalesce": False, "max_instances": 100}


@dataclass
class Shared:
    session: aiohttp.ClientSession
    history: sqlite3.Connection
    left: int
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    done: asyncio.Event = field(default_factory=asyncio.Event)


shared: list[Shared] = []


async def post(number: int) -> None:
    us = shared[0]
    async with us.room:
        us.history.execute("INSERT INTO runs (id, status) VALUES (?, 'running')", (number,))
        us.history.commit()
        async with us.session.post(TARGET, json=BODY) as answer:
            await answer.read()
        us.history.execute("UPDATE runs SET status = 'success', code = ? WHERE id = ?", (answer.status, number))
        us.history.commit()
    us.left -= 1
    if not us.left:
        us.done.set()


def history() -> sqlite3.Connection:
    database = sqlite3.connect(f"{FILE}.history")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, status TEXT, code INTEGER)")
    return database


async def runs(count: int) -> None:
    scheduler: Any = AsyncIOScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=DATABASE)},
        executors={"default": AsyncIOExecutor()},
        job_defaults=RULES,
        timezone="UTC",
    )
    async with aiohttp.ClientSession() as session:
        shared.append(Shared(session, history(), count))
        scheduler.start()
        began = time.perf_counter()
        for number in range(count):
            scheduler.add_job(post, args=[number], id=str(number))
            if number % ADDED_TOGETHER == 0:
                await asyncio.sleep(0)
        await asyncio.wait_for(shared[0].done.wait(), PATIENCE)
        tell(count, time.perf_counter() - began)
        scheduler.shutdown(wait=False)


if __name__ == "__main__":
    asyncio.run(runs(*numbers()))
