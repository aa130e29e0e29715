"""What a child process is told: a few variables of the server, and those of its attempt. Nothing else, ever (S27)."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from ksana.executors.base import ExecutionContext
from ksana.executors.templates_filters import TemplateFailed

PASSED_ON = ("PATH", "HOME", "LANG", "TZ")
PASSED_ON_PREFIX = "LC_"
OURS = "KSANA_"
MAX_VALUE = 131_000
"""Bytes. Linux starts no process that has a variable of 131,072 or more, its name included."""
VARIABLES = frozenset({"params", "nodes", "item", "index", "run_id", "node_id", "attempt", "input", "scheduled_at"})
"""What templates may use."""


def inherited(more: Iterable[str] = ()) -> dict[str, str]:
    """The variables of this server that a child gets: an allowlist, to which `more` are added. None of `KSANA_…`."""
    wanted = {*PASSED_ON, *more}
    found = {
        name: value
        for name, value in os.environ.items()
        if (name in wanted or name.startswith(PASSED_ON_PREFIX)) and not name.startswith(OURS)
    }
    return {"PATH": os.defpath, **found}


def variables(context: ExecutionContext) -> dict[str, Any]:
    """What the templates of an attempt are filled with. Outside a workflow, `node_id`, `item` and `index` are null."""
    place = context.place
    return {
        "params": context.params,
        "nodes": context.nodes,
        "item": place.item if place else None,
        "index": place.index if place else None,
        "run_id": run_id(context),
        "node_id": place.node_id if place else None,
        "attempt": context.execution.attempt,
        "input": context.execution.input,
        "scheduled_at": context.scheduled_at,
    }


def run_id(context: ExecutionContext) -> str:
    """The workflow run's id, or that of the job's own run."""
    return context.place.run_id if context.place else str(context.execution.id)


def of_attempt(context: ExecutionContext) -> dict[str, str]:
    """The variables that say which attempt this is. TemplateFailed if one is too long for a variable."""
    found = {
        "KSANA_RUN_ID": run_id(context),
        "KSANA_JOB": context.job.key,
        "KSANA_ATTEMPT": str(context.execution.attempt),
        "KSANA_IDEMPOTENCY_KEY": context.idempotency_key,
        "KSANA_TRACE_ID": context.trace_id,
        "KSANA_SCHEDULED_AT": context.scheduled_at,
        "KSANA_PARAMS": as_json(context.params),
    }
    if context.place is not None:
        found["KSANA_NODE_ID"] = context.place.node_id
        if context.place.index is not None:
            found["KSANA_ITEM"] = as_json(context.place.item)
            found["KSANA_INDEX"] = str(context.place.index)
    return checked_values(found)


def checked_values(values: Mapping[str, str]) -> dict[str, str]:
    """The same; TemplateFailed if one cannot be the value of a variable."""
    for name, value in values.items():
        if "\0" in value:
            raise TemplateFailed(f"env.{name}: has a NUL character, which no variable can hold")
        if len(value.encode("utf-8", "replace")) + len(name) > MAX_VALUE:
            raise TemplateFailed(f"env.{name}: is longer than the {MAX_VALUE} bytes that a variable can hold")
    return dict(values)


def as_json(value: Any) -> str:
    """Plain data as one line of JSON."""
    return orjson.dumps(value, default=_plain).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)
