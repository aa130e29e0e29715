"""Keeps the file the same as the database: called in each transaction, between its last statement and its COMMIT.

What the file says is held in memory as one piece of text a job. The triggers of `scratch` tell which jobs a transaction has
touched; only these are rendered anew, and the file is written only if one of them reads differently, or ids run out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from ksana.domain.errors import CommitUnknown, NotSupported, StoreError
from ksana.domain.states import ACTIVE
from ksana.store.jsonfile import atomic
from ksana.store.jsonfile.loading import FORMAT, VERSION, Contents, fragment
from ksana.store.jsonfile.reading import Ids, Unreadable
from ksana.store.jsonfile.reading_job import read_job
from ksana.store.jsonfile.reading_schedule import Moment
from ksana.store.jsonfile.shape import JobRows, job_document
from ksana.store.jsonfile.text import instant_text
from ksana.store.sql import latest
from ksana.store.sql.rows import Statement
from ksana.store.sql.statements.slots import status_list
from ksana.store.sql.tx import Tx

RESERVED = 1_000
"""Ids of runs, events and the like are set aside in the file by the thousand, so that one more of them changes nothing."""

_EXACT = {"jobs", "schedules"}
_REFUSED = {"workflows", "plans"}

_TOUCHED = Statement("SELECT job_id FROM mirror_changes")
_FORGET = Statement("DELETE FROM mirror_changes")
_IDS = Statement("SELECT name, seq FROM sqlite_sequence")
_JOBS = Statement("SELECT t.* FROM mirror_changes c CROSS JOIN jobs t ON t.id = c.job_id WHERE t.deleted_at IS NULL")
_SCHEDULES = Statement(
    "SELECT t.* FROM mirror_changes c CROSS JOIN schedules t ON t.job_id = c.job_id"
    " WHERE t.deleted_at IS NULL ORDER BY t.id"
)
_LEDGER = Statement(
    "SELECT s.job_id, t.* FROM mirror_changes c CROSS JOIN schedules s ON s.job_id = c.job_id CROSS JOIN occurrences t"
    " ON t.schedule_id = s.id"
    " AND t.planned_for = (SELECT max(o.planned_for) FROM occurrences o WHERE o.schedule_id = s.id)"
)
_OPEN_RUNS = Statement(
    "SELECT t.* FROM mirror_changes c CROSS JOIN executions t INDEXED BY ix_executions_job_status"
    f" ON t.job_id = c.job_id AND t.status IN ({status_list(ACTIVE)}) ORDER BY t.id"
)


@dataclass(frozen=True, slots=True)
class _Before:
    """What the file said before the last write, where that differed."""

    jobs: dict[int, bytes | None]
    ids: dict[str, int]


class FileMirror:
    """Implements `ksana.store.sql.writer.Mirror` for one file. Used by the writer's thread alone."""

    def __init__(self, path: Path, contents: Contents) -> None:
        self._path = path
        self._jobs = contents.jobs
        self._ids = contents.ids
        self._doubtful = contents.missing
        """The file is not known to say what it should: the next transaction writes it, whatever it changes."""
        self._before: _Before | None = None

    def write(self, tx: Tx) -> None:
        """StoreFull, StoreUnavailable: the file is as it was. CommitUnknown: it may be the new one."""
        self._before = None
        changed = self._changed(tx)
        ids = self._reserved(tx)
        if not changed and ids == self._ids and not self._doubtful:
            return
        before = _Before({job_id: self._jobs.get(job_id) for job_id in changed}, self._ids)
        self._set(changed, ids)
        try:
            atomic.replace(self._path, self._text(tx.clock))
        except BaseException as error:
            self._set(before.jobs, before.ids)
            self._doubtful = self._doubtful or isinstance(error, CommitUnknown)
            raise
        self._doubtful = False
        self._before = before

    def withdraw(self, clock: int) -> None:
        """After a COMMIT that failed: the file says again what it said before. CommitUnknown if it cannot be written."""
        before, self._before = self._before, None
        if before is None:
            return
        self._set(before.jobs, before.ids)
        try:
            atomic.replace(self._path, self._text(clock))
        except StoreError as error:
            self._doubtful = True
            raise CommitUnknown(
                f"the change was refused, but {self._path} has it and cannot be written again: {error.message}"
            ) from error

    def _set(self, jobs: dict[int, bytes | None], ids: dict[str, int]) -> None:
        for job_id, said in jobs.items():
            if said is None:
                self._jobs.pop(job_id, None)
            else:
                self._jobs[job_id] = said
        self._ids = ids

    def _changed(self, tx: Tx) -> dict[int, bytes | None]:
        """The jobs that read differently from now on; None for one that is gone."""
        touched = [row.job_id for row in tx.query(_TOUCHED)]
        if not touched:
            return {}
        found = _rows(tx)
        tx.run(_FORGET)
        said = {job_id: _said(found[job_id], tx.clock) if job_id in found else None for job_id in touched}
        return {job_id: one for job_id, one in said.items() if one != self._jobs.get(job_id)}

    def _reserved(self, tx: Tx) -> dict[str, int]:
        ids = dict(self._ids)
        for row in tx.query(_IDS):
            name, given = row.name, row.seq
            if name in _REFUSED and given:
                raise NotSupported(
                    f"the JSON-file store keeps jobs and their schedules, but no {name}: use another database"
                )
            if given > ids.get(name, 0):
                ids[name] = given if name in _EXACT else given + RESERVED - 1
        return ids

    def _text(self, clock: int) -> Iterator[bytes]:
        yield b'{\n  "version": %d,\n  "updated_at": "%s",\n  "jobs": [' % (VERSION, instant_text(clock).encode())
        between = b"\n    "
        for job_id in sorted(self._jobs):
            yield between
            yield self._jobs[job_id]
            between = b",\n    "
        ours = orjson.dumps({"format": FORMAT, "ids": self._ids}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        yield (b"\n  ]" if self._jobs else b"]") + b',\n  "ksana": ' + ours.replace(b"\n", b"\n  ") + b"\n}\n"


def _said(rows: JobRows, clock: int) -> bytes:
    """What the file is to say of a job; StoreError if it could not be read back: better refused now than set aside later."""
    said = fragment(job_document(rows))
    try:
        read_job(orjson.loads(said), f"job {rows.job.public_id}", Ids(), Moment(clock, None))
    except Unreadable as error:
        raise StoreError(f"this cannot be kept in a JSON file: {error}") from error
    return said


def _rows(tx: Tx) -> dict[int, JobRows]:
    """The same five questions, however many jobs were touched."""
    found = {row.id: JobRows(row) for row in tx.query(_JOBS)}
    for row in tx.query(_SCHEDULES):
        if row.job_id in found:
            found[row.job_id].schedules.append(row)
    for row in tx.query(_LEDGER):
        if row.job_id in found:
            found[row.job_id].ledger[row.schedule_id] = row
    for job_id, row in latest.last_ended(tx, found).items():
        found[job_id].last_run = row
    for row in tx.query(_OPEN_RUNS):
        if row.job_id in found:
            found[row.job_id].open_runs.append(row)
    return found
