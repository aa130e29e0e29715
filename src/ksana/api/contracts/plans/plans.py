"""`/api/v1/plans` (document 004)."""

from collections.abc import Iterator
from typing import Any

from fastapi import Request, Response

from ksana.api.contracts.bodies import optional_body
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import EventsShown, OrderBody
from ksana.api.contracts.jobchain.run_showing import events_shown
from ksana.api.contracts.jobchain.workflow_showing import page_shown
from ksana.api.contracts.keys import possible
from ksana.api.contracts.plans.paths import PLAN, PLANS, PlanId, WhichEvents, WhichPlans, WhichTasks
from ksana.api.contracts.plans.plan_models import (
    AgainBody,
    PauseBody,
    PlanBody,
    PlanRetried,
    PlanShown,
    PlansShown,
    ResumeBody,
)
from ksana.api.contracts.plans.plan_showing import plan_listed, plan_shown, plan_summary
from ksana.api.contracts.plans.task_models import TasksShown
from ksana.api.contracts.plans.task_showing import TaskShowing
from ksana.api.contracts.queries import NoQuery
from ksana.api.contracts.shapes import answer
from ksana.api.contracts.values import as_json, printable
from ksana.api.services import Services, actor_of
from ksana.domain.plan import Plan
from ksana.store.plan_requests import PlanFilter, TaskFilter
from ksana.store.requests import PageRequest


class Plans:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, write, control = Permission.PLAN_READ, Permission.PLAN_WRITE, Permission.PLAN_CONTROL
        yield Route("POST", PLANS, self.create, "Create a plan", write, PlanShown, (400, 409), 201)
        yield Route("GET", PLANS, self.find, "List plans", read, PlansShown, (400,))
        yield Route("GET", PLAN, self.show, "Show a plan", read, PlanShown, (400, 404))
        yield Route("GET", f"{PLAN}/tasks", self.tasks, "List a plan's tasks", read, TasksShown, (400, 404))
        yield Route("GET", f"{PLAN}/events", self.events, "What happened to a plan", read, EventsShown, (400, 404))
        orders = (
            (":start", self.start, "Start a plan", PlanShown, OrderBody),
            (":pause", self.pause, "Pause a plan", PlanShown, PauseBody),
            (":resume", self.resume, "Go on with a plan", PlanShown, ResumeBody),
            (":cancel", self.cancel, "Cancel a plan", PlanShown, OrderBody),
            (":retry-failed", self.retry_failed, "Retry all failed tenants", PlanRetried, AgainBody),
        )
        for suffix, handler, summary, shows, body in orders:
            yield Route("POST", f"{PLAN}{suffix}", handler, summary, control, shows, (400, 404, 409), body=body)

    async def create(self, body: PlanBody, request: Request, _: NoQuery) -> Response:
        """It is checked as a whole: stages, jobs, configs, tenants, waves. Nothing is written if a tenant is busy, unless
        it may wait."""
        as_json(body.document, field="body")
        plan = await self._services.plans.create(body.document, actor_of(request))
        location = {"Location": f"{PLANS}/{plan.key}"}
        return answer(await self._detail(plan), status=201, headers=location)

    async def find(self, query: WhichPlans) -> Response:
        """A page of plans, newest first, without stages and waves; with `include=tasks` each has how many of its tenants are
        where."""
        statuses = frozenset({query.status} if query.status else ())
        filters = PlanFilter(statuses, printable(query.keyword, field="keyword") if query.keyword else None)
        found = await self._services.store.plans(filters, PageRequest(query.page, query.size))
        if query.include is None:
            return answer(page_shown(found, plan_summary))
        counts = await self._services.store.plan_counts([plan.id for plan in found.items])
        return answer(page_shown(found, lambda plan: plan_listed(plan, counts[plan.id])))

    async def show(self, plan_id: PlanId, _: NoQuery) -> Response:
        """The whole plan, and how many of its tenants are where."""
        return answer(await self._detail(await self._found(plan_id)))

    async def tasks(self, plan_id: PlanId, query: WhichTasks) -> Response:
        """A page of its tenants' tasks, in the order in which they are begun."""
        plan = await self._found(plan_id)
        statuses = frozenset({query.status} if query.status else ())
        wave = None if query.wave is None else query.wave - 1
        keyword = printable(query.keyword, field="keyword") if query.keyword else None
        filters = TaskFilter(plan.id, statuses, wave, keyword)
        found = await self._services.store.tasks(filters, PageRequest(query.page, query.size))
        return answer(page_shown(found, TaskShowing.by(self._services).summary))

    async def events(self, plan_id: PlanId, query: WhichEvents) -> Response:
        """Of the plan itself, oldest first; its tenants have their own."""
        plan = await self._found(plan_id)
        return answer(events_shown(await self._services.store.plan_events(plan.id, query.after, query.limit)))

    async def start(self, plan_id: PlanId, request: Request, _: NoQuery) -> Response:
        """READY → RUNNING."""
        body = await optional_body(request, OrderBody)
        actor = actor_of(request, body.reason or "")
        return answer(await self._detail(await self._services.plans.start(possible("plan", plan_id), actor)))

    async def pause(self, plan_id: PlanId, request: Request, _: NoQuery) -> Response:
        """No further tenant is begun; with `tasks`, those that run pause at their next stage boundary."""
        body = await optional_body(request, PauseBody)
        actor, key = actor_of(request, body.reason or ""), possible("plan", plan_id)
        return answer(await self._detail(await self._services.plans.pause(key, actor, tasks=body.tasks)))

    async def resume(self, plan_id: PlanId, request: Request, _: NoQuery) -> Response:
        """PAUSED → RUNNING, with the tenants that paused with it; with `override`, whatever its gate and its budget say."""
        body = await optional_body(request, ResumeBody)
        actor, key = actor_of(request, body.reason or ""), possible("plan", plan_id)
        return answer(await self._detail(await self._services.plans.resume(key, actor, override=body.override)))

    async def cancel(self, plan_id: PlanId, request: Request, _: NoQuery) -> Response:
        """All of it that has not ended, now: what runs is broken off."""
        body = await optional_body(request, OrderBody)
        actor = actor_of(request, body.reason or "")
        return answer(await self._detail(await self._services.plans.cancel(possible("plan", plan_id), actor)))

    async def retry_failed(self, plan_id: PlanId, request: Request, _: NoQuery) -> Response:
        """Every tenant that failed, again; a plan that had ended goes on. Tenants with another task are left as they are."""
        body = await optional_body(request, AgainBody)
        actor, key = actor_of(request, body.reason or ""), possible("plan", plan_id)
        plan, steered = await self._services.plans.retry_failed(key, actor, from_checkpoint=body.from_checkpoint)
        outcome = {"retried": steered.retried, "busyTenants": list(steered.busy)}
        return answer({**await self._detail(plan), **outcome})

    async def _found(self, plan_id: str) -> Plan:
        return await self._services.store.plan_by_key(possible("plan", plan_id))

    async def _detail(self, plan: Plan) -> dict[str, Any]:
        return plan_shown(plan, await self._services.store.plan_waves(plan))
