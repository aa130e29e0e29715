"""What a config says of the job itself: taken out on the way in, put back on the way out."""

from datetime import timedelta
from typing import Any

import pytest

from ksana.domain.errors import InvalidInput
from ksana.domain.job import ExecutionMode, JobSpec
from ksana.domain.job_config import USUAL_CALLBACK_TIMEOUT, USUAL_MODE, joined_config, split_config
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.http_config import checked_config

URL = "http://example.com/"


def spec_of(job_type: str, given: dict[str, Any]) -> JobSpec:
    config, mode, callback_timeout = split_config(job_type, given)
    return JobSpec(name="a", type=job_type, config=config, mode=mode, callback_timeout=callback_timeout)


def test_a_call_says_its_mode_and_how_long_a_callback_is_waited_for() -> None:
    given = {"url": URL, "mode": "async", "callback_timeout": "10m"}
    assert split_config("http", given) == ({"url": URL}, ExecutionMode.ASYNC, timedelta(minutes=10))
    assert given == {"url": URL, "mode": "async", "callback_timeout": "10m"}


@pytest.mark.parametrize("given", [{}, {"mode": None, "callback_timeout": None}, {"mode": "SYNC"}])
def test_what_is_not_said_is_as_in_any_job(given: dict[str, Any]) -> None:
    assert split_config("http", given) == ({}, USUAL_MODE, USUAL_CALLBACK_TIMEOUT)
    usual = JobSpec(name="a", type="http", config={})
    assert (usual.mode, usual.callback_timeout) == (USUAL_MODE, USUAL_CALLBACK_TIMEOUT)


def test_another_types_config_is_its_executors_alone() -> None:
    given = {"mode": "async", "callback_timeout": 5, "headers": {}}
    assert split_config("shell", given) == (given, USUAL_MODE, USUAL_CALLBACK_TIMEOUT)
    assert joined_config(spec_of("shell", given)) == given


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"mode": "later"}, "mode"),
        ({"mode": True}, "mode"),
        ({"mode": ["async"]}, "mode"),
        ({"callback_timeout": "soon"}, "callback_timeout"),
        ({"callback_timeout": 0}, "callback_timeout"),
        ({"callback_timeout": -1}, "callback_timeout"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        split_config("http", given)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "given",
    [
        {"method": "GET", "url": URL},
        {"method": "POST", "url": URL, "headers": {"X-A": "b"}, "body": "刹那"},
        {"method": "POST", "url": URL, "mode": "async", "callback_timeout": "5m"},
        {"method": "POST", "url": URL, "callback_timeout": "6m"},
        {"method": "POST", "url": URL, "connect_timeout": "1s", "follow_redirects": True, "callback_method": "PUT"},
    ],
)
def test_what_was_taken_apart_and_checked_is_put_together_again(given: dict[str, Any]) -> None:
    config, mode, callback_timeout = split_config("http", given)
    checked = checked_config(config, EgressPolicy())
    spec = JobSpec(name="a", type="http", config=checked, mode=mode, callback_timeout=callback_timeout)
    assert joined_config(spec) == given
    again = split_config("http", joined_config(spec))
    assert (checked_config(again[0], EgressPolicy()), *again[1:]) == (checked, mode, callback_timeout)


@pytest.mark.parametrize(
    ("job_type", "kept", "written"),
    [
        ("shell", {"cmd": "echo hello", "env": {}, "cwd": None}, {"cmd": "echo hello"}),
        ("shell", {"cmd": ["a"], "env": {"A": "b"}, "cwd": "/tmp"}, {"cmd": ["a"], "env": {"A": "b"}, "cwd": "/tmp"}),
        ("python", {"function": "f", "params": {}}, {"function": "f"}),
        ("plug-in", {"env": {}, "params": {}, "cwd": None}, {"env": {}, "params": {}, "cwd": None}),
    ],
)
def test_what_an_executor_adds_is_not_shown(job_type: str, kept: dict[str, Any], written: dict[str, Any]) -> None:
    assert joined_config(spec_of(job_type, kept)) == written
