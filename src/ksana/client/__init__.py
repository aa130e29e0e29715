"""The Python client: what an operator, or a program of theirs, asks about tenants and plans, and the few orders to a task."""

from ksana.client.errors import FacadeError, FacadeUnavailable
from ksana.client.facade import PlanFacade
from ksana.client.status import PlanStatusInfo, Source, TaskStatusInfo
from ksana.domain.plan import PlanStatus, TaskStatus

__all__ = [
    "FacadeError",
    "FacadeUnavailable",
    "PlanFacade",
    "PlanStatus",
    "PlanStatusInfo",
    "Source",
    "TaskStatus",
    "TaskStatusInfo",
]
