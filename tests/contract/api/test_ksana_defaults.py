"""Document 002 §9: what a job leaves out comes from the environment of the service."""

from collections.abc import Mapping

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.ksana_world import a_job, create, run_now
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE


@pytest.fixture(scope="module")
def settings() -> Mapping[str, str]:
    return {"DEFAULT_TIMEOUT": "400ms", "MAX_RETRIES": "1", "RETRY_BACKOFF": "50ms"}


def test_a_job_that_says_nothing_has_the_settings(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("silent"), target.url()))
    assert (job["timeout"], job["max_retries"], job["retry_backoff"]) == ("400ms", 1, "50ms")


def test_a_job_that_says_nothing_runs_by_the_settings(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("silent"), target.url("/never")))
    run_now(api, job["id"], "timeout")
    target.wait_hits(2)


def test_a_job_that_says_otherwise_is_heeded(api: httpx2.Client, target: Target) -> None:
    given = {"timeout": "20s", "max_retries": 0, "retry_backoff": "1m"}
    job = create(api, a_job(unique("outspoken"), target.url("/flaky/1"), **given))
    assert {field: job[field] for field in given} == given
    run_now(api, job["id"], "failed")
    assert len(target.hits) == 1
