"""From the file to the private database, whole or not at all."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, insert, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from ksana.domain.clock import Clock, to_micros
from ksana.domain.errors import SchemaMismatch
from ksana.store.jsonfile import atomic, reading
from ksana.store.jsonfile.reading import Fields, Ids, Unreadable
from ksana.store.jsonfile.reading_job import LoadedJob, note_ids, read_job
from ksana.store.jsonfile.reading_schedule import Moment
from ksana.store.jsonfile.scratch import ScratchDialect
from ksana.store.jsonfile.text import instant_micros
from ksana.store.requests import StoreOptions
from ksana.store.sql import schema
from ksana.store.sql.errors import translate
from ksana.store.sql.statements.retention import mark_ledger
from ksana.store.sql.tx import Tx
from ksana.telemetry import log

VERSION = 1
"""Of document 002's shape."""
FORMAT = 1
"""Of what is under `"ksana"`. To be raised when a program that does not know the new one would lose something."""

_TABLES = (schema.jobs, schema.schedules, schema.occurrences, schema.executions)
_TOP_KEYS = frozenset({"version", "updated_at", "jobs", "ksana"})
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Contents:
    """What the file says, job by job, and the ids that it reserves."""

    jobs: dict[int, bytes] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    missing: bool = False
    """There is no file yet."""


def load_file(path: Path, url: str, dialect: ScratchDialect, options: StoreOptions, clock: Clock) -> Contents:
    """Reads the file into an empty database; sets it aside if it cannot be read. SchemaMismatch if it is newer."""
    data = atomic.read(path)
    if data is None:
        return Contents(missing=True)
    engine = dialect.writing_engine(url, options)
    try:
        with engine.begin() as connection:
            return _load(Tx(connection, dialect, to_micros(clock.now())), _parse(path, data))
    except Unreadable as error:
        aside = atomic.move_aside(path)
        log().error(
            "the JSON file cannot be read: it was set aside, and an empty one begun",
            action="store.json_set_aside",
            file=str(path),
            set_aside=str(aside),
            reason=str(error),
        )
        return Contents(missing=True)
    except SQLAlchemyError as error:
        raise translate(error) from error
    finally:
        engine.dispose()


def fragment(job: object) -> bytes:
    """A job as it stands in the file."""
    return orjson.dumps(job, option=orjson.OPT_INDENT_2).replace(b"\n", b"\n    ")


def _parse(path: Path, data: bytes) -> Fields:
    try:
        document = reading.table(orjson.loads(data.removeprefix(_BYTE_ORDER_MARK)))
        version = reading.whole(document.get("version"))
        ours = reading.table(document.get("ksana", {}))
        form = reading.whole(ours.get("format", FORMAT))
    except (TypeError, ValueError) as error:
        raise Unreadable(str(error)) from error
    if version > VERSION or form > FORMAT:
        raise SchemaMismatch(
            f"{path} has version {version} (format {form}), newer than this program's {VERSION} (format {FORMAT}): upgrade Ksana"
        )
    return document


def _load(tx: Tx, document: Fields) -> Contents:
    ids = Ids()
    try:
        reading.known(document, _TOP_KEYS)
        raw_jobs = reading.rows(document.get("jobs"))
        moment = Moment(tx.clock, instant_micros(document.get("updated_at")))
        kept = _kept_ids(document)
    except (TypeError, ValueError, OverflowError) as error:
        raise Unreadable(str(error)) from error
    for table, value in kept.items():
        ids.seen(table, value)
    for raw in raw_jobs:
        note_ids(raw, ids)
    jobs = [read_job(raw, f"jobs[{number}]", ids, moment) for number, raw in enumerate(raw_jobs)]
    _insert(tx.connection, jobs)
    _go_on_from(tx.connection, ids)
    # What was fired before the file was written has no row any more, but for the newest.
    mark_ledger(tx, moment.now if moment.written is None else min(moment.written, moment.now))
    return Contents({job.id: fragment(raw) for job, raw in zip(jobs, raw_jobs, strict=True)}, kept)


def _kept_ids(document: Fields) -> dict[str, int]:
    ours = reading.table(document.get("ksana", {}))
    kept = reading.table(ours.get("ids", {}))
    return {table: reading.whole(value, least=0) for table, value in kept.items()}


def _insert(connection: Connection, jobs: list[LoadedJob]) -> None:
    try:
        for table in _TABLES:
            rows: list[dict[str, Any]] = [row for job in jobs for row in job.rows[table.name]]
            if rows:
                connection.execute(insert(table), rows)
    except IntegrityError as error:
        raise Unreadable(f"two of the same: {error.orig}") from error


def _go_on_from(connection: Connection, ids: Ids) -> None:
    """The next ids come after all that were given out, whether what had them is still there or not."""
    for table, greatest in ids.greatest.items():
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table})
        values = {"name": table, "greatest": greatest}
        connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :greatest)"), values)
