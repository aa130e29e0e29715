"""Bad input at `/jobs`: the field is named, and nothing has changed."""

from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.ksana_world import a_job, assert_error, assert_refused, create, fetch, listed
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE
CRON = {"kind": "cron", "cron": "*/5 * * * *", "timezone": "Asia/Shanghai"}
BAD_JOBS: list[tuple[str, dict[str, Any], str]] = [
    ("kind unknown", {"schedule": {"kind": "lunar"}}, "schedule.kind"),
    ("kind missing", {"schedule": {"every": "5m"}}, "schedule.kind"),
    ("schedule missing", {"schedule": None}, "schedule"),
    ("schedule a text", {"schedule": "5m"}, "schedule"),
    ("once without run_at", {"schedule": {"kind": "once"}}, "schedule.run_at"),
    ("once with an empty run_at", {"schedule": {"kind": "once", "run_at": ""}}, "schedule.run_at"),
    ("once at no time", {"schedule": {"kind": "once", "run_at": "tomorrow"}}, "schedule.run_at"),
    ("every without every", {"schedule": {"kind": "every"}}, "schedule.every"),
    ("every negative", {"schedule": {"kind": "every", "every": "-5m"}}, "schedule.every"),
    ("every abc", {"schedule": {"kind": "every", "every": "abc"}}, "schedule.every"),
    ("every zero", {"schedule": {"kind": "every", "every": "0s"}}, "schedule.every"),
    ("every too short", {"schedule": {"kind": "every", "every": "99ms"}}, "schedule.every"),
    ("jitter negative", {"schedule": {"kind": "every", "every": "5m", "jitter": "-1s"}}, "schedule.jitter"),
    ("jitter abc", {"schedule": {"kind": "every", "every": "5m", "jitter": "abc"}}, "schedule.jitter"),
    ("start_at no time", {"schedule": {"kind": "every", "every": "5m", "start_at": "soon"}}, "schedule.start_at"),
    ("schedule with unknown field", {"schedule": {"kind": "every", "every": "5m", "hue": 1}}, "schedule.hue"),
    ("cron missing", {"schedule": {"kind": "cron"}}, "schedule.cron"),
    ("cron wrong", {"schedule": {**CRON, "cron": "61 * * * *"}}, "schedule.cron"),
    ("zone unknown", {"schedule": {**CRON, "timezone": "Mars/Olympus"}}, "schedule.timezone"),
    ("timeout negative", {"timeout": "-1s"}, "timeout"),
    ("timeout abc", {"timeout": "abc"}, "timeout"),
    ("backoff negative", {"retry_backoff": "-1s"}, "retry_backoff"),
    ("backoff abc", {"retry_backoff": "abc"}, "retry_backoff"),
    ("retries negative", {"max_retries": -1}, "max_retries"),
    ("retries a text", {"max_retries": "many"}, "max_retries"),
    ("http missing", {"http": None}, "http"),
    ("url missing", {"http": {"method": "GET"}}, "http.url"),
    ("url empty", {"http": {"method": "GET", "url": ""}}, "http.url"),
    ("url of ftp", {"http": {"method": "GET", "url": "ftp://example.com/x"}}, "http.url"),
    ("url of a file", {"http": {"method": "GET", "url": "file:///etc/passwd"}}, "http.url"),
    ("url without scheme", {"http": {"method": "GET", "url": "example.com/x"}}, "http.url"),
    ("url without host", {"http": {"method": "GET", "url": "http:///x"}}, "http.url"),
    ("method TRACE", {"http": {"method": "TRACE", "url": "http://example.com"}}, "http.method"),
    ("headers a list", {"http": {"method": "GET", "url": "http://example.com", "headers": ["a"]}}, "http.headers"),
    (
        "header with a line break",
        {"http": {"method": "GET", "url": "http://example.com", "headers": {"X-A": "b\r\nX-C: d"}}},
        "http.headers",
    ),
    ("call with unknown field", {"http": {"method": "GET", "url": "http://example.com", "hue": 1}}, "http.hue"),
    ("type unknown", {"type": "carrier-pigeon"}, "type"),
    ("unknown field", {"hue": 1}, "hue"),
    ("name empty", {"name": ""}, "name"),
    ("name blank", {"name": "   "}, "name"),
    ("name a number", {"name": 5}, "name"),
    ("enabled perhaps", {"enabled": "perhaps"}, "enabled"),
    ("id with a slash", {"id": "a/b"}, "id"),
]
BAD_PATCHES: list[tuple[str, dict[str, Any], str]] = [
    ("name blank", {"name": "   "}, "name"),
    ("timeout abc", {"timeout": "abc"}, "timeout"),
    ("backoff negative", {"retry_backoff": "-1s"}, "retry_backoff"),
    ("retries negative", {"max_retries": -1}, "max_retries"),
    ("enabled perhaps", {"enabled": "perhaps"}, "enabled"),
    ("kind unknown", {"schedule": {"kind": "lunar"}}, "schedule.kind"),
    ("every abc", {"schedule": {"kind": "every", "every": "abc"}}, "schedule.every"),
    ("url of ftp", {"http": {"method": "GET", "url": "ftp://example.com/x"}}, "http.url"),
    ("unknown field", {"hue": 1}, "hue"),
    ("good beside bad", {"max_retries": 9, "timeout": "abc"}, "timeout"),
]


@pytest.mark.parametrize(("change", "field"), [pytest.param(*bad[1:], id=bad[0]) for bad in BAD_JOBS])
def test_a_bad_job_is_refused_and_its_field_named(
    change: dict[str, Any], field: str, api: httpx2.Client, target: Target
) -> None:
    name = unique("bad")
    bad = {key: value for key, value in a_job(name, target.url(), **change).items() if value is not None}
    assert_refused(api.post("/jobs", json=bad), field)
    assert name not in {job["name"] for job in listed(api).values()}


@pytest.mark.parametrize(("change", "field"), [pytest.param(*bad[1:], id=bad[0]) for bad in BAD_PATCHES])
def test_a_bad_patch_is_refused_and_changes_nothing(
    change: dict[str, Any], field: str, api: httpx2.Client, target: Target
) -> None:
    job = create(api, a_job(unique("good"), target.url()))
    assert_refused(api.patch(f"/jobs/{job['id']}", json=change), field)
    assert fetch(api, job["id"]) == job


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'{"name": ', id="cut off"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b'{"name": NaN}', id="NaN"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_is_not_a_json_object_is_refused(method: str, content: bytes, api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("good"), target.url()))
    path = "/jobs" if method == "POST" else f"/jobs/{job['id']}"
    answer = api.request(method, path, content=content, headers={"Content-Type": "application/json"})
    assert_error(answer, 400)
    assert fetch(api, job["id"]) == job


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("GET", "/jobs/no-such-job", id="get"),
        pytest.param("PATCH", "/jobs/no-such-job", id="patch"),
        pytest.param("DELETE", "/jobs/no-such-job", id="delete"),
        pytest.param("POST", "/jobs/no-such-job/run-now", id="run-now"),
        pytest.param("POST", "/jobs/no-such-job/pause", id="pause"),
        pytest.param("POST", "/jobs/no-such-job/resume", id="resume"),
    ],
)
def test_an_id_that_is_not_there_is_not_found(method: str, path: str, api: httpx2.Client) -> None:
    body = {"json": {"name": "x"}} if method == "PATCH" else {}
    assert_error(api.request(method, path, **body), 404)  # type: ignore[arg-type]
