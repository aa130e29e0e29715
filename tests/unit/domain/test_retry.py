"""Whether a failed attempt is tried again, and when."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksana.domain.durations import LONGEST
from ksana.domain.errors import InvalidInput
from ksana.domain.retry import NO_RETRY, GiveUp, RetryAt, RetryPolicy, decide_retry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def waits(policy: RetryPolicy, count: int) -> list[float]:
    return [policy.wait_after(attempt) / SECOND for attempt in range(1, count + 1)]


def test_a_fixed_delay_stays_the_same() -> None:
    assert waits(RetryPolicy(max_attempts=4, delay=5 * SECOND), 3) == [5, 5, 5]


def test_an_exponential_delay_doubles_up_to_its_ceiling() -> None:
    policy = RetryPolicy(max_attempts=9, delay=5 * SECOND, multiplier=2, max_delay=60 * SECOND)
    assert waits(policy, 6) == [5, 10, 20, 40, 60, 60]


def test_without_a_ceiling_waits_grow_to_a_day() -> None:
    policy = RetryPolicy(max_attempts=1000, delay=SECOND, multiplier=100)
    assert waits(policy, 4) == [1, 100, 10_000, 86_400]
    assert policy.wait_after(999) == timedelta(days=1)


def test_a_first_delay_over_a_day_is_kept() -> None:
    assert RetryPolicy(max_attempts=3, delay=timedelta(days=3), multiplier=2).wait_after(2) == timedelta(days=3)


def test_no_delay_is_no_wait() -> None:
    assert waits(RetryPolicy(max_attempts=3, multiplier=2), 2) == [0, 0]


@pytest.mark.parametrize(
    ("field", "policy"),
    [
        ("retry.max_attempts", {"max_attempts": 0}),
        ("retry.max_attempts", {"max_attempts": 1001}),
        ("retry.delay", {"delay": -SECOND}),
        ("retry.delay", {"delay": LONGEST + SECOND}),
        ("retry.multiplier", {"multiplier": 0.5}),
        ("retry.multiplier", {"multiplier": 101}),
        ("retry.multiplier", {"multiplier": float("nan")}),
        ("retry.max_delay", {"delay": 2 * SECOND, "max_delay": SECOND}),
        ("retry.max_delay", {"max_delay": LONGEST + SECOND}),
    ],
)
def test_a_policy_that_cannot_be_kept_is_refused(field: str, policy: dict[str, float]) -> None:
    with pytest.raises(InvalidInput) as caught:
        RetryPolicy(**policy)  # type: ignore[arg-type] # wrong on purpose
    assert caught.value.field == field


def test_a_failure_is_retried_while_attempts_are_left() -> None:
    policy = RetryPolicy(max_attempts=3, delay=5 * SECOND, multiplier=2)
    assert decide_retry(policy, attempt=1, retryable=True, now=NOW) == RetryAt(NOW + 5 * SECOND)
    assert decide_retry(policy, attempt=2, retryable=True, now=NOW) == RetryAt(NOW + 10 * SECOND)
    assert decide_retry(policy, attempt=3, retryable=True, now=NOW) == GiveUp("no attempts left")


def test_a_final_failure_is_not_retried() -> None:
    policy = RetryPolicy(max_attempts=3)
    assert decide_retry(policy, attempt=1, retryable=False, now=NOW) == GiveUp("the failure is final")


def test_without_retries_the_first_failure_is_the_last() -> None:
    assert decide_retry(NO_RETRY, attempt=1, retryable=True, now=NOW) == GiveUp("retries are off")


def test_a_target_may_ask_for_a_longer_wait_but_not_for_a_shorter_one() -> None:
    policy = RetryPolicy(max_attempts=3, delay=10 * SECOND)
    longer = decide_retry(policy, attempt=1, retryable=True, now=NOW, retry_after=30 * SECOND)
    shorter = decide_retry(policy, attempt=1, retryable=True, now=NOW, retry_after=SECOND)
    assert (longer, shorter) == (RetryAt(NOW + 30 * SECOND), RetryAt(NOW + 10 * SECOND))


def test_a_target_cannot_put_a_retry_off_for_more_than_a_day() -> None:
    policy = RetryPolicy(max_attempts=3)
    decision = decide_retry(policy, attempt=1, retryable=True, now=NOW, retry_after=timedelta.max)
    assert decision == RetryAt(NOW + timedelta(days=1))


@given(
    st.timedeltas(timedelta(0), LONGEST),
    st.floats(1, 100),
    st.one_of(st.none(), st.timedeltas(timedelta(0), LONGEST)),
)
@settings(deadline=None)
def test_waits_never_shrink_and_keep_to_their_ceiling(
    delay: timedelta, multiplier: float, more: timedelta | None
) -> None:
    ceiling = None if more is None else min(delay + more, LONGEST)
    policy = RetryPolicy(max_attempts=1000, delay=delay, multiplier=multiplier, max_delay=ceiling)
    found = [policy.wait_after(attempt) for attempt in range(1, 30)]
    assert found[0] == delay
    assert all(earlier <= later for earlier, later in pairwise(found))
    assert found[-1] <= (max(timedelta(days=1), delay) if ceiling is None else ceiling)
