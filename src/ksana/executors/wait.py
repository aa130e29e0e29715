"""The executor that waits: for a time, a callback or a person. Nobody is kept busy by it: the wait is a row in the store."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidInput
from ksana.domain.outcome import AwaitingCallback, Deferred, Failed, Outcome, Succeeded
from ksana.executors.base import ExecutionContext
from ksana.executors.http_config import VARIABLES
from ksana.executors.http_request import variables_of
from ksana.executors.templates import check_template, is_template, render
from ksana.executors.templates_filters import TemplateFailed

_KEYS = ("for", "until", "timeout")


class WaitExecutor:
    """`for` a while or `until` an instant; with neither, until somebody reports or completes it, at most `timeout` long."""

    type: ClassVar[str] = "wait"

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config with its durations written as Ksana writes them. InvalidInput."""
        for key in config:
            if key not in _KEYS:
                raise InvalidInput(str(key), f"not known; there are: {', '.join(_KEYS)}")
        if sum(config.get(key) is not None for key in _KEYS) > 1:
            raise InvalidInput("for", f"only one of {', '.join(_KEYS)} can be given")
        checked: dict[str, Any] = {}
        for key in ("for", "timeout"):
            if config.get(key) is not None:
                checked[key] = format_duration(parse_duration(config[key], field=key))
        if config.get("until") is not None:
            checked["until"] = _checked_until(config["until"])
        return checked

    async def execute(self, context: ExecutionContext) -> Outcome:
        """Says what is to be waited for, or that it is over."""
        config = context.job.spec.config
        if "for" in config:
            began = context.execution.started_at or context.triggered_at
            return _over_or_later(began + parse_duration(config["for"], field="for"), context.triggered_at)
        if "until" in config:
            try:
                until = _instant(render(config["until"], variables_of(context)))
            except (TemplateFailed, InvalidInput) as error:
                return Failed(f"until: {error}", retryable=False)
            return _over_or_later(until, context.triggered_at)
        given = config.get("timeout")
        return AwaitingCallback(None if given is None else parse_duration(given, field="timeout"))

    async def close(self) -> None:
        """Holds nothing."""


def _over_or_later(until: datetime, now: datetime) -> Outcome:
    return Succeeded({"waitedUntil": until.isoformat()}) if until <= now else Deferred(until)


def _checked_until(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput("until", "must be an instant, as in 2026-01-31T12:00:00Z")
    if is_template(value):
        check_template(value, field="until", names=VARIABLES)
    else:
        _instant(value)
    return value.strip()


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput("until", "must be an instant, as in 2026-01-31T12:00:00Z") from None
    if instant.tzinfo is None:
        raise InvalidInput("until", "must name its zone, as the Z in 2026-01-31T12:00:00Z")
    return instant.astimezone(UTC)
