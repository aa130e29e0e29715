"""Document 002 §5 and §15: when jobs fire. The grid of `every` does not drift; cron is its documented extension."""

from datetime import timedelta

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.ksana_world import (
    HOUR,
    a_job,
    assert_on_grid,
    beats,
    create,
    fetch,
    now,
    planned,
    read,
    said,
    telling,
    until_status,
    whole_second,
)
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE
SECOND = timedelta(seconds=1)


def test_every_without_a_start_begins_with_its_creation(api: httpx2.Client, target: Target) -> None:
    before = now()
    job = create(api, a_job(unique("from now"), target.url()))
    assert before + HOUR - SECOND < read(job["next_run_at"]) <= now() + HOUR


def test_every_with_a_start_ahead_begins_there(api: httpx2.Client, target: Target) -> None:
    start_at = whole_second(3 * HOUR)
    schedule = {"kind": "every", "every": "1h", "start_at": said(start_at)}
    job = create(api, a_job(unique("ahead"), target.url(), schedule=schedule))
    assert read(job["schedule"]["start_at"]) == read(job["next_run_at"]) == start_at


def test_every_with_a_start_behind_goes_on_in_its_grid(api: httpx2.Client, target: Target) -> None:
    start_at = whole_second(-1000 * HOUR)
    schedule = {"kind": "every", "every": "7m", "start_at": said(start_at)}
    job = create(api, a_job(unique("behind"), target.url(), schedule=schedule))
    assert now() < read(job["next_run_at"]) <= now() + timedelta(minutes=7)
    assert_on_grid(job["next_run_at"], start_at, timedelta(minutes=7))
    assert target.hits == []


def test_every_half_second_stays_in_its_grid(api: httpx2.Client, target: Target) -> None:
    start_at = whole_second(-HOUR)
    every = timedelta(milliseconds=500)
    schedule = {"kind": "every", "every": "500ms", "start_at": said(start_at)}
    job = create(api, a_job(unique("grid"), "", http=telling(target.url()), schedule=schedule))
    for count in (1, 2, 3):
        target.wait_hits(count)
        assert_on_grid(fetch(api, job["id"])["next_run_at"], start_at, every)
    instants = [planned(hit) for hit in target.hits]
    assert instants == sorted(set(instants))
    for instant in instants:
        assert_on_grid(said(instant), start_at, every)
    assert all(hit.at >= planned(hit) for hit in target.hits)
    api.delete(f"/jobs/{job['id']}")


def test_jitter_only_ever_delays_and_by_no_more_than_it_says(api: httpx2.Client, target: Target) -> None:
    start_at = whole_second(HOUR)
    schedule = {"kind": "every", "every": "1h", "start_at": said(start_at), "jitter": "10m"}
    jobs = [create(api, a_job(unique("jitter"), target.url(), schedule=schedule)) for _ in range(10)]
    assert all(start_at <= read(job["next_run_at"]) <= start_at + timedelta(minutes=10) for job in jobs)


def test_a_job_with_jitter_fires_again_and_again(api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "every", "every": "200ms", "jitter": "100ms"}
    job = create(api, a_job(unique("jittery"), target.url(), schedule=schedule))
    target.wait_hits(3)
    api.delete(f"/jobs/{job['id']}")


def test_a_tenth_of_a_second_is_the_shortest_interval(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("fast"), target.url(), schedule={"kind": "every", "every": "100ms"}))
    target.wait_hits(3)
    api.delete(f"/jobs/{job['id']}")


def test_a_once_that_has_run_does_not_run_again(api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "once", "run_at": said(whole_second(2 * SECOND))}
    job = create(api, a_job(unique("once"), target.url("/ok/it"), schedule=schedule))
    until_status(api, job["id"], "success")
    beats(api, target)
    assert len(target.at("/ok/it")) == 1


def test_cron_is_read_in_its_zone(api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "cron", "cron": "30 9 * * *", "timezone": "Asia/Shanghai"}
    job = create(api, a_job(unique("cron"), target.url(), schedule=schedule))
    instant = read(job["next_run_at"])
    assert (instant.hour, instant.minute, instant.second, instant.microsecond) == (1, 30, 0, 0)
    assert now() < instant <= now() + 24 * HOUR


def test_cron_comes_back_as_it_was_given(api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "cron", "cron": "*/5 * * * *", "timezone": "Asia/Shanghai"}
    job = create(api, a_job(unique("cron"), target.url(), schedule=schedule))
    told = fetch(api, job["id"])["schedule"]
    assert (told["kind"], told["timezone"]) == ("cron", "Asia/Shanghai")
    assert told["cron"].split()[-5:] == ["*/5", "*", "*", "*", "*"]
    instant = read(job["next_run_at"])
    assert (instant.minute % 5, instant.second) == (0, 0)
    assert now() < instant <= now() + timedelta(minutes=5)


def test_cron_with_seconds_fires(api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "cron", "cron": "* * * * * *", "timezone": "UTC"}
    job = create(api, a_job(unique("cron"), target.url(), schedule=schedule))
    target.wait_hits(2)
    api.delete(f"/jobs/{job['id']}")


@pytest.mark.parametrize("status", ["503", "404"])
def test_a_failing_job_keeps_its_rhythm(status: str, api: httpx2.Client, target: Target) -> None:
    schedule = {"kind": "every", "every": "200ms"}
    failing = a_job(unique("failing"), target.url(f"/status/{status}"), schedule=schedule, max_retries=0)
    job = create(api, failing)
    target.wait_hits(3)
    assert read(until_status(api, job["id"], "failed")["next_run_at"]) > now() - SECOND
    api.delete(f"/jobs/{job['id']}")
