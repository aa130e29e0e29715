"""The JSON-file store of document 002: one readable file, replaced atomically before anybody hears of a change.

    commands ──▶ writer ──▶ applied in a private SQLite ──▶ file replaced (temporary, fsync, rename, fsync of the folder)
                                                              ──▶ COMMIT ──▶ answered

While it is open, everything is in a private SQLite database that is thrown away at the end; the store is an ordinary
`SqlStore` on it. That database is a folder beside the file and not `vfs=memdb`, in which readers would hold up the writer and
the writer, during its fsync, the readers (memdb has no WAL). It is never synced: nobody relies on it after a crash.

Kept in the file, and so over a restart: jobs and schedules, exactly, with their integer ids, versions and cursors; each job's
last ended run and each schedule's newest ledger row; runs that have not ended, to be run again (or FAILED, if the job's rule
is at most once); and up to where ids were given out, so that none is given out twice.

**Not kept over a restart**: run history but the last of each job, attempts, callbacks and their tokens, the ledger but its
newest rows, events, audit entries, idempotency keys, instances and locks (tokens begin at 1 again). Workflows and plans are
refused: who needs these takes another database. See docs/design/json-store.md.
"""

from pathlib import Path

from ksana.domain.clock import Clock
from ksana.store.jsonfile import atomic, scratch
from ksana.store.jsonfile.loading import Contents, load_file
from ksana.store.jsonfile.mirror import FileMirror
from ksana.store.jsonfile.paths import json_path
from ksana.store.requests import StoreOptions
from ksana.store.sql.store import SqlStore

__all__ = ["json_path", "open_json_store"]


def open_json_store(url: str, *, options: StoreOptions, clock: Clock) -> SqlStore:
    """A store whose jobs are in the file that a `json://` URL names; it is made if it is not there.

    A file that cannot be read is renamed (`jobs.bad.json`, then `jobs.bad.1.json`, …), which is told as an error in the log, and
    an empty one begun. StoreInUse: another process has the file. SchemaMismatch: it is a newer program's, and left as it is.
    StoreFull, StoreUnavailable: it cannot be written. StoreError: it is there, and may not be read.
    """
    path = json_path(url)
    lock = scratch.ScratchLock(path)
    lock.acquire()
    try:
        return _open(path, lock, options, clock)
    except BaseException:
        lock.release()
        raise


def _open(path: Path, lock: scratch.ScratchLock, options: StoreOptions, clock: Clock) -> SqlStore:
    atomic.remove_stray(path)
    dialect = scratch.ScratchDialect(path)
    scratch_url = scratch.make(path, dialect, options)
    contents: Contents = load_file(path, scratch_url, dialect, options, clock)
    store = SqlStore(scratch_url, dialect, clock, options, lock, FileMirror(path, contents))
    try:
        # Its first transaction writes the file, if what was loaded is not word for word what it says.
        store.writer.start()
    except BaseException:
        store.writer.close()
        raise
    return store
