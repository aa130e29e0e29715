"""Document 002 §4 and §7: `jobs.json`, its shape, and what happens to a file that cannot be read."""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import unique, until
from tests.contract.api.ksana_world import (
    EVERY_FIELDS,
    HOUR,
    HTTP_FIELDS,
    JOB_FIELDS,
    Job,
    a_job,
    beats,
    create,
    fetch,
    listed,
    now,
    patch,
    read,
    run_now,
    said,
    started,
    until_status,
    whole_second,
)
from tests.contract.api.witness import PATIENCE, Target
from tests.process.conftest import Serving

SECOND = timedelta(seconds=1)
EXAMPLE = datetime(2025, 9, 19, 11, 5, tzinfo=UTC)
"""The next instant of the job in the example of §4."""


def documented_file(url: str) -> dict[str, Any]:
    """The example of §4, with an address that answers."""
    call = {"method": "GET", "url": url, "headers": {"X-Token": "abc"}, "body": ""}
    job = {
        "id": "uuid-1",
        "name": "ping service",
        "enabled": True,
        "type": "http",
        "http": call,
        "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "5s"},
        "timeout": "10s",
        "max_retries": 3,
        "retry_backoff": "5s",
        "last_run_at": "",
        "next_run_at": said(EXAMPLE),
        "last_status": "",
        "last_error": "",
    }
    past = said(EXAMPLE)
    schedule = {"kind": "once", "run_at": past}
    once = {**job, "id": "uuid-2", "name": "once", "schedule": schedule, "next_run_at": past}
    return {"version": 1, "updated_at": "2025-09-19T11:00:00Z", "jobs": [job, once]}


@dataclass(frozen=True, slots=True)
class Kept:
    """A server on a JSON file."""

    api: httpx2.Client
    file: Path

    def jobs(self) -> dict[str, Job]:
        """The jobs in the file, by id."""
        return {job["id"]: job for job in self.whole()["jobs"]}

    def job(self, job_id: str) -> Job:
        """The documented fields of one job in the file."""
        return {field: value for field, value in self.jobs()[job_id].items() if field in JOB_FIELDS}

    def whole(self) -> dict[str, Any]:
        whole = json.loads(self.file.read_text(encoding="utf-8"))
        assert isinstance(whole, dict)
        return whole


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("kept")
    with started(folder, "json") as (_, api):
        yield Kept(api, folder / "jobs.json")


def test_the_file_has_the_documented_shape(kept: Kept, target: Target) -> None:
    every = create(kept.api, a_job(unique("every"), target.url()))
    run_at = said(whole_second(HOUR))
    once = create(kept.api, a_job(unique("once"), target.url(), schedule={"kind": "once", "run_at": run_at}))
    whole, jobs = kept.whole(), kept.jobs()
    assert set(whole) - {"ksana"} == {"version", "updated_at", "jobs"}
    assert whole["version"] == 1
    assert read(whole["updated_at"]) <= now()
    assert all(set(job) - {"ksana"} == JOB_FIELDS for job in jobs.values())
    assert all(set(job["http"]) == HTTP_FIELDS for job in jobs.values())
    assert set(jobs[every["id"]]["schedule"]) == EVERY_FIELDS
    assert jobs[once["id"]]["schedule"].items() >= {"kind": "once", "run_at": run_at}.items()


def test_the_file_says_what_the_api_says(kept: Kept, target: Target) -> None:
    call = {"method": "POST", "url": target.url(), "headers": {"X-Token": "abc"}, "body": "刹那"}
    job = create(kept.api, a_job(unique("same"), "", http=call, timeout="1h30m", retry_backoff="500ms"))
    assert kept.job(job["id"]) == job
    changed = patch(kept.api, job["id"], enabled=False, max_retries=9)
    assert kept.job(job["id"]) == changed


def test_the_file_and_the_api_agree_on_an_instant_with_jitter(kept: Kept, target: Target) -> None:
    schedule = {"kind": "every", "every": "1h", "jitter": "10m"}
    job = create(kept.api, a_job(unique("delayed"), target.url(), schedule=schedule))
    assert kept.job(job["id"]) == fetch(kept.api, job["id"])


