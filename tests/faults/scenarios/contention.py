"""PostgreSQL that others crowd: no connection is left, and locks are taken the wrong way round."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import httpx2
import psycopg
from sqlalchemy import make_url

from tests.faults.arena import Arena
from tests.faults.checker import check
from tests.faults.history import History, Verdict
from tests.faults.matching import Limits
from tests.faults.scenarios import scenario
from tests.faults.work import begun, long_ones, pulse, soon

ROLE = "crowded"
ROOMY, NARROW = 60, 10
"""Connections that the role of the instances may have: two instances keep four each, and would have more to read."""
PHASE_SECONDS = 25.0
READERS = 16
HELD_SECONDS = 0.05


@scenario("F31", "PostgreSQL: no connection left, then deadlocks", stores=("postgresql",), gate=False)
def crowded(arena: Arena) -> tuple[History, Verdict]:
    """Whoever cannot get a connection tries again; heartbeats have their own, so that nobody's work is taken."""
    _make_role(arena)
    arena.instances.start(2)
    at = soon(4)
    work = long_ones(arena, "work", 10, at, 2 * PHASE_SECONDS)
    arena.create(*work, *pulse(arena, 8, at + 2 * PHASE_SECONDS + 5))
    begun(arena, work)
    answers: dict[int, int] = {}
    with arena.bands.during("database", "crowded"):
        refused = _crowd(arena, answers)
    with arena.bands.during("database", "deadlocks"):
        locked = _deadlock(arena)
    time.sleep(max(0.0, at + 2 * PHASE_SECONDS + 6 - time.time()))
    arena.settle()
    history = arena.history()
    verdict = check(history, Limits(idle=5.0))
    rescues = [row.execution for row in history.dump.attempts if row.status == "LOST"]
    dead = [row.name for row in history.dump.instances if row.status == "DEAD"]
    deadlocks = arena.database.reader.query("SELECT sum(deadlocks) AS n FROM pg_stat_database")[0].n
    verdict.figures |= {
        "refused_connections": refused,
        "answers": answers,
        "wrong_way_locks": locked,
        "deadlocks": int(deadlocks),
        "false_rescues": len(rescues) + len(dead),
    }
    verdict.require(not rescues and not dead, f"false rescues: {rescues[:5]}, {dead}")
    verdict.require(refused, "no connection was refused: the scenario is void")
    verdict.require(locked, "nobody took a lock: the scenario is void")
    verdict.require(set(answers) <= {200, 503}, f"questions were answered with {answers}")
    return history, verdict


def _make_role(arena: Arena) -> None:
    """The instances are no superusers, for whom no limit counts."""
    with _superuser(arena) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN CONNECTION LIMIT {ROOMY}")
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {ROLE}")
        connection.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {ROLE}")
    arena.instances.env["KSANA_DATABASE_URL"] = _as_role(arena)


def _as_role(arena: Arena) -> str:
    return make_url(arena.database.url).set(username=ROLE).render_as_string(hide_password=False)


@contextmanager
def _superuser(arena: Arena) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    with psycopg.connect(arena.database.url, autocommit=True) as connection:
        yield connection


def _crowd(arena: Arena, answers: dict[int, int]) -> int:
    """Others take all that is left of the connections, while many ask the instances at once; how many were refused one."""
    end, refused = time.monotonic() + PHASE_SECONDS, 0
    with _superuser(arena) as connection:
        connection.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT {NARROW}")
    with ExitStack() as stack:
        asking = stack.enter_context(ThreadPoolExecutor(READERS))
        asked = [asking.submit(_ask, arena.instances.all[n % 2].base, end) for n in range(READERS)]
        while time.monotonic() < end:
            try:
                stack.enter_context(psycopg.connect(_as_role(arena)))
            except psycopg.OperationalError:
                refused += 1
                time.sleep(0.2)
        for each in asked:
            for status in each.result():
                answers[status] = answers.get(status, 0) + 1
    with _superuser(arena) as connection:
        connection.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT {ROOMY}")
    return refused


def _ask(base: str, end: float) -> list[int]:
    """Questions one after the other; what each was answered with, 0 if nothing came."""
    found = []
    while time.monotonic() < end:
        try:
            found.append(httpx2.get(f"{base}/api/v1/tasks", params={"page_size": 5}, timeout=30).status_code)
        except httpx2.HTTPError:
            found.append(0)
        time.sleep(0.2)
    return found


def _deadlock(arena: Arena) -> int:
    """Takes executions before schedules and jobs, again and again: the other way round than Ksana does. How often it did."""
    ended = threading.Event()
    counts: list[int] = []
    threads = [threading.Thread(target=_lock_wrongly, args=(arena, ended, counts)) for _ in range(2)]
    for each in threads:
        each.start()
    time.sleep(PHASE_SECONDS)
    ended.set()
    for each in threads:
        each.join()
    return sum(counts)


def _lock_wrongly(arena: Arena, ended: threading.Event, counts: list[int]) -> None:
    done = 0
    with psycopg.connect(arena.database.url) as connection:
        while not ended.wait(HELD_SECONDS):
            with suppress(psycopg.errors.DeadlockDetected):
                connection.execute("SELECT id FROM executions WHERE ended_at IS NULL ORDER BY id DESC FOR UPDATE")
                ended.wait(HELD_SECONDS)
                connection.execute("SELECT id FROM jobs ORDER BY id DESC FOR UPDATE")
                connection.execute("SELECT id FROM schedules ORDER BY id DESC FOR UPDATE")
                done += 1
            connection.rollback()
    counts.append(done)
