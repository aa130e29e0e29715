"""`GET /api/v1/schedules:audit`: the ledger checked against the schedules, as `ksana audit` does it."""

from datetime import timedelta
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from ksana.api.app import Contract
from ksana.api.routing import new_router
from ksana.api.services import Services
from ksana.api.times import parse_instant, rfc3339
from ksana.domain.errors import InvalidInput
from ksana.engine.audit import Report, audit_ledger


class FindingBody(BaseModel):
    scheduleId: str  # noqa: N815 - the contract's spelling
    lost: int
    unplanned: int


class AuditBody(BaseModel):
    """What became of every planned instant. `planned` is the sum of the others but `unplanned`."""

    since: str
    until: str
    schedules: int
    planned: int
    ran: int
    skipped: dict[str, int]
    missed: int
    waiting: int
    dropped: int
    lost: int
    unplanned: int
    findings: list[FindingBody]


def audit_contract(services: Services) -> Contract:
    router = new_router("Schedules")

    @router.get("/api/v1/schedules:audit", summary="Check that every planned instant is accounted for")
    async def audit(
        from_: Annotated[str | None, Query(alias="from", description="RFC 3339; a day ago if not given.")] = None,
        to: Annotated[str | None, Query(description="RFC 3339; now if not given.")] = None,
    ) -> AuditBody:
        """Works out every planned instant of every schedule anew, and looks for it in the ledger. `lost` must be 0."""
        now = services.clock.now()
        since = now - timedelta(days=1) if from_ is None else parse_instant(from_, field="from")
        until = now if to is None else parse_instant(to, field="to")
        if until < since:
            raise InvalidInput("to", "is before from")
        return shown(await audit_ledger(services.store, since, until, now))

    return Contract(router)


def shown(report: Report) -> AuditBody:
    tally = report.tally
    return AuditBody(
        since=rfc3339(report.since),
        until=rfc3339(report.until),
        schedules=report.schedules,
        planned=tally.planned,
        ran=tally.ran,
        skipped=dict(sorted(tally.skipped.items())),
        missed=tally.missed,
        waiting=tally.waiting,
        dropped=tally.dropped,
        lost=tally.lost,
        unplanned=tally.unplanned,
        findings=[
            FindingBody(scheduleId=each.key, lost=each.lost, unplanned=each.unplanned) for each in report.findings
        ],
    )
