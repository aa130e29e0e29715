"""The schema: all revisions together are the tables that the code declares, on every database."""

import threading
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

from ksana.domain.errors import SchemaMismatch, StoreError
from ksana.domain.states import ExecutionStatus
from ksana.store.sql import fresh, migrate, open_store
from ksana.store.sql import schema as declared
from ksana.store.sql.dialects import dialect_of
from ksana.store.sql.migrations import __file__ as migrations_file
from tests.clock import FakeClock
from tests.contract.store.conftest import OPTIONS
from tests.contract.store.world import World, run_sql
from tests.upgrade import busy as revisions

OFTEN = 10
"""More often than the driver waits before it prepares a statement."""


def engine_of(url: str) -> Engine:
    return dialect_of(url).writing_engine(url, OPTIONS)


def shape(engine: Engine) -> dict[str, object]:
    """Everything that the database says about its tables, in an order that does not depend on it."""
    inspector = inspect(engine)
    return {
        table: {
            "columns": [
                (c["name"], str(c["type"]), c["nullable"], str(c["default"])) for c in inspector.get_columns(table)
            ],
            "primary key": inspector.get_pk_constraint(table)["constrained_columns"],
            "unique": sorted((str(u["name"]), u["column_names"]) for u in inspector.get_unique_constraints(table)),
            "indexes": sorted(
                (
                    str(i["name"]),
                    i["column_names"],
                    i["unique"],
                    [f"{k}={v}" for k, v in sorted(i.get("dialect_options", {}).items())],
                )
                for i in inspector.get_indexes(table)
            ),
            "foreign keys": sorted(
                (str(f["constrained_columns"]), f["referred_table"]) for f in inspector.get_foreign_keys(table)
            ),
            "options": str(sorted(inspector.get_table_options(table).items())),
        }
        for table in sorted(set(inspector.get_table_names()) - {"alembic_version"})
    }


def is_declared(thing: Any, name: str, kind: str, reflected: bool, other: Any) -> bool:
    """Not so MySQL's own column for what can be claimed, and what not every database has: `shape` compares those."""
    return name not in {"ready_share", "ix_executions_share", "ix_executions_job"}


def migrated_engine(url: str) -> Engine:
    """One that went through all revisions, also where a new one would not."""
    engine = engine_of(url)
    with engine.connect() as connection:
        revisions.upgrade(connection, "head")
    return engine


def test_a_migrated_database_is_what_the_tables_declare(url: str) -> None:
    engine = migrated_engine(url)
    migrated = shape(engine)
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_declared})
        assert compare_metadata(context, declared.metadata) == []
        declared.metadata.drop_all(connection)
        declared.metadata.create_all(connection)
    assert shape(engine) == migrated
    engine.dispose()


def test_a_new_database_is_what_the_revisions_would_have_made_of_it(url: str, tmp_path: Path, back_end: str) -> None:
    migrate.upgrade(url, OPTIONS)
    new = engine_of(url)
    if back_end == "sqlite":
        migrated = migrated_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
        assert shape(new) == shape(migrated)
        assert _version(new) == _version(migrated)
        migrated.dispose()
    with new.connect() as connection:
        marked = connection.execute(text("SELECT name, at FROM marks")).one()
    # A file serves no program that names the index which it does not have.
    oldest = migrate.FILE_SERVES_FROM if back_end == "sqlite" else migrate.SERVES_FROM
    assert tuple(marked) == ("schema_serves_from", int(oldest))
    new.dispose()


