"""A job's definition is valid by construction, and its limit decides who may come in."""

from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.admission import Limits, Skip, admit
from ksana.domain.errors import InvalidInput
from ksana.domain.job import ConcurrencyPolicy, JobSpec


def spec(**changes: Any) -> JobSpec:
    return JobSpec(**{"name": "n", "type": "http", "config": {}, **changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "   "),
        ("name", "x "),
        ("name", " x"),
        ("name", "x" * 129),
        ("name", "a\nb"),
        ("name", "a\x7fb"),
        ("description", "x" * 513),
        ("type", ""),
        ("type", "x" * 65),
        ("timeout", timedelta(0)),
        ("timeout", timedelta(seconds=-1)),
        ("callback_timeout", timedelta(0)),
        ("max_concurrency", 0),
        ("max_concurrency", 1_000_001),
        ("queue_limit", -1),
    ],
)
def test_a_wrong_part_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        spec(**{field: value})
    assert refused.value.field == field
    assert refused.value.details["field"] == field


def test_names_may_be_in_any_script() -> None:
    assert spec(name="统计同步 ночной \U0001f319").name.startswith("统计")


def test_only_a_parallel_job_has_no_limit() -> None:
    assert [spec(concurrency=policy).limited for policy in ConcurrencyPolicy] == [True, True, False]


@pytest.mark.parametrize(
    ("policy", "active", "expected"),
    [
        (ConcurrencyPolicy.PARALLEL, 10_000, None),
        (ConcurrencyPolicy.SKIP, 1, None),
        (ConcurrencyPolicy.SKIP, 2, Skip("concurrency_limit")),
        (ConcurrencyPolicy.SKIP, 3, Skip("concurrency_limit")),
        (ConcurrencyPolicy.QUEUE, 2, None),
        (ConcurrencyPolicy.QUEUE, 6, None),
        (ConcurrencyPolicy.QUEUE, 7, Skip("queue_full")),
    ],
)
def test_the_policy_decides_who_comes_in(policy: ConcurrencyPolicy, active: int, expected: Skip | None) -> None:
    assert admit(Limits(policy, max_concurrency=2, queue_limit=5), active) == expected
