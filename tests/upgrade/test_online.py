"""A migration beside the work of others: on a large table, behind a long reader, by several at once, after an interruption."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from ksana.domain.errors import StoreError
from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate
from ksana.store.sql.migrations import turns
from tests.upgrade.busy import Writer, engine_of, fill, statements

MANY = 100_000
SOME = 1_000
PATIENCE = 60.0
DEADLOCK_SECONDS = 2.0
"""PostgreSQL looks once, after half of that, whether those who wait do so for each other; then whoever came last loses."""
LOCKED = text(
    "SELECT COUNT(*) FROM pg_locks JOIN pg_database AS d ON d.oid = database"
    " WHERE d.datname = current_database() AND locktype = 'advisory' AND granted"
)
BACK_ENDS = [
    pytest.param("postgres_url", id="postgresql", marks=pytest.mark.postgresql),
    pytest.param("mysql_url", id="mysql", marks=pytest.mark.mysql),
]


@pytest.fixture(params=BACK_ENDS)
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    made = engine_of(url)
    yield made
    made.dispose()


class Migration:
    """One that goes on in another thread."""

    def __init__(self, url: str) -> None:
        self.error: BaseException | None = None
        self._url = url
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        self._thread.join(PATIENCE)
        assert not self.runs
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            migrate.upgrade(self._url, StoreOptions())
        except BaseException as error:  # noqa: BLE001
            self.error = error


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def long_reader(engine: Engine, table: str = "executions") -> Iterator[Callable[[], None]]:
    """Somebody with an open transaction who has read the table; call it to end."""
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        connection.execute(text(f"SELECT COUNT(*) FROM {table}"))
        yield connection.rollback


def count_tries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one with each try of a step to get its table."""
    tries: list[str] = []
    wait_at_most = turns._wait_at_most

    def counted(connection: Connection, limit: str) -> None:
        tries.append(limit)
        wait_at_most(connection, limit)

    monkeypatch.setattr(turns, "_wait_at_most", counted)
    return tries


def has_tried(tries: list[str], times: int) -> bool:
    return len(tries) >= times


def index_of(seen: dict[str, int]) -> str:
    return next(each for each in seen if "ix_executions_share" in each and not each.startswith("DROP"))


def test_others_write_while_a_large_table_is_migrated(url: str, engine: Engine) -> None:
    fill(url, MANY)
    with Writer(url) as writer, statements(writer) as seen:
        until(lambda: writer.written > 0)
        migrate.upgrade(url, StoreOptions())
    assert writer.errors == []  # none has waited for longer than an instance does
    index = index_of(seen)
    assert seen[index] > 0, "nobody wrote while the index was made"
    if engine.dialect.name == "postgresql":
        assert index.startswith("CREATE INDEX CONCURRENTLY ix_executions_share")
    else:
        assert index.endswith(", ALGORITHM=INPLACE, LOCK=NONE")
        assert [each.split(", ")[-1] for each in seen if "ADD COLUMN" in each] == ["ALGORITHM=INSTANT"] * 3
    with engine.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM executions")).scalar_one() == MANY + writer.written
        found = connection.execute(text("SELECT at FROM marks WHERE name = 'schema_serves_from'")).scalar_one()
        assert found == int(migrate.SERVES_FROM)
    assert migrate.status(url, StoreOptions()).state == "current"


def test_behind_a_long_reader_others_go_on_and_so_does_it_when_that_ends(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 0.2)
    tries = count_tries(monkeypatch)
    fill(url, SOME)
    with long_reader(engine) as end:
        migration = Migration(url)
        for known in (3, 6):
            until(partial(has_tried, tries, known))
            with engine.begin() as connection:  # an error, if it waits for longer than an instance does
                if connection.dialect.name != "postgresql":
                    connection.execute(text("SET SESSION lock_wait_timeout = 2"))
                assert connection.execute(text("SELECT COUNT(*) FROM executions")).scalar_one() == SOME
                connection.execute(text("UPDATE executions SET ready_at = 5 WHERE id = 1"))
        assert migration.runs
        end()
        migration.end()
    assert migrate.status(url, StoreOptions()).state == "current"


def test_who_never_gets_a_table_is_told_who_has_it_and_goes_on_another_time(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(turns, "TRIES", 2)
    fill(url, SOME)
    with (
        long_reader(engine),
        pytest.raises(StoreError, match=r"table executions .* processes \d+ .*run ksana migrate again"),
    ):
        migrate.upgrade(url, StoreOptions())
    assert migrate.status(url, StoreOptions()).state == "older"
    migrate.upgrade(url, StoreOptions())
    assert migrate.status(url, StoreOptions()).state == "current"


def test_several_that_migrate_a_filled_table_at_once_do_not_wait_for_each_other_for_ever(
    url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL, an index that is made concurrently waits for every transaction: also for who waits to migrate."""
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 0.2)
    fill(url, SOME)
    with long_reader(engine) as end:
        migrations = [Migration(url) for _ in range(4)]
        time.sleep(DEADLOCK_SECONDS)
        end()
    for each in migrations:
        each.end()
    assert migrate.status(url, StoreOptions()).state == "current"


@pytest.mark.mysql
def test_a_table_that_cannot_be_changed_at_once_is_changed_as_the_server_can(mysql_url: str) -> None:
    fill(mysql_url, SOME)
    engine = engine_of(mysql_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE executions ROW_FORMAT=COMPRESSED"))
    engine.dispose()
    with statements() as seen:
        migrate.upgrade(mysql_url, StoreOptions())
    assert [each for each in seen if "ADD COLUMN share" in each and "ALGORITHM" not in each]
    assert migrate.status(mysql_url, StoreOptions()).state == "current"


@pytest.mark.postgresql
def test_an_index_waits_for_who_reads_elsewhere_and_nobody_waits_for_it(postgres_url: str) -> None:
    fill(postgres_url, SOME)
    engine = engine_of(postgres_url)
    with statements() as seen, long_reader(engine, "jobs") as end:
        migration = Migration(postgres_url)
        until(lambda: any("CONCURRENTLY" in each for each in seen))
        with engine.begin() as connection:
            connection.execute(text("UPDATE executions SET ready_at = 5"))
            assert connection.execute(LOCKED).scalar_one() == 1  # nobody else begins to migrate meanwhile
        assert migration.runs
        end()
        migration.end()
    engine.dispose()


@pytest.mark.postgresql
def test_what_is_left_of_an_interrupted_index_is_replaced(postgres_url: str) -> None:
    fill(postgres_url, SOME)
    engine = engine_of(postgres_url)
    beside = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    beside.execute(text("ALTER TABLE executions ADD COLUMN share VARCHAR(80) NOT NULL DEFAULT '-'"))
    beside.execute(text("SET lock_timeout = '50ms'"))
    with engine.connect() as other:
        other.execute(text("UPDATE executions SET ready_at = 5 WHERE id = 1"))
        with pytest.raises(OperationalError, match="lock timeout"):
            beside.execute(text("CREATE INDEX CONCURRENTLY ix_executions_share ON executions (share)"))
    valid = text(
        "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index"
        " WHERE indexrelid = CAST('ix_executions_share' AS regclass)"
    )
    assert not beside.execute(valid).one()[0]
    migrate.upgrade(postgres_url, StoreOptions())
    is_valid, definition = beside.execute(valid).one()
    assert is_valid
    assert "(worker_queue, share, ready_at, id) WHERE (ready_at IS NOT NULL)" in definition
    beside.close()
    engine.dispose()
