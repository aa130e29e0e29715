"""What runs are of, where it is known as a whole."""

from typing import Any

from ksana.api.contracts.console.activity_showing import job_target, target
from ksana.domain.job import Job
from ksana.domain.plan import Plan
from ksana.domain.workflow import Workflow, WorkflowSummary
from ksana.store.activity_requests import TargetName


def of_job(job: Job) -> dict[str, Any]:
    """As `Target`."""
    return job_target(job.id, TargetName(job.key, job.spec.name, job.spec.contract))


def of_workflow(workflow: Workflow | WorkflowSummary) -> dict[str, Any]:
    """Likewise."""
    name = workflow.spec.name if isinstance(workflow, Workflow) else workflow.name
    return target("workflow", workflow.key, TargetName(workflow.key, name))


def of_plan(plan: Plan) -> dict[str, Any]:
    """Likewise."""
    return target("plan", plan.key, TargetName(plan.key, plan.spec.name))
