"""The jobs that claims meet, kept as they were read: of one that has not changed since, a claim asks for no more than that."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sqlalchemy import Row

from ksana.domain.errors import KsanaError
from ksana.domain.job import Job
from ksana.store.sql import codec
from ksana.store.sql.rows import Statement, columns
from ksana.store.sql.tx import Tx

MOST = 10_000
_UNKNOWN = (-1, -1)
# By both: a version that was rolled back is given again, but at another time.
_MET = Statement(
    "SELECT t.id, t.public_id, t.version, t.created_at, t.updated_at, t.deleted_at, t.concurrency,"
    " CASE WHEN t.version = r.version AND t.updated_at = r.updated_at THEN NULL ELSE t.spec END AS spec"
    " FROM {rows} {join} jobs t ON t.id = r.id",
    columns(id="int", version="int", updated_at="int"),
    many=True,
)


class KnownJobs:
    """Used by the writer alone, which does one thing at a time."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[tuple[int, int], Job]] = {}

    def meet(self, tx: Tx, job_ids: Iterable[int]) -> tuple[dict[int, Row[Any]], dict[int, Job]]:
        """Their rows, and those of them that can be read."""
        known = self._known
        if len(known) > MOST:
            known.clear()
        asked = [(each, *(known[each][0] if each in known else _UNKNOWN)) for each in sorted(job_ids)]
        rows = {row.id: row for row in tx.query(_MET, asked)} if asked else {}
        for job_id, row in rows.items():
            if row.spec is not None:
                known.pop(job_id, None)
                with suppress(KsanaError, ValueError, KeyError, TypeError):
                    known[job_id] = (row.version, row.updated_at), codec.job(row)
        return rows, {job_id: known[job_id][1] for job_id in rows if job_id in known}
