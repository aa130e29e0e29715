"""The only way to change anything: every contract, the command line and the console go through these."""

from ksana.engine.commands.activity import ActivityCommands, Chosen, Done, Wish
from ksana.engine.commands.definitions import NodeDefaults, Resolver
from ksana.engine.commands.jobs import JobCommands, JobDraft, JobEdit, RunRequest, ScheduleDraft
from ksana.engine.commands.plans import PlanCommands, PlanOptions
from ksana.engine.commands.runs import CallbackMessage, Canceled, RunCommands
from ksana.engine.commands.schedules import ScheduleCommands, ScheduleEdit
from ksana.engine.commands.workflow_runs import WorkflowRunCommands
from ksana.engine.commands.workflows import StartRequest, WorkflowCommands, WorkflowDraft, WorkflowEdit

__all__ = [
    "ActivityCommands",
    "CallbackMessage",
    "Canceled",
    "Chosen",
    "Done",
    "JobCommands",
    "JobDraft",
    "JobEdit",
    "NodeDefaults",
    "PlanCommands",
    "PlanOptions",
    "Resolver",
    "RunCommands",
    "RunRequest",
    "ScheduleCommands",
    "ScheduleDraft",
    "ScheduleEdit",
    "StartRequest",
    "Wish",
    "WorkflowCommands",
    "WorkflowDraft",
    "WorkflowEdit",
    "WorkflowRunCommands",
]
