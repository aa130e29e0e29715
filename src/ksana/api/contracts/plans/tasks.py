"""`/api/v1/tenants/{tenantId}/task`: what a plan does for one tenant (document 004)."""

from collections.abc import Iterator

from fastapi import Request, Response

from ksana.api.contracts.bodies import optional_body
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import EventsShown, OrderBody
from ksana.api.contracts.jobchain.run_showing import events_shown
from ksana.api.contracts.keys import possible_tenant
from ksana.api.contracts.plans.paths import TASK, TENANTS, TenantId, WhichTask, WhichTaskEvents
from ksana.api.contracts.plans.plan_models import AgainBody
from ksana.api.contracts.plans.task_models import TaskShown, TenantsBody, TenantsShown
from ksana.api.contracts.plans.task_showing import TaskShowing
from ksana.api.contracts.queries import NoQuery
from ksana.api.contracts.shapes import answer
from ksana.api.services import Services, actor_of
from ksana.domain.errors import NotFound
from ksana.domain.plan import TenantTask


class Tasks:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, control = Permission.PLAN_READ, Permission.PLAN_CONTROL
        yield Route("GET", TASK, self.show, "Show a tenant's task", read, TaskShown, (400, 404))
        path = f"{TASK}/events"
        yield Route("GET", path, self.events, "What happened to a tenant's task", read, EventsShown, (400, 404))
        orders = (
            (":pause", self.pause, "Pause a tenant's task", OrderBody),
            (":resume", self.resume, "Go on with a tenant's task", OrderBody),
            (":cancel", self.cancel, "Cancel a tenant's task", OrderBody),
            (":retry", self.retry, "Retry a tenant's task", AgainBody),
        )
        for suffix, handler, summary, body in orders:
            yield Route("POST", f"{TASK}{suffix}", handler, summary, control, TaskShown, (400, 404, 409), body=body)
        yield Route("POST", f"{TENANTS}:query", self.query, "Show the tasks of tenants", read, TenantsShown, (400,))

    async def show(self, tenant_id: TenantId, query: WhichTask) -> Response:
        """With its stages and its checkpoint. Of several, the one that has not ended, else the last."""
        tenant, plan_key = possible_tenant(tenant_id), query.plan_key
        return await self._detail(await self._services.store.task_of(tenant, plan_key))

    async def events(self, tenant_id: TenantId, query: WhichTaskEvents) -> Response:
        """Oldest first."""
        store, tenant = self._services.store, possible_tenant(tenant_id)
        task = await store.task_of(tenant, query.plan_key)
        return answer(events_shown(await store.task_events(task.id, query.after, query.limit)))

    async def pause(self, tenant_id: TenantId, query: WhichTask, request: Request) -> Response:
        """At its next stage boundary; at once, if it waits for its turn."""
        body, tenant = await optional_body(request, OrderBody), possible_tenant(tenant_id)
        actor = actor_of(request, body.reason or "")
        return await self._detail(await self._services.plans.pause_task(tenant, query.plan_key, actor))

    async def resume(self, tenant_id: TenantId, query: WhichTask, request: Request) -> Response:
        """A task that is paused, or is to pause, goes on; also while its plan is paused."""
        body, tenant = await optional_body(request, OrderBody), possible_tenant(tenant_id)
        actor = actor_of(request, body.reason or "")
        return await self._detail(await self._services.plans.resume_task(tenant, query.plan_key, actor))

    async def cancel(self, tenant_id: TenantId, query: WhichTask, request: Request) -> Response:
        """Now: what runs is broken off."""
        body, tenant = await optional_body(request, OrderBody), possible_tenant(tenant_id)
        actor = actor_of(request, body.reason or "")
        return await self._detail(await self._services.plans.cancel_task(tenant, query.plan_key, actor))

    async def retry(self, tenant_id: TenantId, query: WhichTask, request: Request) -> Response:
        """One that failed or was cancelled, again: from its checkpoint if it has one, else from its first stage."""
        body, tenant = await optional_body(request, AgainBody), possible_tenant(tenant_id)
        actor, again = actor_of(request, body.reason or ""), body.from_checkpoint
        plans, plan_key = self._services.plans, query.plan_key
        return await self._detail(await plans.retry_task(tenant, plan_key, actor, from_checkpoint=again))

    async def query(self, body: TenantsBody, _: NoQuery) -> Response:
        """Of each tenant the task that it has, else the last; in the order asked."""
        asked = list(dict.fromkeys(body.tenant_ids))
        found = await self._services.store.tasks_of([each for each in asked if _is_possible(each)])
        summary = TaskShowing.by(self._services).summary
        items = [summary(found[each]) for each in asked if each in found]
        return answer({"items": items, "missing": [each for each in asked if each not in found]})

    async def _detail(self, task: TenantTask) -> Response:
        found = await self._services.store.task_stages(task.id)
        return answer(TaskShowing.by(self._services).detail(found))


def _is_possible(tenant_id: str) -> bool:
    try:
        return bool(possible_tenant(tenant_id))
    except NotFound:
        return False
