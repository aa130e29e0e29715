"""Which lane a share leans on, remembered for a while: to read it of every job that is passed over takes longer than to claim."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from ksana.domain.lanes import lane_of
from ksana.store.sql.statements.enqueuing import JOB_SHARE
from ksana.store.sql.statements.known_jobs import KnownJobs
from ksana.store.sql.tx import Tx

KEPT = timedelta(minutes=1)
"""How long a job may have called another host before anybody notices. It is only about who goes first."""
MOST = 100_000


class LaneLookup:
    """Used by the writer alone, which does one thing at a time."""

    def __init__(self, jobs: KnownJobs) -> None:
        self._jobs = jobs
        self._known: dict[int, str | None] = {}
        self._since: datetime | None = None

    def lanes(self, tx: Tx, shares: Iterable[str], now: datetime) -> dict[str, str | None]:
        """Of these shares, those of jobs, with the lane that each leans on."""
        if self._since is None or not self._since <= now < self._since + KEPT or len(self._known) > MOST:
            self._known, self._since = {}, now
        jobs = {share: int(share.removeprefix(JOB_SHARE)) for share in shares if share.startswith(JOB_SHARE)}
        found, readable = self._jobs.meet(tx, set(jobs.values()) - self._known.keys())
        # Of one that nobody can read, who claims it will find out.
        self._known |= dict.fromkeys(found) | {job_id: lane_of(job.spec) for job_id, job in readable.items()}
        return {share: self._known.get(job_id) for share, job_id in jobs.items()}