def _version(engine: Engine) -> tuple[str, str]:
    """The revision, and how the table that has it was made."""
    with engine.connect() as connection:
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        made = connection.execute(text("SELECT sql FROM sqlite_master WHERE name = 'alembic_version'")).scalar_one()
    return revision, "".join(made.split())


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
def test_a_new_file_has_all_of_its_tables_or_none(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fresh.tables()
    monkeypatch.setattr(fresh, "tables", lambda: (*whole[:20], "CREATE TABLE nonsense"))
    with pytest.raises(StoreError, match="incomplete input"):
        migrate.upgrade(url, OPTIONS)
    assert migrate.status(url, OPTIONS).state == "empty"
    monkeypatch.undo()
    assert migrate.upgrade(url, OPTIONS) == (None, migrate.HEAD)


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
def test_a_file_with_somebody_elses_table_gets_ours_beside_it(url: str) -> None:
    run_sql(url, "CREATE TABLE theirs (id INTEGER)")
    assert migrate.upgrade(url, OPTIONS) == (None, migrate.HEAD)
    engine = engine_of(url)
    assert {"theirs", "jobs"} <= set(inspect(engine).get_table_names())
    engine.dispose()


def test_the_program_knows_its_newest_revision() -> None:
    assert ScriptDirectory(str(Path(migrations_file).parent)).get_current_head() == migrate.HEAD


def test_an_empty_database_is_seen_as_such_and_left_alone(url: str, back_end: str, tmp_path: Path) -> None:
    assert migrate.status(url, OPTIONS).state == "empty"
    assert back_end != "sqlite" or list(tmp_path.iterdir()) == []
    with pytest.raises(SchemaMismatch, match="ksana migrate"):
        open_store(url, options=OPTIONS, clock=FakeClock())


def test_migrating_again_changes_nothing(url: str) -> None:
    assert migrate.upgrade(url, OPTIONS) == (None, migrate.HEAD)
    assert migrate.status(url, OPTIONS).state == "current"
    assert migrate.upgrade(url, OPTIONS) == (migrate.HEAD, migrate.HEAD)


def test_a_schema_from_a_later_program_is_refused_by_name(url: str) -> None:
    migrate.upgrade(url, OPTIONS)
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.execute(text("UPDATE marks SET at = 9999 WHERE name = 'schema_serves_from'"))
    engine.dispose()
    for attempt in (lambda: migrate.upgrade(url, OPTIONS), lambda: open_store(url, options=OPTIONS, clock=FakeClock())):
        with pytest.raises(SchemaMismatch, match=r"9999.*upgrade Ksana"):
            attempt()


async def test_a_schema_of_a_later_program_that_says_so_is_worked_on(url: str) -> None:
    migrate.upgrade(url, OPTIONS)
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    assert migrate.status(url, OPTIONS).state == "ahead"
    assert migrate.upgrade(url, OPTIONS) == ("9999", "9999")
    store = open_store(url, options=OPTIONS, clock=FakeClock())
    assert (await store.ping()).reachable
    await store.close()


@pytest.mark.changes_tables
async def test_columns_that_a_later_program_adds_meanwhile_go_unnoticed(world: World, url: str) -> None:
    """PostgreSQL refuses statements that were prepared before, once."""
    for _ in range(OFTEN):
        claimed = await world.running()
    for table in ("executions", "instances", "locks", "jobs"):
        run_sql(url, f"ALTER TABLE {table} ADD COLUMN later VARCHAR(20) DEFAULT 'x' NOT NULL")
    assert await world.executions()
    assert await world.status(claimed.execution.id) is ExecutionStatus.RUNNING
    assert (await world.running()).execution.id > claimed.execution.id


def test_a_migration_that_was_killed_half_way_goes_on(url: str) -> None:
    migrate.upgrade(url, OPTIONS)
    engine = engine_of(url)
    whole = shape(engine)
    with engine.begin() as connection:
        # As MySQL leaves it when the process dies: some tables are there, the revision is not.
        connection.execute(text("DELETE FROM alembic_version"))
        connection.execute(text("DROP TABLE events"))
        connection.execute(text("DROP TABLE attempts"))
    migrate.upgrade(url, OPTIONS)
    assert shape(engine) == whole
    engine.dispose()


def test_a_migration_that_was_killed_before_its_index_goes_on(url: str) -> None:
    migrate.upgrade(url, OPTIONS)
    engine = engine_of(url)
    whole = shape(engine)
    on_table = " ON executions" if engine.dialect.name in {"mysql", "mariadb"} else ""
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
        connection.execute(text(f"DROP INDEX ix_executions_share{on_table}"))
    assert migrate.upgrade(url, OPTIONS) == ("0003", migrate.HEAD)
    assert shape(engine) == whole
    engine.dispose()


_ON = "ON executions"
_SPARSE = "WHERE job_id IS NOT NULL"
BY_JOB_FIRST = f"CREATE INDEX ix_executions_job_status {_ON} (job_id, status, planned_for, id)"
NARROWER = f"CREATE INDEX ix_executions_job_status_sparse {_ON} (job_id, status, planned_for, id) {_SPARSE}"
REORDERED = f"CREATE INDEX ix_executions_job_status_reordered {_ON} (status, job_id, planned_for, id) {_SPARSE}"
WITHOUT_STATES = f"CREATE INDEX ix_executions_job {_ON} (job_id, planned_for, id)"
DROPPED = "DROP INDEX ix_executions_job_status"


@pytest.mark.parametrize(
    ("back_end", "revision", "left"),
    [
        pytest.param("sqlite", "0005", [DROPPED, BY_JOB_FIRST, WITHOUT_STATES], id="sqlite-whole"),
        pytest.param("sqlite", "0005", [DROPPED, WITHOUT_STATES], id="sqlite-dropped"),
        pytest.param("sqlite", "0006", [DROPPED, f"{BY_JOB_FIRST} {_SPARSE}", WITHOUT_STATES], id="sqlite-sparse"),
        pytest.param("sqlite", "0006", [WITHOUT_STATES], id="sqlite-reordered"),
        pytest.param(
            "postgresql", "0005", [DROPPED, BY_JOB_FIRST], id="postgresql-whole", marks=pytest.mark.postgresql
        ),
        pytest.param(
            "postgresql", "0005", [DROPPED, BY_JOB_FIRST, NARROWER], id="postgresql-made", marks=pytest.mark.postgresql
        ),
        pytest.param(
            "postgresql",
            "0006",
            [DROPPED, f"{BY_JOB_FIRST} {_SPARSE}"],
            id="postgresql-sparse",
            marks=pytest.mark.postgresql,
        ),
        pytest.param(
            "postgresql",
            "0006",
            [DROPPED, f"{BY_JOB_FIRST} {_SPARSE}", REORDERED],
            id="postgresql-made-again",
            marks=pytest.mark.postgresql,
        ),
        pytest.param("postgresql", "0006", [DROPPED, REORDERED], id="postgresql-dropped", marks=pytest.mark.postgresql),
        pytest.param("mysql", "0006", [f"{DROPPED} {_ON}", BY_JOB_FIRST], id="mysql-before", marks=pytest.mark.mysql),
    ],
    indirect=["back_end"],
)
def test_an_index_that_is_made_anew_is_wherever_that_was_interrupted(url: str, revision: str, left: list[str]) -> None:
    migrate.upgrade(url, OPTIONS)
    engine = engine_of(url)
    whole = shape(engine)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
        for each in left:
            connection.execute(text(each))
    assert shape(engine) != whole
    assert migrate.upgrade(url, OPTIONS) == (revision, migrate.HEAD)
    assert shape(engine) == whole
    engine.dispose()


@pytest.mark.parametrize(("serves_from", "serves"), [(3, True), (9999, False)])
def test_what_another_migrates_to_before_the_lock_is_had_is_looked_at_again(
    url: str, monkeypatch: pytest.MonkeyPatch, serves_from: int, serves: bool
) -> None:
    migrate.upgrade(url, OPTIONS)
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.execute(text(f"UPDATE marks SET at = {serves_from} WHERE name = 'schema_serves_from'"))
    engine.dispose()
    monkeypatch.setattr(migrate, "status", lambda *_: migrate.SchemaStatus("0003", migrate.HEAD, "older"))
    if serves:
        assert migrate.upgrade(url, OPTIONS) == ("0003", "9999")
        return
    with pytest.raises(SchemaMismatch, match=r"9999.*upgrade Ksana"):
        migrate.upgrade(url, OPTIONS)


@pytest.mark.parametrize("back_end", ["postgresql", "mysql"], indirect=True)
def test_several_processes_that_migrate_at_once_end_with_one_schema(url: str) -> None:
    errors: list[BaseException] = []

    def upgrade() -> None:
        try:
            migrate.upgrade(url, OPTIONS)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=upgrade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert migrate.status(url, OPTIONS).state == "current"


def test_the_comparison_would_notice_a_missing_index(url: str) -> None:
    """The comparison above would notice a difference: an index less is one."""
    migrate.upgrade(url, OPTIONS)
    engine = engine_of(url)
    whole = shape(engine)
    on_table = " ON events" if engine.dialect.name in {"mysql", "mariadb"} else ""
    with engine.begin() as connection:
        connection.execute(text(f"DROP INDEX ix_events_subject{on_table}"))
    assert shape(engine) != whole
    engine.dispose()
