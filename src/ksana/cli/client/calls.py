"""Every command that asks a running Ksana, and the request that it stands for: the one table of both.

The tree of commands is made of it, and so is the table in `docs/reference/cli.md`, from which the console takes what to type.
Nothing is imported here that `ksana serve` would not need.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

GROUPS: Mapping[str, str] = {
    "jobs": "What can be run.",
    "runs": "What ran, runs and waits.",
    "nodes": "Nodes of a workflow's run.",
    "schedules": "When jobs and workflows run.",
    "workflows": "Graphs of jobs.",
    "plans": "Rollouts over many tenants.",
    "tenants": "A tenant's task in a plan.",
    "failures": "What failed and nobody has acknowledged.",
}
ALONE = ("events", "instances")
"""Commands that belong to no family."""


@dataclass(frozen=True, slots=True)
class Call:
    """`form` is what follows `ksana`: words, IDS in the order of the path's, and flags; those in brackets may be left out."""

    form: str
    method: str
    path: str
    meaning: str

    @property
    def words(self) -> tuple[str, ...]:
        """The command's name: `("runs", "stop")`."""
        return tuple(takewhile(lambda word: word[0].islower(), self.form.split()))


_API = "/api/v1"
_WHICH = "[--status S,S] [--kind KIND] [--job JOB] [--workflow WORKFLOW] [--tenant TENANT] [--trigger WHO] [--from T] [--to T]"
_WHY = "[--reason TEXT]"
_PAGE = "[--limit N] [--page N]"


def _call(form: str, request: str, meaning: str) -> Call:
    method, path = request.split()
    return Call(form, method, _API + path, meaning)


