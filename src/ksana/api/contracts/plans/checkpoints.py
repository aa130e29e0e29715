"""`/api/v1/tenants/{tenantId}/checkpoint`: from where a tenant's task would go on (document 004)."""

from collections.abc import Iterator
from typing import Any

from fastapi import Request, Response

from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.keys import possible_tenant
from ksana.api.contracts.plans.paths import CHECKPOINT, TenantId, WhichCheckpoint, WhichTask
from ksana.api.contracts.plans.task_models import CheckpointShown, ContextBody
from ksana.api.contracts.plans.task_showing import TaskShowing
from ksana.api.contracts.shapes import answer
from ksana.api.contracts.values import as_json
from ksana.api.services import Services, actor_of
from ksana.domain.errors import NotFound
from ksana.domain.plan import TenantTask


class Checkpoints:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, control, path = Permission.PLAN_READ, Permission.PLAN_CONTROL, CHECKPOINT
        fails = (400, 404, 409)
        yield Route("GET", path, self.show, "Show a tenant's checkpoint", read, CheckpointShown, (400, 404))
        yield Route("PUT", path, self.save, "Add to a tenant's checkpoint", control, CheckpointShown, fails)
        yield Route("DELETE", path, self.remove, "Remove a tenant's checkpoint", control, None, fails, 204)

    async def show(self, tenant_id: TenantId, query: WhichTask) -> Response:
        """That of a task that has failed is not kept for ever."""
        store, tenant = self._services.store, possible_tenant(tenant_id)
        task = await store.task_of(tenant, query.plan_key)
        return answer(self._shown((await store.task_stages(task.id)).task))

    async def save(self, tenant_id: TenantId, body: ContextBody, query: WhichTask, request: Request) -> Response:
        """These keys are put into its context; with `version`, only if nobody has saved it since."""
        as_json(body.context_data, field="contextData")
        tenant, actor, plans = possible_tenant(tenant_id), actor_of(request), self._services.plans
        task = await plans.save_context(tenant, query.plan_key, body.context_data, body.version, actor)
        return answer(self._shown(task))

    async def remove(self, tenant_id: TenantId, query: WhichCheckpoint, request: Request) -> Response:
        """A task that has failed would begin from its first stage."""
        tenant, actor = possible_tenant(tenant_id), actor_of(request)
        await self._services.plans.remove_checkpoint(tenant, query.plan_key, query.version, actor)
        return Response(status_code=204)

    def _shown(self, task: TenantTask) -> dict[str, Any]:
        shown = TaskShowing.by(self._services).checkpoint(task)
        if shown is None:
            raise NotFound("checkpoint", task.tenant_id)
        return shown
