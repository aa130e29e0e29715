"""Document 002 §8: pause and resume."""

from datetime import timedelta

import httpx2

from tests.contract.api.conftest import ON_SQLITE, unique, until
from tests.contract.api.ksana_world import (
    HOUR,
    Job,
    a_job,
    assert_on_grid,
    beats,
    create,
    fetch,
    now,
    order,
    pass_by,
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


def ticking(api: httpx2.Client, target: Target, start_at: str = "") -> Job:
    schedule = {"kind": "every", "every": "200ms", "start_at": start_at}
    return create(api, a_job(unique("ticking"), "", http=telling(target.url("/ok/tick")), schedule=schedule))


def test_a_paused_job_says_so_and_does_not_fire(api: httpx2.Client, target: Target) -> None:
    job = ticking(api, target)
    target.wait_hits(1, "/ok/tick")
    order(api, job["id"], "pause")
    assert until_status(api, job["id"], "paused")["enabled"] is False
    beats(api, target)
    before = len(target.at("/ok/tick"))
    beats(api, target)
    assert len(target.at("/ok/tick")) == before
    assert fetch(api, job["id"])["last_status"] == "paused"


def test_a_resumed_job_goes_on_from_now_in_its_grid(api: httpx2.Client, target: Target) -> None:
    start_at = whole_second(-HOUR)
    job = ticking(api, target, said(start_at))
    target.wait_hits(1, "/ok/tick")
    order(api, job["id"], "pause")
    paused_at = now()
    beats(api, target, 10)
    resumed_at = now()
    before = len(target.at("/ok/tick"))
    order(api, job["id"], "resume")
    target.wait_hits(before + 3, "/ok/tick")
    assert fetch(api, job["id"])["enabled"] is True
    instants = [planned(hit) for hit in target.at("/ok/tick")]
    assert [instant for instant in instants if paused_at < instant <= resumed_at] == []
    for instant in instants:
        assert_on_grid(said(instant), start_at, SECOND / 5)
    api.delete(f"/jobs/{job['id']}")


def test_to_pause_or_resume_twice_changes_nothing_more(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("twice"), target.url()))
    order(api, job["id"], "pause")
    once = fetch(api, job["id"])
    order(api, job["id"], "pause")
    assert fetch(api, job["id"]) == once
    order(api, job["id"], "resume")
    resumed = fetch(api, job["id"])
    order(api, job["id"], "resume")
    assert fetch(api, job["id"]) == resumed
    assert resumed["enabled"] is True


def test_a_run_that_goes_on_during_the_pause_comes_to_its_end(api: httpx2.Client, target: Target) -> None:
    job = create(api, a_job(unique("going on"), target.url("/hold")))
    order(api, job["id"], "run-now")
    (hit,) = target.wait_held()
    order(api, job["id"], "pause")
    target.release(hit)
    target.wait_held(0)
    assert not hit.gone
    after = until(api, f"/jobs/{job['id']}", lambda job: job["last_run_at"])
    assert after["enabled"] is False


def test_a_once_that_passes_during_the_pause_is_missed(api: httpx2.Client, target: Target) -> None:
    run_at = whole_second(2 * SECOND)
    job = create(api, a_job(unique("slept"), target.url(), schedule={"kind": "once", "run_at": said(run_at)}))
    order(api, job["id"], "pause")
    pass_by(run_at)
    order(api, job["id"], "resume")
    assert until_status(api, job["id"], "missed")["next_run_at"] == ""
    assert target.hits == []


def test_a_once_that_is_resumed_in_time_runs(api: httpx2.Client, target: Target) -> None:
    run_at = whole_second(3 * SECOND)
    job = create(api, a_job(unique("awake"), target.url(), schedule={"kind": "once", "run_at": said(run_at)}))
    order(api, job["id"], "pause")
    order(api, job["id"], "resume")
    assert read(fetch(api, job["id"])["next_run_at"]) == run_at
    until_status(api, job["id"], "success")
    assert len(target.hits) == 1
