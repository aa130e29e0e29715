"""What a job's config says of the job itself. An `http` job's names, beside what its executor reads, whether a callback
brings the result and how long that is waited for: parts of the JobSpec that a client writes, and reads, within the config."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidInput
from ksana.domain.job import ExecutionMode, JobSpec

HTTP = "http"
MODE = "mode"
CALLBACK_TIMEOUT = "callback_timeout"
USUAL_MODE = ExecutionMode.SYNC
USUAL_CALLBACK_TIMEOUT = timedelta(seconds=300)
UNSAID: Mapping[str, Mapping[str, Any]] = {
    HTTP: {"headers": {}, "body": None, "connect_timeout": None, "follow_redirects": False, "callback_method": "POST"},
    "shell": {"env": {}, "cwd": None},
    "python": {"params": {}},
}
"""By type, what an executor writes into a config where its author says nothing: not shown, so that a config comes back as it
was sent."""


def split_config(job_type: str, config: Mapping[str, Any]) -> tuple[dict[str, Any], ExecutionMode, timedelta]:
    """The config as its executor takes it, the mode, and how long a callback is waited for. InvalidInput names `mode` or
    `callback_timeout`; what else is wrong, the executor says."""
    if job_type != HTTP:
        return dict(config), USUAL_MODE, USUAL_CALLBACK_TIMEOUT
    others = {name: value for name, value in config.items() if name not in {MODE, CALLBACK_TIMEOUT}}
    return others, _mode(config.get(MODE)), _callback_timeout(config.get(CALLBACK_TIMEOUT))


def joined_config(spec: JobSpec) -> dict[str, Any]:
    """The config as its author writes it: splitting it gives the same again. What is as usual is left out."""
    unsaid = UNSAID.get(spec.type, {})
    joined = {name: value for name, value in spec.config.items() if name not in unsaid or value != unsaid[name]}
    if spec.type != HTTP:
        return joined
    waits = spec.mode is ExecutionMode.ASYNC
    if waits:
        joined[MODE] = spec.mode.value.lower()
    if waits or spec.callback_timeout != USUAL_CALLBACK_TIMEOUT:
        joined[CALLBACK_TIMEOUT] = format_duration(spec.callback_timeout)
    return joined


def _mode(value: Any) -> ExecutionMode:
    if value is None:
        return USUAL_MODE
    if not isinstance(value, str) or value.upper() not in ExecutionMode.__members__:
        raise InvalidInput(MODE, "must be sync or async")
    return ExecutionMode[value.upper()]


def _callback_timeout(value: Any) -> timedelta:
    if value is None:
        return USUAL_CALLBACK_TIMEOUT
    wait = parse_duration(value, field=CALLBACK_TIMEOUT)
    if not wait:
        raise InvalidInput(CALLBACK_TIMEOUT, "must be longer than nothing")
    return wait
