"""`/api/v1/activity`: runs of jobs and of workflows in one list, and orders to many of them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from ksana.api.contracts.console.activity_models import ActivityShown, ManyBody, ManyOrdered, WhichRuns
from ksana.api.contracts.console.activity_reading import Asked, read, written
from ksana.api.contracts.console.activity_showing import shown_all
from ksana.api.contracts.console.orders import orders_of
from ksana.api.contracts.console.paths import ACTIVITY
from ksana.api.contracts.jobchain.problems import translate
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.shapes import answer
from ksana.api.errors import problem_of
from ksana.api.services import Services, actor_of
from ksana.domain.states import ACTIVE, RUN_ACTIVE, RUN_REOPENABLE, UNSUCCESSFUL
from ksana.engine.commands import Chosen, Done, Wish
from ksana.store.activity_requests import LOOKED_AT, ActivityFilter, ActivityPage, ActivityRequest, Sort

_MEANT = {Wish.RETRY: (UNSUCCESSFUL, RUN_REOPENABLE), Wish.CANCEL: (ACTIVE, RUN_ACTIVE)}
"""Whom an order by a filter that names no states is for."""


class Activity:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        control = Permission.RUN_CONTROL
        yield Route("GET", ACTIVITY, self.find, "List runs of both kinds", Permission.RUN_READ, ActivityShown, (400,))
        yield Route("POST", f"{ACTIVITY}:retry", self.retry, "Retry many runs", control, ManyOrdered, (400,))
        yield Route("POST", f"{ACTIVITY}:cancel", self.cancel, "Cancel many runs", control, ManyOrdered, (400,))

    async def find(self, query: WhichRuns) -> Response:
        """Newest first by when they were made; the runs of one job by the instant that they are for. With `from`, one that was
        made more than a week after its instant may be left out there."""
        after = None if query.cursor is None else read(query.cursor, query.sort)
        filters = await Asked.by_query(query).filter(self._services.store)
        if filters is None:
            return await self._page(ActivityPage([], None, 0, total_is_exact=True), query.sort)
        request = ActivityRequest(query.size, query.sort, after)
        return await self._page(await self._services.store.activity(filters, request), query.sort)

    async def retry(self, body: ManyBody, request: Request) -> Response:
        """Of a job's run that has ended, another with the same input; of a workflow's, all nodes that failed, again."""
        return await self._order(Wish.RETRY, body, request)

    async def cancel(self, body: ManyBody, request: Request) -> Response:
        """What has not ended: a job's run is CANCELED, a workflow's is stopped with `force`."""
        return await self._order(Wish.CANCEL, body, request)

    async def _page(self, page: ActivityPage, sort: Sort) -> Response:
        return answer(
            {
                "items": await shown_all(self._services.store, page.items),
                "next": written(page.next, sort),
                "total": page.total,
                "totalIsExact": page.total_is_exact,
                "within": None if sort is Sort.NEWEST else LOOKED_AT,
            }
        )

    async def _order(self, wish: Wish, body: ManyBody, request: Request) -> Response:
        chosen = await self._chosen(wish, body)
        actor = actor_of(request, body.reason or "")
        done = await orders_of(self._services).order(wish, chosen, actor, dry=body.dry_run)
        return answer({**_done(done), "limited": chosen.next is not None, "next": written(chosen.next, Sort.NEWEST)})

    async def _chosen(self, wish: Wish, body: ManyBody) -> Chosen:
        if body.filter is None:
            return Chosen(body.ids or ())
        after = None if body.cursor is None else read(body.cursor, Sort.NEWEST)
        filters = await Asked.by_body(body.filter).filter(self._services.store, "filter.")
        if filters is None:
            return Chosen(())
        meant = filters if body.filter.status else _meant(wish, filters)
        return await orders_of(self._services).by_filter(meant, after)


def _meant(wish: Wish, filters: ActivityFilter) -> ActivityFilter:
    jobs, workflows = _MEANT[wish]
    return replace(filters, job_statuses=jobs, workflow_statuses=workflows)


def _done(done: Done) -> dict[str, Any]:
    refused: list[dict[str, str]] = []
    for each in done.refused:
        problem = translate(problem_of(each.error))
        refused.append({"id": each.id, "code": problem.code, "message": problem.message})
    return {"matched": done.matched, "possible": done.possible, "done": done.done, "refused": refused}
