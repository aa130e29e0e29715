"""Every error Ksana raises on purpose, in one tree. The edges translate it: `api/errors.py` into HTTP, `cli` into exit codes.

KsanaError
├── InvalidInput            the caller's data is wrong; `field` names the part
│   ├── InvalidSetting      the same, in the settings file, the environment or a flag
│   └── InvalidDag          a workflow's graph cannot be run; `details.node` names the node
│       ├── UnknownJob      a node names a job that is not there
│       └── DisabledJob     a node names a job that is switched off
├── NotFound                nothing has that id
├── Conflict                the data is fine, but not now
│   ├── NameTaken           another one has that name
│   ├── IdTaken             another one has that id
│   ├── VersionMismatch     somebody changed it first
│   ├── ConcurrencyLimit    as many are running as its job allows
│   ├── JobInUse            workflows name it
│   ├── WorkflowInUse       other workflows name it
│   ├── WorkflowDisabled    it is switched off
│   ├── RunNotRunning       the workflow run has ended
│   │   ├── RunTerminal     it has ended for good
│   │   └── RunNotStopped   it has not ended, or has succeeded: there is nothing to resume
│   ├── NodeNotRetryable    the node is not in a state in which this can be asked of it
│   ├── NodeNotCompletable  likewise
│   ├── NodeNotSkippable    likewise
│   ├── RunOfPlan           the run is a tenant's task: its plan steers it
│   ├── RunOfWorkflow       the run is a node of a workflow's run
│   ├── TenantBusy          the tenant has another task
│   ├── PlanRefused         the plan is not in a state in which this can be asked of it
│   ├── TaskRefused         likewise, a tenant's task
│   ├── GateShut            too many tenants of the last wave failed
│   ├── BudgetSpent         too many tenants of the plan failed
│   ├── CheckpointStale     somebody saved it since
│   └── IllegalTransition   the thing is not in a state from which it can go there
├── RuntimeStateError       what is shown of plans outside the database
│   ├── RuntimeUnavailable  not reachable now; the database has everything
│   ├── UnsafeRuntime       it would forget by itself what it should keep
│   └── UnreadableState     a value there is not what Ksana wrote
└── StoreError              the database
    ├── StoreUnavailable    not reachable now; trying again may help
    │   ├── StoreBusy       its locks are held by others
    │   └── CommitUnknown   it broke off at COMMIT: the change may or may not have been written
    ├── StoreFull           no room left to write
    ├── NotSupported        this kind of database does not keep that
    ├── StoreInUse          another process holds the data directory
    └── SchemaMismatch      its tables are older or newer than this program

`code` is stable and is what clients may branch on. A contract may show another code for the same error (`api/contracts`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class KsanaError(Exception):
    """The root. `message` is for people, `code` for programs, `details` for both."""

    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})


class InvalidInput(KsanaError):
    """The caller's data is wrong. `field` is the path of the offending part, as the caller wrote it."""

    code = "VALIDATION_ERROR"

    def __init__(self, field: str, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{field}: {message}", details={"field": field, **(details or {})})
        self.field = field
        self.reason = message


class InvalidSetting(InvalidInput):
    """A setting has a value that cannot be used. `source` says where it was read."""

    code = "INVALID_SETTING"

    def __init__(self, field: str, message: str, *, source: str = "default") -> None:
        super().__init__(field, message, details={"source": source})
        self.message = f"setting {field} (from {source}): {message}"
        self.args = (self.message,)
        self.source = source


class InvalidDag(InvalidInput):
    """`field` is the place in the dag, as in `dag.nodes[3].retry`; `node` the id of the node, if it has one."""

    code = "WORKFLOW_DAG_INVALID"

    def __init__(self, field: str, message: str, *, node: str | None = None, **more: Any) -> None:
        super().__init__(field, message, details={**({} if node is None else {"node": node}), **more})


class UnknownJob(InvalidDag):
    code = "JOB_NOT_FOUND"


class DisabledJob(InvalidDag):
    code = "JOB_DISABLED"


class NotFound(KsanaError):
    """Nothing of that `kind` has that id."""

    code = "NOT_FOUND"

    def __init__(self, kind: str, key: object) -> None:
        super().__init__(f"{kind} not found: {key}", details={"kind": kind, "id": key})
        self.kind = kind


class Conflict(KsanaError):
    """The request is well-formed, but the state of things does not allow it now."""

    code = "CONFLICT"


class NameTaken(Conflict):
    code = "NAME_CONFLICT"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} name is taken: {name}", details={"kind": kind, "field": "name", "name": name})
        self.kind = kind


