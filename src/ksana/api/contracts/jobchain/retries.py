"""Document 001's `retry`, of a node or of a job: attempts in all, the first wait, and by how much each wait is longer."""

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ksana.api.contracts.shapes import Strict
from ksana.domain.durations import LONGEST
from ksana.domain.retry import MAX_ATTEMPTS, RetryPolicy

_MILLISECOND = timedelta(milliseconds=1)
_EXAMPLE: dict[str, Any] = {"maxAttempts": 3, "backoffMillis": 1000, "backoffMultiplier": 1.0}
FIELDS = {
    "retry.max_attempts": "retry.maxAttempts",
    "retry.delay": "retry.backoffMillis",
    "retry.max_delay": "retry.backoffMillis",
    "retry.multiplier": "retry.backoffMultiplier",
}
"""This contract's names for what a policy finds wrong."""

Attempts = Annotated[int, Field(ge=1, le=MAX_ATTEMPTS, description="In all: 1 never retries.")]
Millis = Annotated[
    float,
    Field(ge=0, le=LONGEST / _MILLISECOND, allow_inf_nan=False, description="Wait before the first retry."),
]
Multiplier = Annotated[
    float, Field(ge=1, le=100, allow_inf_nan=False, description="How much longer each further wait is.")
]


class RetryBody(Strict):
    """What of it is left out gets its default, 1 attempt without a wait; in a change, it stays."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": _EXAMPLE})

    max_attempts: Attempts = 1
    backoff_millis: Millis = 0
    backoff_multiplier: Multiplier = 1.0


class RetryShown(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": _EXAMPLE})

    max_attempts: int
    backoff_millis: float
    backoff_multiplier: float


def read_retry(given: RetryBody, base: RetryPolicy) -> RetryPolicy:
    """`base` with what is given. A ceiling, which only other contracts can name, does not stand in its way. InvalidInput."""
    named = given.model_fields_set
    attempts = given.max_attempts if "max_attempts" in named else base.max_attempts
    delay = given.backoff_millis * _MILLISECOND if "backoff_millis" in named else base.delay
    multiplier = given.backoff_multiplier if "backoff_multiplier" in named else base.multiplier
    ceiling = None if base.max_delay is None else max(base.max_delay, delay)
    return replace(base, max_attempts=attempts, delay=delay, multiplier=multiplier, max_delay=ceiling)


def retry_shown(policy: RetryPolicy) -> dict[str, Any]:
    whole, rest = divmod(policy.delay, _MILLISECOND)
    return {
        "maxAttempts": policy.max_attempts,
        "backoffMillis": policy.delay / _MILLISECOND if rest else whole,
        "backoffMultiplier": policy.multiplier,
    }
