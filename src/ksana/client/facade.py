"""Document 004's query API (§7) in Python: for people who look after a rollout, and for their scripts.

    facade = PlanFacade("http://127.0.0.1:7100")
    status = facade.query_task_status_by_tenant("tenant-001")
    if status is not None and status.status is TaskStatus.FAILED and facade.has_checkpoint("tenant-001"):
        facade.retry_task_by_tenant("tenant-001", from_checkpoint=True)

It is for the moments in which somebody looks and decides. To watch, take the metrics.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from ksana.client.calling import Caller
from ksana.client.errors import FacadeError, FacadeUnavailable
from ksana.client.projections import Projections
from ksana.client.status import PlanStatusInfo, TaskStatusInfo

T = TypeVar("T")
TENANTS_AT_ONCE = 1_000
_NO_TASK = frozenset({"TASK_NOT_FOUND"})
_NO_PLAN = frozenset({"PLAN_NOT_FOUND"})
_NO_CHECKPOINT = frozenset({"CHECKPOINT_NOT_FOUND", "TASK_NOT_FOUND"})


class PlanFacade:
    """Tasks of tenants, and plans, of the Ksana at `base_url`.

    With `redis_url` the queries are answered by what is shown in Redis while Ksana cannot be reached: `source` says so.
    Orders need Ksana. Everything may raise FacadeError and FacadeUnavailable; an address that is none, ValueError.
    """

    def __init__(
        self, base_url: str, *, redis_url: str | None = None, namespace: str = "executor", timeout: float = 10.0
    ) -> None:
        self._ksana = Caller(base_url, timeout)
        self._shown = None if redis_url is None else Projections(redis_url, namespace, timeout)

    # Queries ------------------------------------------------------------------------------------------------------

    def query_task_status_by_tenant(self, tenant_id: str) -> TaskStatusInfo | None:
        """The tenant's active task, else its latest; None if it never had one."""
        return self._answered(
            lambda: _unless(_NO_TASK, lambda: TaskStatusInfo.of_answer(self._ksana.get(_task(tenant_id)))),
            lambda shown: _tasks_shown(shown, [tenant_id]).get(tenant_id),
        )

    def query_tasks_by_tenants(self, tenant_ids: Iterable[str]) -> dict[str, TaskStatusInfo]:
        """The same of many tenants; those that never had a task are left out."""
        asked = list(dict.fromkeys(tenant_ids))
        return self._answered(lambda: self._many(asked), lambda shown: _tasks_shown(shown, asked))

    def query_plan_status(self, plan_id: str) -> PlanStatusInfo | None:
        """None if there is none."""
        path = f"/api/v1/plans/{_segment(plan_id)}"
        return self._answered(
            lambda: _unless(_NO_PLAN, lambda: PlanStatusInfo.of_answer(self._ksana.get(path))),
            lambda shown: None if (plan := shown.plan(plan_id)) is None else PlanStatusInfo.of_projection(plan),
        )

    def has_checkpoint(self, tenant_id: str) -> bool:
        """Whether the tenant's task could go on where it left off."""
        path = f"/api/v1/tenants/{_segment(tenant_id)}/checkpoint"
        return self._answered(
            lambda: _unless(_NO_CHECKPOINT, lambda: self._ksana.get(path)) is not None,
            lambda shown: (
                (task := shown.tasks([tenant_id]).get(tenant_id)) is not None and shown.has_checkpoint(task.task_id)
            ),
        )

    # Orders -------------------------------------------------------------------------------------------------------

    def retry_task_by_tenant(
        self,
        tenant_id: str,
        from_checkpoint: bool,  # noqa: FBT001 - as the document has it
        *,
        reason: str | None = None,
    ) -> TaskStatusInfo:
        """A failed or cancelled task again: the stages after its checkpoint, or all of them. `TENANT_BUSY`,
        `TASK_STATE_CONFLICT`."""
        return self._order(tenant_id, "retry", reason, {"fromCheckpoint": from_checkpoint})

    def pause_task_by_tenant(self, tenant_id: str, *, reason: str | None = None) -> TaskStatusInfo:
        """At the next stage boundary; `pause_requested` until then. `TASK_STATE_CONFLICT`."""
        return self._order(tenant_id, "pause", reason)

    def resume_task_by_tenant(self, tenant_id: str, *, reason: str | None = None) -> TaskStatusInfo:
        """`TASK_STATE_CONFLICT`."""
        return self._order(tenant_id, "resume", reason)

    def cancel_task_by_tenant(self, tenant_id: str, *, reason: str | None = None) -> TaskStatusInfo:
        """`TASK_STATE_CONFLICT`."""
        return self._order(tenant_id, "cancel", reason)

    # How ----------------------------------------------------------------------------------------------------------

    def _order(
        self, tenant_id: str, what: str, reason: str | None, body: Mapping[str, Any] | None = None
    ) -> TaskStatusInfo:
        told = {} if reason is None else {"reason": reason}
        return TaskStatusInfo.of_answer(self._ksana.post(f"{_task(tenant_id)}:{what}", {**(body or {}), **told}))

    def _many(self, tenant_ids: list[str]) -> dict[str, TaskStatusInfo]:
        found: dict[str, TaskStatusInfo] = {}
        for start in range(0, len(tenant_ids), TENANTS_AT_ONCE):
            body = {"tenantIds": tenant_ids[start : start + TENANTS_AT_ONCE]}
            tasks = map(TaskStatusInfo.of_answer, self._ksana.post("/api/v1/tenants:query", body).get("items", []))
            found |= {task.tenant_id: task for task in tasks}
        return found

    def _answered(self, by_ksana: Callable[[], T], by_redis: Callable[[Projections], T]) -> T:
        try:
            return by_ksana()
        except FacadeUnavailable as error:
            if self._shown is None:
                raise
            away, shown = error, self._shown
        try:
            return by_redis(shown)
        except FacadeUnavailable as error:
            raise FacadeUnavailable(away.code, f"{away.message}. {error.message}", away.details) from error


def _tasks_shown(shown: Projections, tenant_ids: list[str]) -> dict[str, TaskStatusInfo]:
    return {tenant: TaskStatusInfo.of_projection(task) for tenant, task in shown.tasks(tenant_ids).items()}


def _unless(codes: frozenset[str], ask: Callable[[], T]) -> T | None:
    """None if Ksana answers with one of these codes."""
    try:
        return ask()
    except FacadeError as error:
        if error.code in codes:
            return None
        raise


def _task(tenant_id: str) -> str:
    return f"/api/v1/tenants/{_segment(tenant_id)}/task"


def _segment(name: str) -> str:
    """A part of a path. ValueError if it is empty: the path would be another."""
    if not name:
        raise ValueError("an id must not be empty")
    return quote(name, safe="")
