"""The issue: `kill -9` during a run; after the restart it goes on, in order, and nothing that succeeded runs again."""

import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest

from tests.contract.api.conftest import (
    ANSWER_SECONDS,
    BACK_ENDS,
    ON_SQLITE,
    PAUSE_SECONDS,
    empty_database,
    serving,
    unique,
    until,
)
from tests.contract.api.jobchain_world import (
    ON_STORES,
    RUNS,
    Json,
    at_once,
    create,
    dag,
    ended,
    events_of,
    failing,
    fetch,
    held,
    http,
    node_obeyed,
    node_of,
    nodes_in,
    nodes_of,
    obeyed,
    paths,
    retries,
    run_of,
    runs_of,
    shell,
    start,
    started,
    statuses,
    until_node,
    wait,
)
from tests.contract.api.ksana_world import client_of
from tests.contract.api.witness import Target

ON_SERVERS = pytest.mark.parametrize("back_end", BACK_ENDS[1:3], indirect=True, scope="module")
"""Stores that two instances can share."""
RESCUE_SECONDS = 40.0
"""An instance that died is replaced within 20 s; the machine may be busy."""


@ON_STORES
def test_a_run_goes_on_after_a_kill_and_no_succeeded_node_runs_again(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    url = target.url
    with empty_database(back_end, tmp_path, request) as store:
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            nodes = [
                http("first", url("/ok/first")),
                http("left", url("/ok/left"), "first"),
                http("cut", url("/hold/cut"), "first", timeout="5m"),
                wait("person", "first"),
                failing("bad", "first"),
                at_once("never", "bad"),
                http("last", url("/ok/last"), "left", "cut", "person"),
            ]
            workflow = create(api, dag(*nodes))
            run = start(api, workflow["workflowId"])
            first = held(target, "/hold/cut")
            for node, status in (("left", "SUCCESS"), ("never", "SKIPPED"), ("person", "RUNNING")):
                until_node(api, run, node, status)
            before = nodes_of(api, run)
            server.end(signal.SIGKILL)
            target.wait_gone(first)
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            assert fetch(api, workflow["workflowId"]) == workflow
            after = nodes_of(api, run)
            settled = ("first", "left", "bad", "never")
            assert {node: after[node] for node in settled} == {node: before[node] for node in settled}
            node_obeyed(api, run, "person", "complete", artifact={"approved": True})
            target.wait_for(lambda hits: sum(hit.held for hit in hits) == 1, RESCUE_SECONDS)
            second = held(target, "/hold/cut")
            assert second.headers["idempotency-key"] == first.headers["idempotency-key"]
            target.release(second)
            found = ended(api, run, "FAILED")
            assert statuses(found) == {
                "first": "SUCCESS",
                "left": "SUCCESS",
                "cut": "SUCCESS",
                "person": "SUCCESS",
                "bad": "FAILED",
                "never": "SKIPPED",
                "last": "SUCCESS",
            }
    assert paths(target.hits) == ["/ok/first", *paths(target.hits)[1:4], "/ok/last"]
    assert Counter(paths(target.hits)) == {"/ok/first": 1, "/ok/left": 1, "/hold/cut": 2, "/ok/last": 1}


@ON_SQLITE
def test_a_large_run_survives_kills_at_any_moment(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    layers = [[f"l{layer}n{number}" for number in range(12)] for layer in range(8)]
    nodes = []
    for number, layer in enumerate(layers):
        before = layers[number - 1] if number else []
        nodes += [http(node, target.url(f"/ok/{node}"), *before) for node in layer]
    run = unique("large")
    succeeded: set[str] = set()
    seen_at: dict[str, int] = {}
    with empty_database(back_end, tmp_path, request) as store:
        for enough in (20, 60):
            with serving(tmp_path, store, {}) as server, client_of(server) as api:
                if not target.hits:
                    start(api, create(api, dag(*nodes))["workflowId"], runId=run)
                target.wait_hits(enough, timeout=RESCUE_SECONDS)
                found = nodes_of(api, run)
                server.end(signal.SIGKILL)
            succeeded = {node for node in found if found[node]["status"] == "SUCCESS"}
            seen_at.update({node: len(target.at(f"/ok/{node}")) for node in succeeded if node not in seen_at})
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            assert set(statuses(ended(api, run, timeout=RESCUE_SECONDS)).values()) == {"SUCCESS"}
    assert {node: len(target.at(f"/ok/{node}")) for node in seen_at} == seen_at
    begun = first_calls(target)
    for before, layer in pairwise(layers):
        assert max(begun[node] for node in before) < min(begun[node] for node in layer)


def first_calls(target: Target) -> dict[str, int]:
    """The place of each node's first call among all calls."""
    places: dict[str, int] = {}
    for place, path in enumerate(paths(target.hits)):
        places.setdefault(path.removeprefix("/ok/"), place)
    return places


@ON_SQLITE
def test_what_waits_for_a_time_a_callback_or_its_next_attempt_does_so_over_a_restart(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    with empty_database(back_end, tmp_path, request) as store:
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            run = started(
                api,
                wait("time", cfg={"for": "2s"}),
                http("callback", target.url("/async"), cfg={"mode": "async"}),
                http("again", target.url("/flaky/1"), retry=retries(2, 1500)),
                at_once("last", "time", "callback", "again"),
            )
            (hit,) = target.wait_hits(1, "/async")
            until_node(api, run, "again", "RETRYING")
            until(api, f"{RUNS}/{run}", lambda body: nodes_in(body)["time"]["startedAt"])
            until(api, f"{RUNS}/{run}/events", lambda body: "CALLBACK_PENDING" in str(body))
            server.end(signal.SIGKILL)
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            callback = f"{server.base}/api/v1/callbacks/{hit.callback.token}"
            answer = httpx2.post(callback, json={"status": "SUCCESS"}, timeout=ANSWER_SECONDS)
            assert answer.status_code == 200, answer.text
            nodes = ended(api, run, timeout=RESCUE_SECONDS)
    assert {node: found["attempt"] for node, found in nodes.items()} == {
        "time": 1,
        "callback": 1,
        "again": 2,
        "last": 1,
    }
    assert Counter(paths(target.hits)) == {"/async": 1, "/flaky/1": 2}


@ON_SQLITE
def test_a_stop_that_was_answered_holds_over_a_kill(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    with empty_database(back_end, tmp_path, request) as store:
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            run = started(api, http("a", target.url("/hold"), timeout="5m"), http("b", target.url("/ok/b"), "a"))
            closed = started(api, wait("w"), http("c", target.url("/ok/c"), "w"))
            hit = held(target, "/hold")
            obeyed(api, run, "stop")
            obeyed(api, closed, "close")
            server.end(signal.SIGKILL)
            target.wait_gone(hit)
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            assert run_of(api, run)["status"] in {"STOPPING", "STOPPED"}
            until(api, f"{RUNS}/{run}", lambda body: stopped(body, target), RESCUE_SECONDS)
            assert node_of(api, run, "b")["status"] == "STOPPED"
            assert run_of(api, closed)["status"] == "CLOSED"
    assert target.at("/ok/b") == []
    assert target.at("/ok/c") == []


def stopped(run: Json, target: Target) -> bool:
    """What was cut off may be ended or run again, since the stop is soft; then it has its answer."""
    target.release_all()
    return bool(run["status"] == "STOPPED")


@ON_SQLITE
def test_a_command_of_a_killed_server_does_not_run_on_beside_its_next_attempt(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    marks = tmp_path / "marks"
    cmd = 'echo "$KSANA_ATTEMPT begins" >> "$MARKS"; sleep 3; echo "$KSANA_ATTEMPT ends" >> "$MARKS"'
    with empty_database(back_end, tmp_path, request) as store:
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            run = started(api, shell("s", cmd, env={"MARKS": str(marks)}))
            deadline = time.monotonic() + ANSWER_SECONDS
            while not marks.exists() and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)
            server.end(signal.SIGKILL)
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            ended(api, run, timeout=RESCUE_SECONDS)
    words = [line.split()[1] for line in marks.read_text().splitlines()]
    assert words == ["begins", "begins", "ends"]


@ON_SQLITE
def test_a_run_with_its_events_and_logs_outlives_the_server(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    with empty_database(back_end, tmp_path, request) as store:
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            run = started(api, shell("s", "echo kept"), http("h", target.url(), "s"))
            ended(api, run)
            seen = [run_of(api, run), events_of(api, run), api.get(f"{RUNS}/{run}/nodes/s/logs").text]
            server.end(signal.SIGKILL)
        with serving(tmp_path, store, {}) as server, client_of(server) as api:
            assert [run_of(api, run), events_of(api, run), api.get(f"{RUNS}/{run}/nodes/s/logs").text] == seen


@ON_SERVERS
def test_two_instances_share_a_run_and_no_node_runs_twice(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    (tmp_path / "second").mkdir()
    layers = [[f"l{layer}n{number}" for number in range(10)] for layer in range(4)]
    nodes = [
        http(node, target.url(f"/ok/{node}"), *(layers[number - 1] if number else []))
        for number, layer in enumerate(layers)
        for node in layer
    ]
    with (
        empty_database(back_end, tmp_path, request) as store,
        serving(tmp_path, store, {}) as server,
        serving(tmp_path / "second", store, {}) as other,
        client_of(server) as api,
        client_of(other) as beside,
    ):
        workflow = create(api, dag(*nodes))["workflowId"]
        runs = [unique("shared") for _ in range(3)]
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda number: start((api, beside)[number % 2], workflow, runId=runs[number % 3]), range(30)))
        for run in runs:
            ended(beside, run)
        assert {item["runId"] for item in runs_of(beside, workflow)} == set(runs)
    assert Counter(paths(target.hits)) == {f"/ok/{node['id']}": 3 for node in nodes}


@ON_SERVERS
def test_two_instances_together_run_no_more_than_the_workflow_allows(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    (tmp_path / "second").mkdir()
    with (
        empty_database(back_end, tmp_path, request) as store,
        serving(tmp_path, store, {}) as server,
        serving(tmp_path / "second", store, {}) as other,
        client_of(server) as api,
        client_of(other) as beside,
    ):
        graph = dag(http("a", target.url("/hold"), timeout="5m"), maxActiveRuns=2, overlap="QUEUE")
        workflow = create(api, graph)["workflowId"]
        with ThreadPoolExecutor(6) as pool:
            runs = list(pool.map(lambda number: start((api, beside)[number % 2], workflow), range(6)))
        for seen in range(2, 7):
            target.wait_hits(seen)
            oldest = target.wait_held(2)[0]
            assert len(target.hits) == seen
            target.release(oldest)
        target.release_all()
        for run in runs:
            ended(api, run)
    assert len(target.hits) == 6


@ON_SERVERS
def test_the_other_instance_goes_on_with_a_run_whose_instance_died(
    back_end: str, tmp_path: Path, request: pytest.FixtureRequest, target: Target
) -> None:
    (tmp_path / "second").mkdir()
    with empty_database(back_end, tmp_path, request) as store, serving(tmp_path, store, {}) as server:
        with client_of(server) as api:
            run = started(api, http("a", target.url("/ok/a")), http("b", target.url("/hold"), "a", timeout="5m"))
            hit = held(target, "/hold")
        with serving(tmp_path / "second", store, {}) as other, client_of(other) as api:
            server.end(signal.SIGKILL)
            target.wait_gone(hit)
            target.wait_for(lambda hits: sum(each.held for each in hits) == 1, RESCUE_SECONDS)
            target.release(held(target, "/hold"))
            assert set(statuses(ended(api, run)).values()) == {"SUCCESS"}
    assert paths(target.hits) == ["/ok/a", "/hold", "/hold"]
