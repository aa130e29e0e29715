"""Document 003 §16: what was answered is still there after a kill, and what was running is run again."""

import signal
from pathlib import Path

import httpx2
import pytest

from tests.contract.api.conftest import ON_SQLITE, empty_database, serving
from tests.contract.api.cronjob_world import (
    EVERY_SECOND,
    TASKS,
    closed,
    create,
    done,
    fetch,
    instant,
    known,
    report,
    runs_of,
    trigger,
)
from tests.contract.api.cronjob_world import until_ended as ended
from tests.contract.api.cronjob_world import until_run as reached
from tests.contract.api.witness import Target

RESCUE_SECONDS = 40.0
"""An instance that died is replaced within 20 s; the machine may be busy."""

OF_ITS_LAST_RUN = ("id", "task_id", "status", "attempt", "scheduled_time", "start_time", "end_time", "error_message")


def test_tasks_and_runs_survive_a_kill(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    with empty_database(back_end, tmp_path, request) as url:
        with serving(tmp_path, url, {}) as server, httpx2.Client(base_url=server.base) as api:
            task = create(api, target.url(), description="留下")
            before, run = fetch(api, task), ended(api, trigger(api, task))
            reached(api, trigger(api, create(api, target.url("/async"), exec_type="ASYNC")), "CALLBACK_PENDING")
            server.end(signal.SIGKILL)
        with serving(tmp_path, url, {}) as server, httpx2.Client(base_url=server.base) as api:
            assert known(fetch(api, task)) == known(before)
            after = done(api.get(f"/api/v1/runs/{run['id']}"))
            assert {field: after[field] for field in OF_ITS_LAST_RUN} == {
                field: run[field] for field in OF_ITS_LAST_RUN
            }
            assert ended(api, trigger(api, task))["id"] > run["id"]
            if back_end == "json":
                return  # document 002's file has room for jobs and their last run, not for attempts and tokens
            assert done(api.get(f"/api/v1/runs/{run['id']}")) == run
            (waiting,) = target.at("/async")
            assert closed(report(api, waiting.callback.token))[1] == "SUCCESS"


@ON_SQLITE
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_a_run_that_was_under_way_is_run_again_under_the_same_key(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target, how: signal.Signals
) -> None:
    with empty_database(back_end, tmp_path, request) as url:
        with (
            serving(tmp_path, url, {"KSANA_SERVER_GRACEFUL_TIMEOUT": "100ms"}) as server,
            httpx2.Client(base_url=server.base) as api,
        ):
            run = trigger(api, create(api, target.url("/hold"), timeout_seconds=60))
            (first,) = target.wait_held()
            server.end(how)
            target.wait_gone(first)
        with serving(tmp_path, url, {}) as server, httpx2.Client(base_url=server.base) as api:
            target.wait_for(lambda hits: sum(hit.held for hit in hits) == 1, RESCUE_SECONDS)
            second = target.hits[-1]
            assert second.headers["idempotency-key"] == first.headers["idempotency-key"]
            assert second.headers["x-ksana-run-id"] == first.headers["x-ksana-run-id"] == str(run)
            target.release(second)
            assert ended(api, run)["status"] == "SUCCESS"
    assert len(target.hits) == 2


@ON_SQLITE
def test_no_second_is_lost_or_run_twice_over_a_restart(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    with empty_database(back_end, tmp_path, request) as url:
        with serving(tmp_path, url, {}) as server, httpx2.Client(base_url=server.base) as api:
            task = create(api, target.url(), cron_expr=EVERY_SECOND, concurrency_policy="PARALLEL")
            target.wait_hits(2)
            server.end(signal.SIGKILL)
        with serving(tmp_path, url, {}) as server, httpx2.Client(base_url=server.base) as api:
            seen = len(target.hits)
            target.wait_hits(seen + 2, timeout=RESCUE_SECONDS)
            done(api.patch(f"{TASKS}/{task}/disable"))
            items = runs_of(api, task, page_size=100)["items"]
    planned = sorted(instant(item["scheduled_time"]) for item in items)
    assert len(set(planned)) == len(planned)
    # Less than the minute of grace: every second that passed meanwhile is run late rather than not at all.
    assert len(planned) == (planned[-1] - planned[0]).total_seconds() + 1
