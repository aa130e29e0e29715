"""Reading an answer within its bounds, and what its status means (document 002 §17 for every contract)."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import orjson

from ksana.domain.job import ExecutionMode
from ksana.domain.outcome import AwaitingCallback, Failed, Outcome, Succeeded
from ksana.executors.base import ExecutionContext
from ksana.executors.http_evidence import Exchange

_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
_RETRYABLE = frozenset({408, 429})


async def read_body(response: aiohttp.ClientResponse, exchange: Exchange, *, max_read: int) -> None:
    """Notes the body in the exchange. Beyond `max_read` bytes it is not read: the connection is closed instead.

    Raises aiohttp.ClientPayloadError if the connection is lost in the middle.
    """
    async for chunk in response.content.iter_any():
        exchange.received(chunk)
        if exchange.bytes_read > max_read:
            response.close()
            return
    exchange.complete = True


def settled(context: ExecutionContext, exchange: Exchange, *, now: datetime) -> Outcome:
    """The outcome of an attempt that was answered."""
    status, evidence = exchange.status or 0, exchange.evidence()
    if 200 <= status < 300:
        if context.mode is ExecutionMode.ASYNC:
            return AwaitingCallback(within=context.job.spec.callback_timeout, evidence=evidence)
        return Succeeded(output=_output(exchange, evidence.response_body), evidence=evidence)
    retryable = status in _RETRYABLE or 500 <= status < 600
    retry_after = parse_retry_after(exchange.header("retry-after"), now=now) if retryable else None
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


def _output(exchange: Exchange, shown: str | None) -> Any:
    """The JSON that came back, if it calls itself that, is, and was kept whole; with secrets hidden, as it is shown."""
    kind = (exchange.header("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        return None
    if not exchange.text()[1] or not shown:
        return None
    try:
        return orjson.loads(shown)
    except orjson.JSONDecodeError:
        return None
