"""Whether two documents are one schedule, however they write it. They are read as the server reads them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from ksana.api.contracts.schedules_models import PARTS, ScheduleBody
from ksana.api.contracts.schedules_showing import SCHEDULES_WORDING
from ksana.api.contracts.schedules_spec import read_spec
from ksana.domain.errors import InvalidInput
from ksana.domain.schedule import ScheduleSpec
from ksana.engine.params import check_params

_NAMES = frozenset(ScheduleBody.model_fields[part].alias or part for part in PARTS)
_ANY = datetime(2000, 1, 1, tzinfo=UTC)
"""From when an interval without a start counts: the same for both."""


def is_same(wanted: Mapping[str, Any], shown: Mapping[str, Any], params_schema: Any) -> bool:
    """One definition and one input, which for a workflow has its schema's defaults. What cannot be read is the same as nothing:
    the server says why."""
    try:
        if _definition(wanted) != _definition(shown):
            return False
        given = wanted.get("input") or {}
        filled = given if params_schema is None else check_params(params_schema, given, field="input")
    except (InvalidInput, ValidationError):
        return False
    return bool(filled == shown["input"])


def _definition(document: Mapping[str, Any]) -> ScheduleSpec:
    body = ScheduleBody.model_validate({name: value for name, value in document.items() if name in _NAMES})
    return read_spec(body.model_dump(include=set(PARTS)), SCHEDULES_WORDING, now=_ANY)