class IdTaken(Conflict):
    code = "ID_CONFLICT"

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"{kind} id is taken: {key}", details={"kind": kind, "field": "id", "id": key})
        self.kind = kind


class VersionMismatch(Conflict):
    code = "VERSION_CONFLICT"

    def __init__(self, kind: str, key: object, *, expected: int, actual: int) -> None:
        super().__init__(
            f"{kind} {key} is at version {actual}, not {expected}: read it again and repeat the change",
            details={"kind": kind, "id": key, "expected": expected, "actual": actual},
        )
        self.kind = kind


class ConcurrencyLimit(Conflict):
    code = "CONCURRENCY_LIMIT"

    def __init__(self, key: object, *, limit: int, queue: int = 0, kind: str = "job") -> None:
        waiting = f", and {queue} may wait" if queue else ", and none may wait"
        told = f"{kind} {key} takes no more runs now: {limit} may run at a time{waiting}"
        super().__init__(told, details={"limit": limit, "queue": queue})


class JobInUse(Conflict):
    code = "JOB_IN_USE"

    def __init__(self, job: object, workflows: Sequence[str]) -> None:
        told = f"job {job} is used by workflows: {', '.join(workflows)}"
        super().__init__(told, details={"id": job, "workflows": list(workflows)})


class WorkflowInUse(Conflict):
    code = "WORKFLOW_IN_USE"

    def __init__(self, key: object, workflows: Sequence[str]) -> None:
        told = f"workflow {key} is used by workflows: {', '.join(workflows)}"
        super().__init__(told, details={"workflowId": key, "workflows": list(workflows)})


class WorkflowDisabled(Conflict):
    code = "WORKFLOW_DISABLED"

    def __init__(self, key: object) -> None:
        super().__init__(f"workflow is disabled: {key}", details={"workflowId": key})


class RunNotRunning(Conflict):
    code = "RUN_NOT_RUNNING"

    def __init__(self, key: str, status: str) -> None:
        super().__init__(f"run {key} is {status}", details={"runId": key, "status": status})


class RunTerminal(RunNotRunning):
    code = "RUN_TERMINAL"


class RunNotStopped(RunNotRunning):
    code = "RUN_NOT_STOPPED"


class _NodeRefused(Conflict):
    done: ClassVar[str]

    def __init__(self, run: str, node: str, status: str) -> None:
        told = f"node {node} is {status}: it cannot be {self.done} now"
        super().__init__(told, details={"runId": run, "nodeId": node, "status": status})


class NodeNotRetryable(_NodeRefused):
    code = "NODE_NOT_RETRYABLE"
    done = "retried"


class NodeNotCompletable(_NodeRefused):
    code = "NODE_NOT_COMPLETABLE"
    done = "completed"


class NodeNotSkippable(_NodeRefused):
    code = "NODE_NOT_SKIPPABLE"
    done = "skipped"


class RunOfPlan(Conflict):
    code = "RUN_OF_PLAN"

    def __init__(self, run: str, plan: str, tenant: str) -> None:
        told = f"run {run} is the task of tenant {tenant} in plan {plan}: steer it at /api/v1/tenants/{tenant}/task"
        super().__init__(told, details={"runId": run, "planId": plan, "tenantId": tenant})


