"""Which runs are meant, as the store is asked for them; and cursors, which only it can read."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import orjson

from ksana.api.contracts.console.activity_models import ActivityQuery, FilterBody
from ksana.api.contracts.cronjob.values import queried_instant
from ksana.api.contracts.keys import found_job
from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.execution import Trigger
from ksana.domain.ids import LARGEST_INTEGER, checked_key
from ksana.domain.plan_reading import tenant_key
from ksana.domain.states import CRONJOB_NAMES, JOBCHAIN_RUN_NAMES
from ksana.store.activity_requests import ActivityFilter, LengthAfter, NewestAfter, RunKind, Sort
from ksana.store.base import Store

S = TypeVar("S", bound=StrEnum)
After = NewestAfter | LengthAfter
_NAMES = tuple(dict.fromkeys((*CRONJOB_NAMES.values(), *JOBCHAIN_RUN_NAMES.values())))
_LARGEST = 2**62
"""Of what a cursor says: the store counts with it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the list and the orders share."""

    status: tuple[str, ...] = ()
    kind: str | None = None
    job_id: str | None = None
    workflow_id: str | None = None
    tenant_id: str | None = None
    trigger: str | None = None
    since: str | None = None
    to: str | None = None

    @classmethod
    def by_query(cls, query: ActivityQuery) -> "Asked":
        names = tuple(name.strip() for name in (query.status or "").split(",") if name.strip())
        trigger = None if query.trigger is None else query.trigger.value
        return cls(names, query.kind, query.job_id, query.workflow_id, query.tenant_id, trigger, query.since, query.to)

    @classmethod
    def by_body(cls, body: FilterBody) -> "Asked":
        names = tuple(body.status or ())
        return cls(names, body.kind, body.job_id, body.workflow_id, body.tenant_id, body.trigger, body.since, body.to)

    async def filter(self, store: Store, prefix: str = "") -> ActivityFilter | None:
        """None: nothing can match. InvalidInput, whose field begins with the prefix."""
        unknown = next((name for name in self.status if name not in _NAMES), None)
        if unknown is not None:
            raise InvalidInput(f"{prefix}status", f"{unknown[:40]!r} is none of {', '.join(_NAMES)}")
        since = None if self.since is None else queried_instant(self.since, field=f"{prefix}from")
        until = None if self.to is None else queried_instant(self.to, field=f"{prefix}to")
        if since is not None and until is not None and since > until:
            raise InvalidInput(f"{prefix}from", "is later than to")
        job_id = None if self.job_id is None else await _job(store, self.job_id)
        if job_id == 0 or not self._possible():
            return None
        jobs, flows = _states(self.status, CRONJOB_NAMES), _states(self.status, JOBCHAIN_RUN_NAMES)
        kinds = {RunKind.JOB: jobs, RunKind.WORKFLOW: flows}
        wanted = {kind for kind, states in kinds.items() if states is not None and self.kind in {None, kind.value}}
        return ActivityFilter(
            kinds=frozenset(wanted),
            job_statuses=jobs or frozenset(),
            workflow_statuses=flows or frozenset(),
            job_id=job_id,
            workflow_key=self.workflow_id,
            tenant_id=self.tenant_id,
            trigger=None if self.trigger is None else Trigger(self.trigger),
            since=since,
            until=until,
        )

    def _possible(self) -> bool:
        """Whether anything can have these ids: one that nothing can have is asked of no database."""
        try:
            if self.workflow_id is not None:
                checked_key(self.workflow_id)
            if self.tenant_id is not None:
                tenant_key(self.tenant_id, "tenantId")
        except InvalidInput:
            return False
        return True


def _states(names: Iterable[str], known: Mapping[S, str]) -> frozenset[S] | None:
    """The states under these names; none for none asked for, None if no state has one of them."""
    wanted = frozenset(names)
    if not wanted:
        return frozenset()
    return frozenset(state for state, name in known.items() if name in wanted) or None


async def _job(store: Store, text: str) -> int:
    """The number of the job with this key; 0, which none has, if there is none. The history of one that was deleted is found by
    its number."""
    if text.isascii() and text.isdigit():
        return int(text) if len(text) <= len(str(LARGEST_INTEGER)) else 0
    try:
        return (await found_job(store, text)).id
    except NotFound:
        return 0


# Cursors --------------------------------------------------------------------------------------------------------------


def written(after: After | None, sort: Sort) -> str | None:
    """As clients give it back."""
    if after is None:
        return None
    if isinstance(after, NewestAfter):
        parts: list[object] = [sort, after.job, after.workflow, after.planned_for]
    else:
        parts = [sort, after.at, after.took, after.kind, after.id]
    return urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def read(cursor: str, sort: Sort) -> After:
    """InvalidInput."""
    try:
        parts = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if parts[0] != sort:
            raise InvalidInput("cursor", "is of a list in another order")
        if sort is Sort.NEWEST:
            _, job, workflow, planned_for = parts
            return NewestAfter(_whole(job), _whole(workflow), _whole(planned_for))
        _, at, took, kind, run_id = parts
        return LengthAfter(_whole(at) or 0, _whole(took) or 0, RunKind(kind), _whole(run_id) or 0)
    except (ValueError, TypeError, KeyError, IndexError):
        raise InvalidInput("cursor", "is none that a page gave as next") from None


def _whole(value: object) -> int | None:
    """ValueError if it is no number that a database knows."""
    if value is not None and (type(value) is not int or not -_LARGEST <= value <= _LARGEST):
        raise ValueError("not a whole number")
    return value if isinstance(value, int) else None
