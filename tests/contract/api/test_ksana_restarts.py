"""Document 002 §2.2 and §7: a server that is killed comes back with every job, and makes up for nothing."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from tests.contract.api.conftest import unique
from tests.contract.api.ksana_world import (
    HOUR,
    Job,
    a_job,
    assert_on_grid,
    create,
    fetch,
    listed,
    now,
    order,
    pass_by,
    patch,
    planned,
    read,
    run_id,
    run_now,
    said,
    started,
    telling,
    until_status,
    whole_second,
)
from tests.contract.api.witness import Target, Witness

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Crash:
    """What there was before `kill -9`, and the server that came after it."""

    api: httpx2.Client
    target: Target
    before: dict[str, Job]
    killed_at: datetime
    """No later than the kill."""
    dead_at: datetime
    """No earlier than its death."""
    restarted_at: datetime
    """No later than its second start."""
    start_at: datetime


@pytest.fixture(scope="module", params=["sqlite", "json"])
def crash(
    request: pytest.FixtureRequest, witness: Witness, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crash]:
    """A server with jobs of every kind, killed as soon as the last is acknowledged, and started again."""
    store, folder, target = str(request.param), tmp_path_factory.mktemp("crash"), witness.target()
    start_at = whole_second(-HOUR)
    with started(folder, store) as (server, api):
        make_jobs(api, target, start_at)
        run_at = whole_second(3 * SECOND)
        create(api, a_job("slept", target.url("/ok/slept"), id="slept", schedule=once(run_at)))
        before = listed(api)
        killed_at = now()
        server.end(signal.SIGKILL)
        dead_at = now()
    pass_by(run_at + SECOND)  # §5: until then it would not be late
    restarted_at = now()
    with started(folder, store) as (_, api):
        yield Crash(api, target, before, killed_at, dead_at, restarted_at, start_at)


def once(run_at: datetime) -> dict[str, str]:
    return {"kind": "once", "run_at": said(run_at)}


def make_jobs(api: httpx2.Client, target: Target, start_at: datetime) -> None:
    call = {"method": "POST", "url": target.url("/ok/full"), "headers": {"X-Token": "abc"}, "body": "刹那\n{}"}
    full = {"http": call, "timeout": "1m30s", "max_retries": 0, "retry_backoff": "250ms"}
    ticks = {"kind": "every", "every": "500ms", "start_at": said(start_at)}
    cron = {"kind": "cron", "cron": "0 9 1 1 *", "timezone": "Asia/Shanghai"}
    create(api, a_job("ticking", "", id="ticking", http=telling(target.url("/ok/tick")), schedule=ticks))
    create(api, a_job("full", "", id="full", **full))
    create(api, a_job("plain", target.url()))
    create(api, a_job("cron", target.url(), id="cron", schedule=cron))
    create(api, a_job("later", target.url(), id="later", schedule=once(whole_second(24 * HOUR))))
    create(api, a_job("past", target.url(), id="past", schedule=once(whole_second(-HOUR))))
    create(api, a_job("paused", target.url(), id="paused"))
    create(api, a_job("spare", target.url("/ok/spare"), id="spare"))
    create(api, a_job("ran", target.url(), id="ran"))
    create(api, a_job("failed", target.url("/status/404"), id="failed"))
    create(api, a_job("deleted", target.url(), id="deleted"))
    order(api, "paused", "pause")
    run_now(api, "ran")
    run_now(api, "failed", "failed")
    until_status(api, "past", "missed")
    target.wait_hits(1, "/ok/tick")
    patch(api, "full", name="patched")
    assert api.delete("/jobs/deleted").status_code == 204


def test_every_acknowledged_job_is_back_with_its_fields(crash: Crash) -> None:
    after = listed(crash.api)
    assert set(after) >= set(crash.before)
    assert "deleted" not in after
    still = set(crash.before) - {"ticking", "slept", "spare"}
    assert {id_: after[id_] for id_ in still} == {id_: crash.before[id_] for id_ in still}


def test_a_job_of_every_goes_on_in_its_grid_and_makes_up_for_nothing(crash: Crash) -> None:
    def fresh() -> list[datetime]:
        return [planned(hit) for hit in crash.target.at("/ok/tick") if planned(hit) >= crash.restarted_at]

    crash.target.wait_for(lambda _: len(fresh()) >= 2)
    instants = [planned(hit) for hit in crash.target.at("/ok/tick")]
    late = crash.restarted_at - SECOND  # §5: what is due for less is still on time for a server that starts at once
    assert [instant for instant in instants if crash.dead_at < instant < late] == []
    assert_on_grid(fetch(crash.api, "ticking")["next_run_at"], crash.start_at, SECOND / 2)
    for instant in instants:
        assert_on_grid(said(instant), crash.start_at, SECOND / 2)


def test_no_instant_is_run_under_two_ids(crash: Crash) -> None:
    hits = crash.target.wait_hits(3, "/ok/tick")
    assert len({planned(hit) for hit in hits}) == len({run_id(hit) for hit in hits})


def test_a_once_that_passed_while_it_was_down_is_missed(crash: Crash) -> None:
    after = until_status(crash.api, "slept", "missed")
    assert (after["next_run_at"], after["last_run_at"]) == ("", "")
    assert crash.target.at("/ok/slept") == []


def test_a_job_that_came_back_can_be_changed_and_run(crash: Crash) -> None:
    assert patch(crash.api, "spare", max_retries=1)["max_retries"] == 1
    run_now(crash.api, "spare")
    assert crash.target.at("/ok/spare")


def test_a_clean_stop_waits_for_the_running_call_and_writes_it_down(tmp_path: Path, target: Target) -> None:
    with started(tmp_path, "sqlite") as (server, api):
        job = create(api, a_job(unique("last"), target.url("/hold")))
        order(api, job["id"], "run-now")
        (hit,) = target.wait_held()
        server.process.send_signal(signal.SIGTERM)
        target.release(hit)
        assert server.process.wait(20) == 0
    with started(tmp_path, "sqlite") as (_, api):
        assert until_status(api, job["id"], "success")["next_run_at"] == job["next_run_at"]
    assert len(target.hits) == 1
    assert read(job["next_run_at"]) > now()
