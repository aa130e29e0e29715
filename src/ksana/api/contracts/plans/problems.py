"""What went wrong, in document 004's codes. Those of conflicts are the domain's own."""

from collections.abc import Mapping

from ksana.api.contracts.wording import Wording
from ksana.domain.errors import IdTaken, NotFound

CODES: Mapping[tuple[str, str], str] = {
    (NotFound.code, "plan"): "PLAN_NOT_FOUND",
    (NotFound.code, "task"): "TASK_NOT_FOUND",
    (NotFound.code, "checkpoint"): "CHECKPOINT_NOT_FOUND",
    (IdTaken.code, "plan"): "PLAN_ID_CONFLICT",
}
IDS: Mapping[str, str] = {"plan": "planId", "task": "tenantId", "checkpoint": "tenantId"}

translate = Wording(CODES, IDS).translate
"""The same problem in this contract's words."""
