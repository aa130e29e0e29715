"""What is true of SQLite alone: one process, one file, and what happens when it is full, locked or not to be written."""

import asyncio
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from ksana.domain.errors import KsanaError, StoreBusy, StoreError, StoreFull, StoreInUse
from ksana.store.sql import migrate, open_store
from ksana.store.sql.driven import Driven
from ksana.store.sql.rows import Statement, columns, insert_rows
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.clock import FakeClock
from tests.contract.store.conftest import OPTIONS
from tests.contract.store.counting import counting
from tests.contract.store.world import World

_SAY = insert_rows("events", columns(type="text", at="int", subject="text"))
_BREAK = Statement("INSERT INTO no_such_table VALUES (1)")

pytestmark = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


async def test_a_second_process_is_told_who_has_the_file(url: str, store: SqlStore) -> None:
    script = (
        "import sys\n"
        "from ksana.engine.clock import SystemClock\n"
        "from ksana.store.requests import StoreOptions\n"
        "from ksana.store.sql import open_store\n"
        "open_store(sys.argv[1], options=StoreOptions(), clock=SystemClock())\n"
    )
    second = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert "StoreInUse" in second.stderr
    assert "is in use by process" in second.stderr
    with pytest.raises(StoreInUse):
        open_store(url, options=OPTIONS, clock=FakeClock())


async def test_a_closed_store_gives_the_file_free(url: str, store: SqlStore) -> None:
    await store.close()
    again = open_store(url, options=OPTIONS, clock=FakeClock())
    assert (await again.ping()).reachable
    await again.close()


async def test_commits_are_durable(store: SqlStore) -> None:
    def pragmas(tx: Tx, payloads: list[None]) -> list[tuple[str, int] | KsanaError]:
        journal = tx.connection.execute(text("PRAGMA journal_mode")).scalar_one()
        synchronous = tx.connection.execute(text("PRAGMA synchronous")).scalar_one()
        return [(journal, synchronous) for _ in payloads]

    assert await store.writer.submit(pragmas, None) == ("wal", 2)
    assert {finding.level for finding in await store.diagnose()} == {"ok"}


async def test_what_comes_by_sqlalchemy_joins_the_transaction_that_the_driver_began(store: SqlStore) -> None:
    def both(tx: Tx, payloads: list[bool]) -> list[bool | KsanaError]:
        tx.run(_SAY, [("x", 0, "straight")])
        tx.connection.execute(text("INSERT INTO events (type, at, subject) VALUES ('x', 0, 'by sqlalchemy')"))
        tx.run(_SAY, [("x", 0, "straight again")])
        if payloads[0]:
            raise ZeroDivisionError
        return list(payloads)

    with pytest.raises(ZeroDivisionError):
        await store.writer.submit(both, True)
    assert await store.events(0, 10) == []
    with counting(store) as count:
        await store.writer.submit(both, False)
    assert [each.subject for each in await store.events(0, 10)] == ["straight", "by sqlalchemy", "straight again"]
    assert count.commits == 1


async def test_a_transaction_that_fails_is_taken_back_and_the_next_one_counts(world: World, store: SqlStore) -> None:
    def broken(tx: Tx, payloads: list[None]) -> list[KsanaError | None]:
        tx.run(_SAY, [("x", 0, "never")])
        tx.run(_BREAK)
        return list(payloads)

    with pytest.raises(StoreError, match="no such table"):
        await store.writer.submit(broken, None, brief=True)
    assert await store.events(0, 10) == []
    assert (await world.job()).version == 1


async def test_a_writer_that_finds_the_file_locked_waits_its_turn(url: str, world: World) -> None:
    job = await world.job()
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(world.enqueue(job))
    # Readers are not held up by whoever writes.
    assert (await world.store.job(job.id)).id == job.id
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    assert (await waiting).job_id == job.id


async def test_a_file_that_stays_locked_is_waited_for_once_and_told_as_busy(url: str, world: World) -> None:
    store = world.store
    assert isinstance(store, SqlStore)

    def hurry(tx: Tx, payloads: list[None]) -> list[KsanaError | None]:
        tx.connection.execute(text("PRAGMA busy_timeout = 10"))
        return list(payloads)

    def nothing(_: Tx, payloads: list[None]) -> list[KsanaError | None]:
        return list(payloads)

    await store.writer.submit(hurry, None)
    began: list[str] = []
    tell = Driven._tell

    def noted(self: Driven, sql: str) -> None:
        began.append(sql)
        tell(self, sql)

    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Driven, "_tell", noted)
        with pytest.raises(StoreBusy):
            await store.writer.submit(nothing, None)
    other.close()
    assert began == ["BEGIN IMMEDIATE"]
    await world.job()


async def test_a_connection_that_is_lost_in_the_middle_is_made_anew(store: SqlStore) -> None:
    tries: list[Tx] = []

    def lost(tx: Tx, payloads: list[None]) -> list[KsanaError | None]:
        tries.append(tx)
        if len(tries) == 1:
            tx._connection.connection.dbapi_connection.close()  # type: ignore[union-attr]
        tx.run(_SAY, [("x", 0, "said")])
        return list(payloads)

    await store.writer.submit(lost, None)
    assert [each.subject for each in await store.events(0, 10)] == ["said"]


