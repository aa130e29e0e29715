"""What an answer means (document 002 §17 for every contract)."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from ksana.domain.job import ExecutionMode
from ksana.domain.outcome import AwaitingCallback, Failed, Outcome, Succeeded
from ksana.executors.base import ExecutionContext
from ksana.executors.http_evidence import Exchange

_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
_RETRYABLE = frozenset({408, 429})


def settled(context: ExecutionContext, exchange: Exchange) -> Outcome:
    """The outcome of an attempt that was answered."""
    status, evidence = exchange.status or 0, exchange.evidence()
    if 200 <= status < 300:
        if context.mode is ExecutionMode.ASYNC:
            return AwaitingCallback(within=context.job.spec.callback_timeout, evidence=evidence)
        return Succeeded(_output(evidence.response_body) if exchange.holds_json else None, evidence)
    retryable = status in _RETRYABLE or 500 <= status < 600
    retry_after = parse_retry_after(exchange.header(b"retry-after"), now=datetime.now(UTC)) if retryable else None
    return Failed(f"answered {status}", retryable=retryable, retry_after=retry_after, evidence=evidence)


def parse_retry_after(value: str | None, *, now: datetime) -> timedelta | None:
    """How long the target asks to be left alone: seconds, or until a date. None if it does not say, or not legibly."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return timedelta(seconds=int(text))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if until.tzinfo is None:  # "-0000" and obsolete forms: HTTP has no other zone
        until = until.replace(tzinfo=UTC)
    return max(until - now, timedelta(0))


def _output(shown: str | None) -> Any:
    """The JSON that came back, if it is that; with secrets hidden, as it is shown."""
    if not shown:
        return None
    try:
        return orjson.loads(shown)
    except orjson.JSONDecodeError:
        return None
