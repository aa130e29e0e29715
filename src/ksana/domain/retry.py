"""Whether a failed attempt is tried again, and when. A decision is a value; the store writes it."""

from datetime import datetime, timedelta

from ksana.domain.durations import LONGEST
from ksana.domain.errors import InvalidInput
from ksana.domain.values import immutable

MAX_ATTEMPTS = 1_000
DEFAULT_MAX_DELAY = timedelta(days=1)
"""How far waits grow if the policy does not say, and the longest `Retry-After` that a target is granted."""


@immutable
class RetryPolicy:
    """`max_attempts` in all, so 1 never retries; the n-th wait is `delay · multiplier^(n-1)`, at most `max_delay`.

    Document 003's `fixed` is multiplier 1 and its `exponential` multiplier 2; documents 002 and 003 count `max_retries`,
    which is `max_attempts - 1`; documents 000 and 001 give `maxAttempts` and a multiplier of their own.
    """

    max_attempts: int = 1
    delay: timedelta = timedelta(0)
    multiplier: float = 1.0
    max_delay: timedelta | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= MAX_ATTEMPTS:
            raise InvalidInput("retry.max_attempts", f"must be between 1 and {MAX_ATTEMPTS}")
        if not timedelta(0) <= self.delay <= LONGEST:
            raise InvalidInput("retry.delay", "must be between 0 and a hundred years")
        if not 1.0 <= self.multiplier <= 100.0:
            raise InvalidInput("retry.multiplier", "must be between 1 and 100")
        if self.max_delay is not None and not self.delay <= self.max_delay <= LONGEST:
            raise InvalidInput("retry.max_delay", "must be between the first delay and a hundred years")

    def wait_after(self, attempt: int) -> timedelta:
        """How long to wait after the attempt of that number (from 1)."""
        ceiling = self.max_delay if self.max_delay is not None else max(DEFAULT_MAX_DELAY, self.delay)
        if self.delay == timedelta(0) or self.multiplier == 1.0:
            return min(self.delay, ceiling)
        wait = self.delay
        for _ in range(attempt - 1):
            if wait >= ceiling:
                return ceiling
            wait *= self.multiplier
        return min(wait, ceiling)


NO_RETRY = RetryPolicy()


@immutable
class RetryAt:
    instant: datetime


@immutable
class GiveUp:
    reason: str


def decide_retry(
    policy: RetryPolicy, *, attempt: int, retryable: bool, now: datetime, retry_after: timedelta | None = None
) -> RetryAt | GiveUp:
    """What follows a failed attempt. A target's `Retry-After` can lengthen the wait, to a day at most, never shorten it."""
    if not retryable:
        return GiveUp("the failure is final")
    if attempt >= policy.max_attempts:
        return GiveUp("no attempts left" if policy.max_attempts > 1 else "retries are off")
    asked = min(retry_after or timedelta(0), DEFAULT_MAX_DELAY)
    return RetryAt(now + max(policy.wait_after(attempt), asked))