class RunOfWorkflow(Conflict):
    code = "RUN_OF_WORKFLOW"

    def __init__(self, run: int, node: str) -> None:
        told = f"run {run} is the node {node} of a workflow's run: give it orders there"
        super().__init__(told, details={"runId": str(run), "nodeId": node})


class TenantBusy(Conflict):
    code = "TENANT_BUSY"

    def __init__(self, tenant: str, *, plan: str, task: str, others: Sequence[Mapping[str, str]] = ()) -> None:
        more = f", and {len(others)} other tenants are busy, too" if others else ""
        told = f"tenant {tenant} already has a task: {task} of plan {plan}{more}"
        details: dict[str, Any] = {"tenantId": tenant, "planId": plan, "taskId": task}
        super().__init__(told, details=details | ({"others": list(others)} if others else {}))


class PlanRefused(Conflict):
    code = "PLAN_STATE_CONFLICT"

    def __init__(self, plan: str, status: str, asked: str) -> None:
        super().__init__(f"plan {plan} is {status}: it cannot be {asked}", details={"planId": plan, "status": status})


class TaskRefused(Conflict):
    code = "TASK_STATE_CONFLICT"

    def __init__(self, tenant: str, task: str, status: str, asked: str) -> None:
        told = f"the task of tenant {tenant} is {status}: it cannot be {asked}"
        super().__init__(told, details={"tenantId": tenant, "taskId": task, "status": status})


class GateShut(Conflict):
    code = "GATE_NOT_MET"

    def __init__(self, plan: str, message: str) -> None:
        told = f"{message}; retry those that failed, or resume with override"
        super().__init__(told, details={"planId": plan})


class BudgetSpent(Conflict):
    code = "FAILURE_BUDGET_EXCEEDED"

    def __init__(self, plan: str, message: str) -> None:
        told = f"{message}; retry those that failed, or resume with override"
        super().__init__(told, details={"planId": plan})


class CheckpointStale(Conflict):
    code = "CHECKPOINT_CONFLICT"

    def __init__(self, task: str, *, expected: int, actual: int) -> None:
        told = f"the checkpoint of task {task} is at version {actual}, not {expected}: read it again"
        super().__init__(told, details={"taskId": task, "expected": expected, "actual": actual})


class IllegalTransition(Conflict):
    code = "ILLEGAL_TRANSITION"

    def __init__(self, machine: str, source: str, target: str) -> None:
        super().__init__(f"{machine}: {source} cannot become {target}", details={"from": source, "to": target})


class RuntimeStateError(KsanaError):
    code = "RUNTIME_STATE_ERROR"


class RuntimeUnavailable(RuntimeStateError):
    code = "RUNTIME_STATE_UNAVAILABLE"


class UnsafeRuntime(RuntimeStateError):
    code = "RUNTIME_STATE_UNSAFE"


class UnreadableState(RuntimeStateError):
    """`error_type` tells what was wrong: not JSON, a field missing, a field of another type, a key of another type."""

    code = "RUNTIME_STATE_UNREADABLE"

    def __init__(self, key: str, error_type: str, message: str) -> None:
        super().__init__(f"{key}: {message}", details={"key": key, "errorType": error_type})
        self.key = key
        self.error_type = error_type


class StoreError(KsanaError):
    code = "STORE_ERROR"


class StoreUnavailable(StoreError):
    code = "STORE_UNAVAILABLE"


class StoreBusy(StoreUnavailable):
    code = "STORE_BUSY"


class CommitUnknown(StoreUnavailable):
    code = "COMMIT_UNKNOWN"


class StoreFull(StoreError):
    code = "STORE_FULL"


class NotSupported(StoreError):
    code = "NOT_SUPPORTED"


class StoreInUse(StoreError):
    code = "STORE_IN_USE"


class SchemaMismatch(StoreError):
    code = "SCHEMA_MISMATCH"
