"""Ids as they stand in paths and bodies. One that nothing can have is not found; it is never an error of its own."""

from ksana.domain.dag_reading import MAX_NODE_ID
from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.ids import KEY_LENGTH, LARGEST_INTEGER, checked_key
from ksana.domain.job import Job
from ksana.domain.ledger import Schedule
from ksana.domain.plan import Plan, TenantTask
from ksana.domain.plan_reading import tenant_key
from ksana.domain.workflow import MAX_ITEMS, Workflow, item_id
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.base import Store

_DIGITS = len(str(LARGEST_INTEGER))
LONGEST_NODE = MAX_NODE_ID + len(item_id("", MAX_ITEMS))


async def found_job(store: Store, text: str) -> Job:
    """The job with that key; digits alone are the store's integer, which no key can be. NotFound."""
    if text.isascii() and text.isdigit():
        if len(text) > _DIGITS:
            raise NotFound("job", _echo(text))
        return await store.job(int(text))
    return await store.job_by_key(possible("job", text))


async def found_schedule(store: Store, text: str) -> Schedule:
    """The schedule with that key. NotFound."""
    return await store.schedule_by_key(possible("schedule", text))


async def found_workflow(store: Store, text: str) -> Workflow:
    """The workflow with that key. NotFound."""
    return await store.workflow_by_key(possible("workflow", text))


async def found_plan(store: Store, text: str) -> Plan:
    """The plan with that key. NotFound."""
    return await store.plan_by_key(possible("plan", text))


async def found_task(store: Store, text: str) -> TenantTask:
    """The tenant's task with that key. NotFound."""
    return await store.task_by_key(possible("task", text))


async def found_run(store: Store, text: str) -> WorkflowRun:
    """The workflow run with that key. NotFound."""
    return await store.workflow_run_by_key(possible("run", text))


def possible_node(text: str) -> str:
    """What may be the id of a node, or of an item of one. NotFound."""
    if not text.isprintable() or len(text) > LONGEST_NODE:
        raise NotFound("node", _echo(text))
    return text


def possible(kind: str, text: str) -> str:
    """What may be the key of something of that kind. NotFound."""
    try:
        return checked_key(text)
    except InvalidInput:
        raise NotFound(kind, _echo(text)) from None


def possible_tenant(text: str) -> str:
    """What may be the id of a tenant. NotFound, of its task."""
    try:
        key = tenant_key(text, "tenantId")
    except InvalidInput:
        key = ""
    if key != text:
        raise NotFound("task", _echo(text))
    return text


def _echo(text: str) -> str:
    """What was asked for, as far as it can be repeated: half a character cannot be written at all."""
    return text[:KEY_LENGTH].encode("ascii", "backslashreplace").decode()
