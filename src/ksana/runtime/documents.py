"""How runtime state is written down, once for every back end: the fields and texts of document 004, §6.2, and back.

A projection is a mapping of texts, as a Redis hash holds it; a checkpoint is one JSON text. What cannot be read back is
UnreadableState, which tells the key and what was wrong.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Generic, NoReturn, TypeVar

from ksana.domain.errors import InvalidInput, UnreadableState
from ksana.runtime.base import Checkpoint, Kind, PlanProjection, TaskProjection

T = TypeVar("T")
Fields = dict[str, str]
P = TypeVar("P", bound=TaskProjection | PlanProjection)


class ErrorType(StrEnum):
    """What is wrong with a value that cannot be read."""

    NOT_JSON = "NOT_JSON"
    MISSING_FIELD = "MISSING_FIELD"
    WRONG_FIELD_TYPE = "WRONG_FIELD_TYPE"
    WRONG_KEY_TYPE = "WRONG_KEY_TYPE"


# Writing ------------------------------------------------------------------------------------------------------------


def checkpoint_text(checkpoint: Checkpoint) -> str:
    """InvalidInput if its context cannot be JSON."""
    return to_text(
        {
            "lastCompletedStageIndex": checkpoint.last_completed_stage_index,
            "completedStages": list(checkpoint.completed_stages),
            "contextData": checkpoint.context_data,
            "savedAt": instant_text(checkpoint.saved_at),
            "version": checkpoint.version,
        }
    )


def task_fields(task: TaskProjection) -> Fields:
    return {
        "taskId": task.task_id,
        "tenantId": task.tenant_id,
        "planId": task.plan_id,
        "status": str(task.status),
        "pauseRequested": "true" if task.pause_requested else "false",
        "stageNames": to_text(list(task.stage_names)),
        "lastCompletedStageIndex": str(task.last_completed_stage_index),
        "createdAt": instant_text(task.created_at),
        "updatedAt": instant_text(task.updated_at),
    }


def plan_fields(plan: PlanProjection) -> Fields:
    return {
        "planId": plan.plan_id,
        "status": str(plan.status),
        "taskIds": to_text(list(plan.task_ids)),
        "progress": str(float(plan.progress)),
        "maxConcurrency": str(plan.max_concurrency),
        "createdAt": instant_text(plan.created_at),
        "updatedAt": instant_text(plan.updated_at),
    }


def to_text(value: Any) -> str:
    """Compact JSON. Half a character, which UTF-8 has no bytes for, becomes `?`, as in the store. InvalidInput."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("contextData", f"cannot be kept: {error}") from error
    return text.encode("utf-8", "replace").decode()


def _plain(value: Any) -> dict[Any, Any]:
    """A mapping of another kind as the dict that `json` wants."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def instant_text(instant: datetime) -> str:
    """ISO without a zone, in UTC; a fraction only where there is one."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat()


# Reading ------------------------------------------------------------------------------------------------------------


def read_checkpoint(key: str, text: str | bytes) -> Checkpoint:
    """One without `version` is of before there were any: 0. UnreadableState."""
    document = _Document(key, read_object(key, text))
    return Checkpoint(
        last_completed_stage_index=document.whole("lastCompletedStageIndex"),
        completed_stages=document.texts("completedStages"),
        context_data=document.mapping("contextData"),
        saved_at=document.instant("savedAt"),
        version=document.whole("version") if "version" in document.fields else 0,
    )


def read_task(key: str, fields: Mapping[str, Any]) -> TaskProjection:
    """UnreadableState."""
    document = _Document(key, fields)
    return TaskProjection(
        task_id=document.text("taskId"),
        tenant_id=document.text("tenantId"),
        plan_id=document.text("planId"),
        status=document.text("status"),
        pause_requested=document.parsed("pauseRequested", _flag),
        stage_names=document.texts_within("stageNames"),
        last_completed_stage_index=document.parsed("lastCompletedStageIndex", int),
        created_at=document.instant("createdAt"),
        updated_at=document.instant("updatedAt"),
    )


def read_plan(key: str, fields: Mapping[str, Any]) -> PlanProjection:
    """UnreadableState."""
    document = _Document(key, fields)
    return PlanProjection(
        plan_id=document.text("planId"),
        status=document.text("status"),
        task_ids=document.texts_within("taskIds"),
        progress=document.parsed("progress", float),
        max_concurrency=document.parsed("maxConcurrency", int),
        created_at=document.instant("createdAt"),
        updated_at=document.instant("updatedAt"),
    )


def read_object(key: str, text: str | bytes) -> dict[str, Any]:
    """The JSON object that a text is. UnreadableState."""
    found = _loaded(key, text)
    if not isinstance(found, dict):
        raise UnreadableState(key, ErrorType.WRONG_FIELD_TYPE, "is not a JSON object")
    return found


def wrong_key_type(key: str, found: str) -> UnreadableState:
    return UnreadableState(key, ErrorType.WRONG_KEY_TYPE, f"is a {found}, which Ksana never wrote")


def _loaded(key: str, text: str | bytes, name: str = "") -> Any:
    try:
        return json.loads(text.decode() if isinstance(text, bytes) else text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UnreadableState(key, ErrorType.NOT_JSON, f"{name}is not JSON: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("neither true nor false")
    return text == "true"


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


class _Document:
    """Fields of which each must be there and be of its type."""

    def __init__(self, key: str, fields: Mapping[str, Any]) -> None:
        self.key = key
        self.fields = fields

    def text(self, name: str) -> str:
        return self._typed(name, str, "a text")

    def whole(self, name: str) -> int:
        return self._typed(name, int, "a whole number")

    def mapping(self, name: str) -> dict[str, Any]:
        return self._typed(name, dict, "an object")

    def texts(self, name: str) -> tuple[str, ...]:
        return self._all_texts(name, self._typed(name, list, "an array"))

    def texts_within(self, name: str) -> tuple[str, ...]:
        """An array that is itself kept as a text."""
        return self._all_texts(name, _loaded(self.key, self.text(name), f"{name} "))

    def instant(self, name: str) -> datetime:
        return self.parsed(name, _instant)

    def parsed(self, name: str, parse: Callable[[str], T]) -> T:
        text = self.text(name)
        try:
            return parse(text)
        except (ValueError, OverflowError) as error:
            raise self._wrong(name, f"{text[:100]!r}: {error}") from error

    def _typed(self, name: str, kind: type[T], wanted: str) -> T:
        if name not in self.fields:
            raise UnreadableState(self.key, ErrorType.MISSING_FIELD, f"has no {name}")
        found = self.fields[name]
        # true is a whole number to Python, and to nobody else.
        if not isinstance(found, kind) or isinstance(found, bool):
            raise self._wrong(name, f"not {wanted}")
        return found

    def _all_texts(self, name: str, found: Sequence[Any]) -> tuple[str, ...]:
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self._wrong(name, "not an array of texts")
        return tuple(found)

    def _wrong(self, name: str, message: str) -> UnreadableState:
        return UnreadableState(self.key, ErrorType.WRONG_FIELD_TYPE, f"{name} is {message}")


# The two projections ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Form(Generic[P]):
    """What a back end must know of a projection to keep it."""

    kind: Kind
    identify: Callable[[P], str]
    encode: Callable[[P], Fields]
    decode: Callable[[str, Mapping[str, Any]], P]


TASKS: Form[TaskProjection] = Form(Kind.TASK, lambda task: task.task_id, task_fields, read_task)
PLANS: Form[PlanProjection] = Form(Kind.PLAN, lambda plan: plan.plan_id, plan_fields, read_plan)
