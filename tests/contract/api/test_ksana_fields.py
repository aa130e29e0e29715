"""Document 002 §4: the fields of a job, their defaults, and what a PATCH does to each."""

import re
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.ksana_world import (
    HOUR,
    JOB_FIELDS,
    a_job,
    beats,
    create,
    fetch,
    patch,
    read,
    run_now,
    said,
    whole_second,
)
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE
UNITS = {"h": HOUR, "m": HOUR / 60, "s": HOUR / 3600, "ms": HOUR / 3_600_000}


def length(duration: str) -> timedelta:
    """What a Go duration says."""
    parts = re.findall(r"([\d.]+)(ms|h|m|s)", duration)
    assert "".join(number + unit for number, unit in parts) == duration
    return sum((float(number) * UNITS[unit] for number, unit in parts), timedelta(0))


def test_what_is_left_out_has_the_documented_default(api: httpx2.Client, target: Target) -> None:
    sparse = {
        "name": unique("sparse"),
        "type": "http",
        "http": {"method": "GET", "url": target.url()},
        "schedule": {"kind": "every", "every": "1h"},
    }
    job = create(api, sparse)
    assert set(job) == JOB_FIELDS
    assert (job["timeout"], job["max_retries"], job["retry_backoff"]) == ("10s", 3, "5s")
    assert job["http"] == {"method": "GET", "url": target.url(), "headers": {}, "body": ""}
    assert job["schedule"]["start_at"] == ""
    assert job["schedule"]["jitter"] in {"0", "0s"}
    assert job["enabled"]


@pytest.mark.parametrize("duration", ["500ms", "10s", "5m", "1h", "1h30m", "2h45m10s"])
def test_a_duration_comes_back_as_it_was_written(duration: str, api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "every", "every": duration, "start_at": said(whole_second(HOUR)), "jitter": duration}
    given = a_job(unique("go"), target.url(), schedule=schedule, timeout=duration, retry_backoff=duration)
    job = create(api, given)
    assert (job["timeout"], job["retry_backoff"]) == (duration, duration)
    assert (job["schedule"]["every"], job["schedule"]["jitter"]) == (duration, duration)


@pytest.mark.parametrize("duration", ["90s", "1.5h", "1500ms", "60m"])
def test_a_duration_in_another_spelling_keeps_its_length(duration: str, api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("go"), target.url(), timeout=duration))
    assert length(job["timeout"]) == length(duration)


def test_times_are_kept_in_utc(api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "once", "run_at": "2099-01-02T03:04:05+08:00"}
    job = create(api, a_job(unique("zone"), target.url(), schedule=schedule))
    assert job["schedule"]["run_at"] == "2099-01-01T19:04:05Z"
    assert job["next_run_at"] == "2099-01-01T19:04:05Z"


def test_a_client_cannot_write_the_bookkeeping(api: httpx2.Client, target: Target) -> None:
    forged = {"last_status": "success", "last_run_at": "2020-01-01T00:00:00Z", "next_run_at": "2099-01-01T00:00:00Z"}
    answer = api.post("/jobs", json=a_job(unique("forged"), target.url(), **forged))
    if answer.is_success:  # to refuse them is as good as to ignore them
        job = answer.json()
        assert (job["last_status"], job["last_run_at"]) == ("", "")
        assert job["next_run_at"] < "2099"
    else:
        assert answer.status_code == 400


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("name", "刹那, renamed", id="name"),
        pytest.param("timeout", "2m", id="timeout"),
        pytest.param("max_retries", 0, id="max_retries"),
        pytest.param("retry_backoff", "45s", id="retry_backoff"),
    ],
)
def test_a_patch_of_one_field_leaves_the_others(field: str, value: Any, api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("patched"), target.url()))
    assert patch(api, job["id"], **{field: value}) == {**job, field: value}
    assert fetch(api, job["id"]) == {**job, field: value}


def test_a_patch_of_the_call_sends_the_next_one_elsewhere(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("call"), target.url("/ok/old")))
    call = {"method": "POST", "url": target.url("/ok/new"), "headers": {"X-New": "yes"}, "body": "new"}
    assert patch(api, job["id"], http=call) == {**job, "http": call}
    run_now(api, job["id"])
    (hit,) = target.hits
    assert (hit.method, hit.path, hit.headers["x-new"], hit.text) == ("POST", "/ok/new", "yes", "new")


def test_a_patch_of_the_schedule_moves_the_next_instant_and_nothing_else(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("moved"), target.url()))
    start_at = whole_second(3 * HOUR)
    schedule = {"kind": "every", "every": "2h", "start_at": said(start_at), "jitter": "0s"}
    changed = patch(api, job["id"], schedule=schedule)
    assert read(changed["next_run_at"]) == start_at
    assert changed["schedule"]["every"] == "2h"
    kept = JOB_FIELDS - {"schedule", "next_run_at"}
    assert {field: changed[field] for field in kept} == {field: job[field] for field in kept}


def test_a_patch_of_the_schedule_can_change_its_kind(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("kind"), target.url()))
    run_at = whole_second(HOUR)
    changed = patch(api, job["id"], schedule={"kind": "once", "run_at": said(run_at)})
    assert changed["schedule"]["kind"] == "once"
    assert read(changed["schedule"]["run_at"]) == read(changed["next_run_at"]) == run_at


def test_a_patch_of_the_schedule_takes_effect_at_once(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("sooner"), target.url()))
    patch(api, job["id"], schedule={"kind": "every", "every": "100ms"})
    target.wait_hits(2)
    api.delete(f"/jobs/{job['id']}")


def test_a_patch_to_disabled_stops_it_and_to_enabled_starts_it(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("switched"), target.url("/ok/it"), schedule={"kind": "every", "every": "100ms"}))
    target.wait_hits(1, "/ok/it")
    assert patch(api, job["id"], enabled=False)["enabled"] is False
    beats(api, target)
    before = len(target.at("/ok/it"))
    beats(api, target)
    assert len(target.at("/ok/it")) == before
    assert patch(api, job["id"], enabled=True)["enabled"] is True
    target.wait_hits(before + 1, "/ok/it")
    api.delete(f"/jobs/{job['id']}")


def test_a_job_created_disabled_does_not_fire(api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "every", "every": "100ms"}
    job = create(api, a_job(unique("off"), target.url("/ok/it"), schedule=schedule, enabled=False))
    assert job["enabled"] is False
    beats(api, target)
    assert target.at("/ok/it") == []


def test_a_deleted_job_fires_no_more(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("ended"), target.url("/ok/it"), schedule={"kind": "every", "every": "100ms"}))
    target.wait_hits(1, "/ok/it")
    assert api.delete(f"/jobs/{job['id']}").status_code == 204
    beats(api, target)
    before = len(target.at("/ok/it"))
    beats(api, target)
    assert len(target.at("/ok/it")) == before
