"""The words of document 002 for its tests: jobs, their fields, their instants, and the refusals."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from tests.contract.api.conftest import ANSWER_SECONDS, PAUSE_SECONDS, serving, unique, until
from tests.contract.api.witness import Hit, Target
from tests.process.conftest import Serving

Job = dict[str, Any]

JOB_FIELDS = {
    "id",
    "name",
    "enabled",
    "type",
    "http",
    "schedule",
    "timeout",
    "max_retries",
    "retry_backoff",
    "last_run_at",
    "next_run_at",
    "last_status",
    "last_error",
}
HTTP_FIELDS = {"method", "url", "headers", "body"}
EVERY_FIELDS = {"kind", "every", "start_at", "jitter"}
FILLED = "<filled-by-service>"
HOURLY = {"kind": "every", "every": "1h"}
HOUR = timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


def said(instant: datetime) -> str:
    """An instant as document 002 writes it."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read(text: str) -> datetime:
    """An instant that Ksana wrote: RFC 3339, in UTC."""
    assert text.endswith("Z"), text
    return datetime.fromisoformat(text)


def whole_second(ahead: timedelta = timedelta(0)) -> datetime:
    """Now and a bit more, without a fraction: every precision can write it."""
    return (now() + ahead).replace(microsecond=0)


def a_job(name: str, url: str, /, **given: Any) -> Job:
    """What a client sends: an hourly GET, unless told otherwise."""
    return {
        "name": name,
        "enabled": True,
        "type": "http",
        "http": {"method": "GET", "url": url},
        "schedule": HOURLY,
        **given,
    }


def create(api: httpx2.Client, job: Job) -> Job:
    answer = api.post("/jobs", json=job)
    assert answer.status_code in {200, 201}, answer.text
    created: Job = answer.json()
    return created


def fetch(api: httpx2.Client, job_id: str) -> Job:
    answer = api.get(f"/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    job: Job = answer.json()
    return job


def listed(api: httpx2.Client) -> dict[str, Job]:
    """Every job there is, by its id."""
    answer = api.get("/jobs")
    assert answer.status_code == 200, answer.text
    jobs: list[Job] = answer.json()
    assert isinstance(jobs, list)
    return {job["id"]: job for job in jobs}


def patch(api: httpx2.Client, job_id: str, **changes: Any) -> Job:
    answer = api.patch(f"/jobs/{job_id}", json=changes)
    assert answer.status_code == 200, answer.text
    job: Job = answer.json()
    return job


def order(api: httpx2.Client, job_id: str, what: str) -> None:
    """`run-now`, `pause` or `resume`."""
    answer = api.post(f"/jobs/{job_id}/{what}")
    assert answer.is_success, answer.text


def run_now(api: httpx2.Client, job_id: str, status: str = "success") -> Job:
    """Runs it once, and waits until that has the status."""
    order(api, job_id, "run-now")
    return until_status(api, job_id, status)


def until_status(api: httpx2.Client, job_id: str, status: str) -> Job:
    job: Job = until(api, f"/jobs/{job_id}", lambda job: job["last_status"] == status)
    return job


def beats(api: httpx2.Client, target: Target, count: int = 5) -> None:
    """Waits as long as the scheduler itself takes for that many tenths of a second: what else was due has fired by then."""
    path = f"/ok/{unique('beat')}"
    beating = create(api, a_job(unique("beat"), target.url(path), schedule={"kind": "every", "every": "100ms"}))
    target.wait_hits(count, path)
    assert api.delete(f"/jobs/{beating['id']}").status_code == 204


def pass_by(instant: datetime) -> None:
    """Waits until the clock has gone past an instant."""
    while now() <= instant:
        time.sleep(PAUSE_SECONDS)


def run_id(hit: Hit) -> str:
    return hit.headers["x-ksana-run-id"]


def planned(hit: Hit) -> datetime:
    """The planned instant that a call of a `telling` job carries."""
    return read(hit.json()["scheduled_at"])


def telling(url: str) -> dict[str, Any]:
    """An HTTP call whose body tells what it is for, in the fields of document 002 §17."""
    fields = ("job_id", "run_id", "scheduled_at", "triggered_at")
    body = "{" + ", ".join(f'"{field}": "{FILLED}"' for field in fields) + "}"
    return {"method": "POST", "url": url, "headers": {"Content-Type": "application/json"}, "body": body}


@contextmanager
def client_of(server: Serving) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.base, timeout=ANSWER_SECONDS) as client:
        yield client


@contextmanager
def started(folder: Path, store: str) -> Iterator[tuple[Serving, httpx2.Client]]:
    """A server of the test's own, which it may kill, on what the folder holds."""
    url = f"json://{folder / 'jobs.json'}" if store == "json" else f"sqlite:///{folder / 'ksana.db'}"
    with serving(folder, url, {}) as server, client_of(server) as client:
        yield server, client


def assert_error(answer: httpx2.Response, status: int) -> dict[str, Any]:
    """The one envelope; its details."""
    assert answer.status_code == status, answer.text
    envelope = answer.json()
    assert set(envelope) >= {"code", "message", "details", "request_id"}
    assert re.fullmatch(r"[A-Z][A-Z_]+", envelope["code"])
    assert envelope["message"]
    assert envelope["request_id"]
    return envelope["details"] or {}


def assert_refused(answer: httpx2.Response, field: str) -> None:
    """400, and the field is named: by its path (`schedule.run_at`) or by the last part of it."""
    details = assert_error(answer, 400)
    named = str(details.get("field"))
    assert named in {field, field.rpartition(".")[2]} or named.startswith(f"{field}."), details


def assert_on_grid(instant: str, origin: datetime, every: timedelta) -> None:
    """An instant is a whole number of intervals after the origin."""
    assert (read(instant) - origin) % every == timedelta(0), (instant, origin, every)
