"""What may stand in the config of an http job."""

import json
from typing import Any

import pytest

from ksana.domain.errors import InvalidInput
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.http import HttpExecutor, HttpOptions
from ksana.executors.templates import MAX_OUTPUT

HTTP = HttpExecutor()


def test_defaults_are_filled_in() -> None:
    assert HTTP.check({"url": " http://127.0.0.1/x "}) == {
        "method": "GET",
        "url": "http://127.0.0.1/x",
        "headers": {},
        "body": None,
        "connect_timeout": None,
        "follow_redirects": False,
        "callback_method": "POST",
    }


def test_what_was_checked_passes_again_and_is_plain_json() -> None:
    config = {
        "method": "post",
        "url": "http://127.0.0.1/runs/{{ run_id }}?at={{ scheduled_at | urlencode }}",
        "headers": {"X-Name": "{{ job_name }}", "X-Count": 3},
        "body": {"list": ["{{ attempt }}", 1, None, True], "job_id": "<filled-by-service>"},
        "connect_timeout": 1.5,
        "follow_redirects": True,
        "callback_method": "put",
    }
    checked = HTTP.check(config)
    assert checked["method"] == "POST"
    assert checked["headers"] == {"X-Name": "{{ job_name }}", "X-Count": "3"}
    assert checked["connect_timeout"] == "1s500ms"
    assert checked["callback_method"] == "PUT"
    assert HTTP.check(json.loads(json.dumps(checked))) == checked


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else "end"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"verify": False}, "verify"),
        ({"timeout": 5}, "timeout"),
        ({"method": "TRACE"}, "method"),
        ({"method": 7}, "method"),
        ({"url": None}, "url"),
        ({"url": ""}, "url"),
        ({"url": "ftp://h/"}, "url"),
        ({"url": "http://{{ input.host }}/"}, "url"),
        ({"url": "{{ input.url }}"}, "url"),
        ({"url": "http://h{% if run_id %}/a{% endif %}"}, "url"),
        ({"url": "{{ 'http' }}://h/"}, "url"),
        ({"url": "http://169.254.169.254/{{ run_id }}"}, "url"),
        ({"url": "http://h/{{ nobody }}"}, "url"),
        ({"url": "http://h/" + "x" * 9000}, "url"),
        ({"headers": ["a"]}, "headers"),
        ({"headers": {"X-A": None}}, "headers.X-A"),
        ({"headers": {"X-A": True}}, "headers.X-A"),
        ({"headers": {"X-A": "{{ nobody }}"}}, "headers.X-A"),
        ({"headers": {"X-A": "a\r\nb"}}, "headers.X-A"),
        ({"headers": {"Host": "other"}}, "headers.Host"),
        ({"body": 7}, "body"),
        ({"body": "{{ open"}, "body"),
        ({"body": {"deep": ["{{ nobody }}"]}}, "body"),
        ({"body": "x" * (MAX_OUTPUT + 1)}, "body"),
        ({"body": nested(70)}, "body"),
        ({"connect_timeout": "soon"}, "connect_timeout"),
        ({"connect_timeout": 0}, "connect_timeout"),
        ({"connect_timeout": "2h"}, "connect_timeout"),
        ({"follow_redirects": "yes"}, "follow_redirects"),
        ({"callback_method": "GET"}, "callback_method"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        HTTP.check({"url": "http://127.0.0.1/", **change})
    assert refused.value.field == field


def test_the_policy_counts_when_a_job_is_saved() -> None:
    public = HttpExecutor(HttpOptions(policy=EgressPolicy.parse("public")))
    with pytest.raises(InvalidInput, match="loopback address"):
        public.check({"url": "http://127.0.0.1/"})