def test_the_file_and_the_api_agree_on_what_was_missed(kept: Kept, target: Target) -> None:
    schedule = {"kind": "once", "run_at": said(whole_second(-HOUR))}
    job = create(kept.api, a_job(unique("missed"), target.url(), schedule=schedule))
    after = until_status(kept.api, job["id"], "missed")
    assert kept.job(job["id"]) == after


def test_what_became_of_a_run_is_in_the_file(kept: Kept, target: Target) -> None:
    job = create(kept.api, a_job(unique("run"), target.url()))
    after = run_now(kept.api, job["id"])
    assert kept.job(job["id"]) == after
    assert after["last_run_at"] != ""


def test_a_deleted_job_is_gone_from_the_file(kept: Kept, target: Target) -> None:
    job = create(kept.api, a_job(unique("gone"), target.url()))
    assert job["id"] in kept.jobs()
    assert kept.api.delete(f"/jobs/{job['id']}").status_code == 204
    assert job["id"] not in kept.jobs()


def test_a_file_as_the_document_shows_it_is_taken_over(tmp_path: Path, target: Target) -> None:
    given = documented_file(target.url())
    (tmp_path / "jobs.json").write_text(json.dumps(given))
    with started(tmp_path, "json") as (_, api):
        assert set(listed(api)) == {"uuid-1", "uuid-2"}
        rolled = fetch(api, "uuid-1")
        moving = {"next_run_at", "last_run_at", "last_status"}
        wanted = {field: value for field, value in given["jobs"][0].items() if field not in moving}
        assert {field: value for field, value in rolled.items() if field not in moving} == wanted
        assert read(rolled["next_run_at"]) > EXAMPLE
        assert now() < read(rolled["next_run_at"]) + timedelta(seconds=1)
        assert (read(rolled["next_run_at"]) - EXAMPLE) % timedelta(minutes=5) <= timedelta(seconds=5)
        assert until_status(api, "uuid-2", "missed")["next_run_at"] == ""


def test_what_passed_shortly_before_the_start_is_not_made_up_for(tmp_path: Path, target: Target) -> None:
    passed = whole_second(-10 * SECOND)
    every, once = documented_file("")["jobs"]
    every |= {"schedule": {**every["schedule"], "every": "1h", "jitter": "0s"}}
    jobs = [
        job | {"http": {**job["http"], "url": target.url(f"/ok/{job['id']}")}, "next_run_at": said(passed)}
        for job in (every, once | {"schedule": {"kind": "once", "run_at": said(passed)}})
    ]
    whole = {"version": 1, "updated_at": said(passed), "jobs": jobs}
    (tmp_path / "jobs.json").write_text(json.dumps(whole))
    with started(tmp_path, "json") as (_, api):
        assert read(fetch(api, "uuid-1")["next_run_at"]) == passed + HOUR
        assert until(api, "/jobs/uuid-2", lambda job: job["last_status"])["last_status"] == "missed"
        beats(api, target)
        assert (target.at("/ok/uuid-1"), target.at("/ok/uuid-2")) == ([], [])


def test_a_damaged_file_is_set_aside_once_and_for_all(tmp_path: Path, target: Target) -> None:
    damages = ['{"version": 1, "updated_at": "2025-09-19T11:00:00Z", "jobs": [{"id": "uu', "", "[1, 2, 3]"]
    for damage in damages:
        (tmp_path / "jobs.json").write_text(damage)
        with started(tmp_path, "json") as (server, api):
            assert api.get("/health").status_code == 200
            assert listed(api) == {}
            assert json.loads((tmp_path / "jobs.json").read_text())["jobs"] == []
            wait_told(server, "jobs.bad")
            create(api, a_job(unique("new"), target.url()))
            server.end(signal.SIGKILL)
    aside = sorted(file.name for file in tmp_path.glob("jobs.bad*"))
    assert (tmp_path / "jobs.bad.json").read_text() == damages[0]
    assert sorted((tmp_path / name).read_text() for name in aside) == sorted(damages)


def wait_told(server: Serving, part: str) -> None:
    """Waits until the log says it."""
    with server.written:
        assert server.written.wait_for(lambda: any(part in line for line in server.lines), PATIENCE), server.lines
