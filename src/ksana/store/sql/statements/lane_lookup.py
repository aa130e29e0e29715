"""Which lane a share leans on, remembered for a while: to read it of every job that is passed over takes longer than to claim."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from ksana.domain.errors import KsanaError
from ksana.domain.lanes import lane_of
from ksana.store.sql import codec
from ksana.store.sql.rows import Statement, columns
from ksana.store.sql.statements.enqueuing import JOB_SHARE
from ksana.store.sql.tx import Tx

KEPT = timedelta(minutes=1)
"""How long a job may have called another host before anybody notices. It is only about who goes first."""
MOST = 100_000
_JOBS = Statement("SELECT t.* FROM {rows} {join} jobs t ON t.id = r.id", columns(id="int"))


class LaneLookup:
    """Used by the writer's thread alone."""

    def __init__(self) -> None:
        self._known: dict[int, str | None] = {}
        self._since: datetime | None = None

    def lanes(self, tx: Tx, shares: Iterable[str], now: datetime) -> dict[str, str | None]:
        """Of these shares, those of jobs, with the lane that each leans on."""
        if self._since is None or not self._since <= now < self._since + KEPT or len(self._known) > MOST:
            self._known, self._since = {}, now
        jobs = {share: int(share.removeprefix(JOB_SHARE)) for share in shares if share.startswith(JOB_SHARE)}
        unknown = sorted(set(jobs.values()) - self._known.keys())
        for row in tx.query(_JOBS, [(job_id,) for job_id in unknown]) if unknown else ():
            self._known[row.id] = None
            with suppress(KsanaError, ValueError, KeyError, TypeError):  # who claims it will find out
                self._known[row.id] = lane_of(codec.job(row).spec)
        return {share: self._known.get(job_id) for share, job_id in jobs.items()}
