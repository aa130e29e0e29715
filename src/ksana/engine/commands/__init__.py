"""The only way to change anything: every contract, the command line and the console go through these."""

from ksana.engine.commands.jobs import JobCommands, JobDraft, JobEdit, RunRequest, ScheduleDraft
from ksana.engine.commands.runs import CallbackMessage, Canceled, RunCommands
from ksana.engine.commands.schedules import ScheduleCommands, ScheduleEdit

__all__ = [
    "CallbackMessage",
    "Canceled",
    "JobCommands",
    "JobDraft",
    "JobEdit",
    "RunCommands",
    "RunRequest",
    "ScheduleCommands",
    "ScheduleDraft",
    "ScheduleEdit",
]
