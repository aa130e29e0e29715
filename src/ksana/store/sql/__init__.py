"""The SQL store: one set of tables and statements for SQLite, PostgreSQL and MySQL."""

from ksana.domain.clock import Clock
from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate
from ksana.store.sql.aftermath import check_after_crash
from ksana.store.sql.dialects import dialect_of
from ksana.store.sql.filelock import hold_file
from ksana.store.sql.store import SqlStore


def open_store(url: str, *, options: StoreOptions, clock: Clock) -> SqlStore:
    """A store on a database whose schema is this program's.

    StoreUnavailable: it does not answer. StoreInUse: another process has the file. StoreError: a crash left it damaged.
    SchemaMismatch: `migrate.upgrade` first, or a newer program. InvalidSetting: the URL names no database that can be used.
    """
    check_after_crash(url)
    lock = hold_file(url)
    try:
        migrate.require_current(migrate.status(url, options))
        store = SqlStore(url, dialect_of(url), clock, options, lock)
        store.writer.start()
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    return store


def open_for_reading(url: str, *, options: StoreOptions, clock: Clock) -> SqlStore:
    """The same for questions only, also while another process has the file; whoever asks it to write gets StoreUnavailable."""
    migrate.require_current(migrate.status(url, options))
    store = SqlStore(url, dialect_of(url), clock, options)
    store.writer.refuse()
    return store