CALLS: Mapping[str, Call] = {
    # jobs
    "jobs list": _call(
        f"jobs list [--keyword TEXT] [--type TYPE] [--enabled] [--disabled] {_PAGE}", "GET /jobs", "List jobs."
    ),
    "jobs show": _call("jobs show JOB", "GET /jobs/{job}", "Show a job."),
    "jobs run": _call(
        f"jobs run JOB [--input JSON] [--wait] {_WHY}",
        "POST /jobs/{job}:run",
        "Run a job now, whatever its schedules say.",
    ),
    "jobs enable": _call(
        "jobs enable JOB", "POST /jobs/{job}:enable", "Let a job run: its schedules go on, and workflows may name it."
    ),
    "jobs disable": _call(
        "jobs disable JOB", "POST /jobs/{job}:disable", "Hold a job's schedules, and keep workflows from naming it."
    ),
    "jobs apply": _call(
        "jobs apply FILE", "POST /jobs", "Create the job that a file describes, if there is none of its name."
    ),
    "jobs apply --change": _call(
        "jobs apply FILE", "PUT /jobs/{job}", "Else make it what the file describes; the rest of it stays."
    ),
    "jobs delete": _call("jobs delete JOB", "DELETE /jobs/{job}", "Delete a job and its schedules."),
    # runs
    "runs list": _call(
        f"runs list {_WHICH} [--sort ORDER] [--limit N] [--cursor C]", "GET /activity", "List runs, the newest first."
    ),
    "runs show": _call("runs show RUN", "GET /runs/{run}", "Show a run, its attempts or nodes."),
    "runs logs": _call(
        "runs logs RUN [--follow] [--attempt N]", "GET /runs/{run}/logs", "Print what a run has written."
    ),
    "runs logs --node": _call(
        "runs logs RUN --node NODE [--follow] [--attempt N]",
        "GET /runs/{run}/nodes/{node}/logs",
        "Print what a node of a workflow's run has written.",
    ),
    "runs explain": _call("runs explain RUN", "GET /runs/{run}/explain", "Say why a job's run is not running yet."),
    "runs retry": _call(
        f"runs retry RUN {_WHY}",
        "POST /runs/{run}:retry",
        "Run a job once more with the same input, or all nodes of a workflow's run that failed.",
    ),
    "runs retry --many": _call(
        f"runs retry [RUN RUN …] {_WHICH} [--cursor C] [--dry-run] {_WHY}",
        "POST /activity:retry",
        "The same for many: by their ids, or all that match.",
    ),
    "runs cancel": _call(
        f"runs cancel [RUN …] {_WHICH} [--cursor C] [--dry-run] {_WHY}",
        "POST /activity:cancel",
        "Cancel what has not ended, by ids, or all that match.",
    ),
    "runs stop": _call(
        f"runs stop RUN [--force] {_WHY}",
        "POST /runs/{run}:stop",
        "Begin no more nodes of a workflow's run; break off those that run with --force.",
    ),
    "runs close": _call(f"runs close RUN {_WHY}", "POST /runs/{run}:close", "End a workflow's run for good."),
    "runs resume": _call(
        f"runs resume RUN {_WHY}", "POST /runs/{run}:resume", "Go on with a workflow's run that was stopped."
    ),
    "runs retry-failed": _call(
        f"runs retry-failed RUN {_WHY}",
        "POST /runs/{run}:retry-failed",
        "Retry all nodes of a workflow's run that failed.",
    ),
    # nodes
    "nodes retry": _call(
        f"nodes retry RUN NODE {_WHY}", "POST /runs/{run}/nodes/{node}:retry", "Run a node once more."
    ),
    "nodes complete": _call(
        f"nodes complete RUN NODE [--output JSON] {_WHY}",
        "POST /runs/{run}/nodes/{node}:complete",
        "Count a node as succeeded, with this output.",
    ),
    "nodes skip": _call(f"nodes skip RUN NODE {_WHY}", "POST /runs/{run}/nodes/{node}:skip", "Leave a node out."),
    # schedules
    "schedules list": _call(
        f"schedules list [--job JOB] [--workflow WORKFLOW] {_PAGE}", "GET /schedules", "List schedules."
    ),
    "schedules show": _call("schedules show SCHEDULE", "GET /schedules/{schedule}", "Show a schedule."),
    "schedules next": _call(
        "schedules next SCHEDULE [--count N]",
        "GET /schedules/{schedule}/next",
        "Print when a schedule is going to fire.",
    ),
    "schedules preview": _call(
        "schedules preview [--cron EXPRESSION] [--every DURATION] [--at T] [--timezone ZONE] [--count N]",
        "POST /schedules:preview",
        "Print when a schedule would fire, without making one.",
    ),
    "schedules apply": _call(
        "schedules apply FILE",
        "POST /schedules",
        "Create the schedule that a file describes, unless its job or workflow has the same.",
    ),
    "schedules apply --change": _call(
        "schedules apply FILE",
        "PATCH /schedules/{schedule}",
        "With an id in the file, make that one what it describes; the rest of it stays.",
    ),
    "schedules pause": _call("schedules pause SCHEDULE", "POST /schedules/{schedule}/pause", "Hold a schedule."),
    "schedules resume": _call(
        "schedules resume SCHEDULE", "POST /schedules/{schedule}/resume", "Let a schedule go on."
    ),
    "schedules delete": _call("schedules delete SCHEDULE", "DELETE /schedules/{schedule}", "Delete a schedule."),
    # workflows
    "workflows list": _call(
        f"workflows list [--keyword TEXT] [--enabled] [--disabled] {_PAGE}", "GET /workflows", "List workflows."
    ),
    "workflows show": _call("workflows show WORKFLOW", "GET /workflows/{workflow}", "Show a workflow and its nodes."),
    "workflows start": _call(
        "workflows start WORKFLOW [--params JSON] [--run-id ID] [--wait]",
        "POST /workflows/{workflow}:start",
        "Start a run of a workflow.",
    ),
    "workflows enable": _call(
        "workflows enable WORKFLOW", "POST /workflows/{workflow}:enable", "Let a workflow be started."
    ),
    "workflows disable": _call(
        "workflows disable WORKFLOW", "POST /workflows/{workflow}:disable", "Keep a workflow from being started."
    ),
    "workflows validate": _call(
        "workflows validate FILE", "POST /workflows:validate", "Check a workflow's graph, without keeping it."
    ),
    "workflows apply": _call(
        "workflows apply FILE",
        "POST /workflows",
        "Create the workflow that a file describes, if there is none of its id or name.",
    ),
    "workflows apply --change": _call(
        "workflows apply FILE", "PUT /workflows/{workflow}", "Else make it what the file describes: a new version."
    ),
    "workflows delete": _call("workflows delete WORKFLOW", "DELETE /workflows/{workflow}", "Delete a workflow."),
    # plans
    "plans list": _call(f"plans list [--status S,S] [--keyword TEXT] {_PAGE}", "GET /plans", "List plans."),
    "plans show": _call("plans show PLAN", "GET /plans/{plan}", "Show a plan and its waves."),
    "plans create": _call("plans create FILE", "POST /plans", "Create the plan that a file describes."),
    "plans start": _call(f"plans start PLAN {_WHY}", "POST /plans/{plan}:start", "Start a plan."),
    "plans pause": _call(
        f"plans pause PLAN [--tasks] {_WHY}",
        "POST /plans/{plan}:pause",
        "Begin with no more tenants; hold those that are under way, too, with --tasks.",
    ),
    "plans resume": _call(
        f"plans resume PLAN [--override] {_WHY}",
        "POST /plans/{plan}:resume",
        "Go on; with --override although a gate or the failure budget says no.",
    ),
    "plans cancel": _call(f"plans cancel PLAN {_WHY}", "POST /plans/{plan}:cancel", "Cancel a plan and its tasks."),
    "plans retry-failed": _call(
        f"plans retry-failed PLAN [--from-start] {_WHY}",
        "POST /plans/{plan}:retry-failed",
        "Retry all tenants that failed, from their checkpoints or from the first stage.",
    ),
    # tenants
    "tenants show": _call("tenants show TENANT [--plan PLAN]", "GET /tenants/{tenant}/task", "Show a tenant's task."),
    "tenants checkpoint": _call(
        "tenants checkpoint TENANT [--plan PLAN]",
        "GET /tenants/{tenant}/checkpoint",
        "Show from where a tenant's task would go on.",
    ),
    "tenants remove-checkpoint": _call(
        "tenants remove-checkpoint TENANT [--plan PLAN] [--version N]",
        "DELETE /tenants/{tenant}/checkpoint",
        "Let a tenant's task that failed begin from its first stage.",
    ),
    "tenants pause": _call(
        f"tenants pause TENANT [--plan PLAN] {_WHY}",
        "POST /tenants/{tenant}/task:pause",
        "Hold a tenant's task at the next stage boundary.",
    ),
    "tenants resume": _call(
        f"tenants resume TENANT [--plan PLAN] {_WHY}",
        "POST /tenants/{tenant}/task:resume",
        "Let a tenant's task go on.",
    ),
    "tenants cancel": _call(
        f"tenants cancel TENANT [--plan PLAN] {_WHY}", "POST /tenants/{tenant}/task:cancel", "Cancel a tenant's task."
    ),
    "tenants retry": _call(
        f"tenants retry TENANT [--plan PLAN] [--from-start] {_WHY}",
        "POST /tenants/{tenant}/task:retry",
        "Retry a tenant's task, from its checkpoint or from the first stage.",
    ),
    # failures
    "failures list": _call(
        "failures list [--limit N]", "GET /failures", "List what failed, by job, workflow and plan."
    ),
    "failures acknowledge": _call(
        f"failures acknowledge [--job JOB] [--workflow WORKFLOW] [--plan PLAN] [--all] [--until T] {_WHY}",
        "POST /failures:acknowledge",
        "Say that failures were seen: of one job, workflow or plan, or all of them.",
    ),
    # alone
    "events": _call(
        "events [--follow] [--types TYPE,TYPE] [--subject KIND/ID] [--run RUN] [--after N] [--limit N]",
        "GET /events",
        "Print what happened; with --follow, what happens.",
    ),
    "instances": _call("instances [--status S]", "GET /instances", "List the instances of Ksana."),
}