async def test_a_full_database_refuses_and_goes_on_when_there_is_room(world: World, store: SqlStore) -> None:
    job = await world.job()

    def limit(tx: Tx, payloads: list[int]) -> list[int | KsanaError]:
        pages = tx.connection.execute(text("PRAGMA page_count")).scalar_one()
        tx.connection.execute(text(f"PRAGMA max_page_count = {pages + payloads[0]}"))
        return [pages for _ in payloads]

    await store.writer.submit(limit, 40)
    made = []

    async def fill() -> None:
        for _ in range(100):
            made.append(await world.enqueue(job, input={"blob": "x" * 20_000}))  # noqa: PERF401

    with pytest.raises(StoreFull):
        await fill()
    assert sum((await store.active_counts(job.id)).values()) == len(made)
    await store.writer.submit(limit, 10_000)
    made.append(await world.enqueue(job, input={"blob": "x" * 20_000}))
    assert sum((await store.active_counts(job.id)).values()) == len(made)


def test_a_commit_that_fails_does_not_stop_the_writes_after_it(url: str, back_end: str) -> None:
    """The process may write no file beyond a size: the commit itself fails. Then it may again."""
    migrate.upgrade(url, OPTIONS)
    script = (
        "import asyncio, os, resource, signal, sys\n"
        "from datetime import datetime, UTC\n"
        "from ksana.domain.errors import StoreError\n"
        "from ksana.engine.clock import SystemClock\n"
        "from ksana.store.requests import NewExecution, NewJob, StoreOptions\n"
        "from ksana.store.sql import open_store\n"
        "from tests.contract.store.world import http_spec\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "async def main() -> None:\n"
        "    store = open_store(sys.argv[1], options=StoreOptions(), clock=SystemClock())\n"
        "    job = await store.create_job(NewJob(key='k', spec=http_spec('n')))\n"
        "    new = NewExecution(job_id=job.id, ready_at=datetime.now(UTC), input={'blob': 'x' * 50_000})\n"
        "    wal = os.stat(sys.argv[1].removeprefix('sqlite:///') + '-wal').st_size\n"
        "    limits = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 20_000, limits[1]))\n"
        "    refused = 0\n"
        "    for _ in range(3):\n"
        "        try:\n"
        "            await store.enqueue(new)\n"
        "        except StoreError:\n"
        "            refused += 1\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, limits)\n"
        "    made = [(await store.enqueue(new)).execution.id for _ in range(2)]\n"
        "    counts = await store.active_counts(job.id)\n"
        "    print(refused, len(made), sum(counts.values()))\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    run = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["3", "2", "2"], run.stderr


async def test_what_was_answered_survives_the_death_of_the_process(url: str, world: World, store: SqlStore) -> None:
    job = await world.job()
    await store.close()
    script = (
        "import asyncio, os, signal, sys\n"
        "from datetime import datetime, UTC\n"
        "from ksana.engine.clock import SystemClock\n"
        "from ksana.store.requests import NewExecution, StoreOptions\n"
        "from ksana.store.sql import open_store\n"
        "async def main() -> None:\n"
        "    store = open_store(sys.argv[1], options=StoreOptions(), clock=SystemClock())\n"
        "    new = NewExecution(job_id=int(sys.argv[2]), ready_at=datetime.now(UTC))\n"
        "    for done in asyncio.as_completed([store.enqueue(new) for _ in range(500)]):\n"
        "        print((await done).execution.id, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    run = subprocess.run([sys.executable, "-c", script, url, str(job.id)], capture_output=True, text=True, check=False)
    assert run.returncode == -9
    answered = {int(line) for line in run.stdout.split()}
    again = open_store(url, options=OPTIONS, clock=FakeClock())
    claimed = await World(again, world.clock).store.active_counts(job.id)
    assert sum(claimed.values()) == len(answered) == 500
    await again.close()


def test_files_are_for_their_owner_only(url: str, tmp_path: Path) -> None:
    migrate.upgrade(url, OPTIONS)
    locks = [path for path in tmp_path.iterdir() if path.suffix == ".lock"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in locks] == [0o600]


def test_a_folder_that_cannot_be_written_to_is_named(back_end: str, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    with pytest.raises(StoreError, match=r"cannot write to the data directory .*file"):
        migrate.upgrade(f"sqlite:///{in_the_way / 'ksana.db'}", OPTIONS)


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(back_end: str, tmp_path: Path) -> None:
    path = tmp_path / "ksana.db"
    path.write_text("this is not a database, but it is long enough to look at" * 20)
    with pytest.raises(StoreError, match=r"ksana.db cannot be used.*not a database"):
        migrate.upgrade(f"sqlite:///{path}", OPTIONS)
    assert path.read_text().startswith("this is not")
