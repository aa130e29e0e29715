"""Document 001 §7 and the issue on every store: what a person does with a node, its attempts, callbacks, logs, commands."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.contract.api.conftest import ANSWER_SECONDS, unique, until
from tests.contract.api.cronjob_world import assert_error
from tests.contract.api.jobchain_world import (
    ON_STORES,
    RUNS,
    Json,
    at_once,
    defined,
    ended,
    events_of,
    failing,
    held,
    http,
    instant,
    log_of,
    node_obeyed,
    node_of,
    node_order,
    nodes_in,
    nodes_of,
    obeyed,
    paths,
    retries,
    seconds_between,
    shell,
    start,
    started,
    statuses,
    until_node,
    until_run,
    wait,
)
from tests.contract.api.ksana_world import now
from tests.contract.api.witness import Target

pytestmark = ON_STORES


# Retry


def test_a_retried_node_is_tried_once_more_and_its_run_goes_on_by_itself(api: httpx2.Client, target: Target) -> None:
    url = target.url
    run = started(
        api,
        http("a", url("/ok/a")),
        http("b", url("/flaky/1"), "a"),
        http("c", url("/ok/c"), "b"),
        http("d", url("/ok/d"), "c"),
    )
    assert statuses(ended(api, run, "FAILED")) == {"a": "SUCCESS", "b": "FAILED", "c": "SKIPPED", "d": "SKIPPED"}
    answer = node_obeyed(api, run, "b", "retry", reason="the target is up again")
    assert answer["status"] in {"PENDING", "RETRYING"}
    nodes = ended(api, run)
    assert {node: (found["status"], found["attempt"]) for node, found in nodes.items()} == {
        "a": ("SUCCESS", 1),
        "b": ("SUCCESS", 2),
        "c": ("SUCCESS", 1),
        "d": ("SUCCESS", 1),
    }
    assert nodes["b"]["lastError"] is None
    assert paths(target.hits) == ["/ok/a", "/flaky/1", "/flaky/1", "/ok/c", "/ok/d"]


def test_a_node_is_retried_while_other_branches_still_run(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("bad", target.url("/flaky/1")), at_once("after", "bad"), wait("other"))
    until_node(api, run, "after", "SKIPPED")
    node_obeyed(api, run, "bad", "retry")
    until_node(api, run, "after", "SUCCESS")
    until_run(api, run, "RUNNING")
    node_obeyed(api, run, "other", "complete")
    ended(api, run)


def test_a_stopped_node_is_retried(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold")), http("b", target.url("/ok/b"), "a"))
    cut_off = held(target, "/hold")
    obeyed(api, run, "stop", force=True)
    assert statuses(ended(api, run, "STOPPED")) == {"a": "STOPPED", "b": "STOPPED"}
    target.wait_gone(cut_off)
    node_obeyed(api, run, "a", "retry")
    target.release(held(target, "/hold"))
    nodes = ended(api, run)
    assert (nodes["a"]["attempt"], nodes["b"]["attempt"]) == (2, 1)
    assert paths(target.hits) == ["/hold", "/hold", "/ok/b"]


def test_only_what_failed_or_was_stopped_is_retried(api: httpx2.Client) -> None:
    run = started(
        api, at_once("done"), wait("runs", "done"), at_once("waits", "runs"), failing("bad"), wait("not", "bad")
    )
    until_node(api, run, "runs", "RUNNING")
    until_node(api, run, "not", "SKIPPED")
    before = nodes_of(api, run)
    for node in ("done", "runs", "waits", "not"):
        assert_error(node_order(api, run, node, "retry"), 409, "NODE_NOT_RETRYABLE")
    assert nodes_of(api, run) == before
    obeyed(api, run, "close")


def test_of_many_who_retry_a_node_at_once_one_wins_and_the_others_are_told(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold")))
    target.release(held(target, "/hold"), 500)
    ended(api, run, "FAILED")
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: node_order(api, run, "a", "retry"), range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
    target.release(held(target, "/hold"))
    assert ended(api, run)["a"]["attempt"] == 2
    assert len(target.hits) == 2


# Complete


def test_a_failed_node_is_completed_with_its_artifact_and_its_dependents_go_on(
    api: httpx2.Client, target: Target
) -> None:
    url = target.url
    body = {"body": "{{ nodes.a.artifact.rows }}"}
    run = started(api, http("a", url("/status/404")), http("b", url("/ok/b"), "a", cfg=body))
    assert statuses(ended(api, run, "FAILED")) == {"a": "FAILED", "b": "SKIPPED"}
    given = {"artifact": {"rows": 7}, "checkpoint": {"page": 2}, "reason": "manual override"}
    assert node_obeyed(api, run, "a", "complete", **given)["status"] == "SUCCESS"
    nodes = ended(api, run)
    assert (nodes["a"]["status"], nodes["a"]["attempt"]) == ("SUCCESS", 1)
    assert (nodes["a"]["artifact"], nodes["a"]["checkpoint"]) == ({"rows": 7}, {"page": 2})
    assert nodes["b"]["status"] == "SUCCESS"
    assert [(hit.path, hit.text) for hit in target.hits] == [("/status/404", ""), ("/ok/b", "7")]


def test_a_running_node_is_completed_and_what_it_still_answers_changes_nothing(
    api: httpx2.Client, target: Target
) -> None:
    run = started(api, http("a", target.url("/hold")), http("b", target.url("/ok/b"), "a"))
    hit = held(target, "/hold")
    node_obeyed(api, run, "a", "complete", artifact={"by": "hand"})
    target.release(hit, 500)
    nodes = ended(api, run)
    assert (nodes["a"]["status"], nodes["a"]["artifact"]) == ("SUCCESS", {"by": "hand"})
    assert paths(target.hits) == ["/hold", "/ok/b"]


def test_a_stopped_node_is_completed(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold")), http("b", target.url("/ok/b"), "a"))
    hit = held(target, "/hold")
    obeyed(api, run, "stop", force=True)
    ended(api, run, "STOPPED")
    target.wait_gone(hit)
    node_obeyed(api, run, "a", "complete")
    assert ended(api, run)["a"]["attempt"] == 1
    assert paths(target.hits) == ["/hold", "/ok/b"]


def test_a_node_that_has_not_begun_is_not_completed(api: httpx2.Client) -> None:
    run = started(api, wait("a"), at_once("b", "a"), failing("bad"), at_once("c", "bad"))
    until_node(api, run, "c", "SKIPPED")
    before = nodes_of(api, run)
    for node in ("b", "c"):
        assert_error(node_order(api, run, node, "complete"), 409, "NODE_NOT_COMPLETABLE")
    assert statuses(nodes_of(api, run)) == statuses(before)
    obeyed(api, run, "close")


def test_a_node_that_has_succeeded_keeps_its_artifact(api: httpx2.Client) -> None:
    run = started(api, wait("a"))
    until_node(api, run, "a", "RUNNING")
    node_obeyed(api, run, "a", "complete", artifact={"n": 1})
    ended(api, run)
    assert node_order(api, run, "a", "complete", artifact={"n": 2}).status_code in {200, 409}
    assert node_of(api, run, "a")["status"] == "SUCCESS"


def test_of_many_who_complete_a_node_at_once_one_counts(api: httpx2.Client, target: Target) -> None:
    run = started(api, wait("a"), http("b", target.url(), "a", cfg={"body": "{{ nodes.a.artifact.who }}"}))
    until_node(api, run, "a", "RUNNING")
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda who: node_order(api, run, "a", "complete", artifact={"who": who}), range(10)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    nodes = ended(api, run)
    (hit,) = target.hits
    assert hit.text == str(nodes["a"]["artifact"]["who"])
    winners = [who for who, answer in enumerate(answers) if answer.status_code == 200]
    assert nodes["a"]["artifact"]["who"] in winners


def test_of_a_person_and_a_worker_who_end_a_node_at_once_one_wins_and_the_other_is_told(
    api: httpx2.Client, target: Target
) -> None:
    workflow = defined(api, http("a", target.url("/hold")))
    for _ in range(10):
        run = start(api, workflow)
        hit = held(target, "/hold")
        target.release(hit)
        answer = node_order(api, run, "a", "complete", artifact={"by": "hand"})
        assert answer.status_code in {200, 409}, answer.text
        by_hand = ended(api, run)["a"]["artifact"] == {"by": "hand"}
        assert by_hand == (answer.status_code == 200)


# Skip


def test_a_failed_node_is_skipped_and_what_can_do_without_it_goes_on(api: httpx2.Client, target: Target) -> None:
    after = http("b", target.url("/ok/b"), "a", triggerRule="none_failed")
    run = started(api, failing("a"), after)
    assert statuses(ended(api, run, "FAILED")) == {"a": "FAILED", "b": "SKIPPED"}
    assert node_obeyed(api, run, "a", "skip", reason="not needed today")["status"] == "SKIPPED"
    assert statuses(ended(api, run)) == {"a": "SKIPPED", "b": "SUCCESS"}
    assert paths(target.hits) == ["/ok/b"]


def test_a_node_that_has_not_begun_is_skipped(api: httpx2.Client, target: Target) -> None:
    after = http("c", target.url("/ok/c"), "b", triggerRule="none_failed")
    run = started(api, wait("a"), http("b", target.url("/ok/b"), "a"), after)
    until_node(api, run, "a", "RUNNING")
    node_obeyed(api, run, "b", "skip")
    node_obeyed(api, run, "a", "complete")
    assert statuses(ended(api, run)) == {"a": "SUCCESS", "b": "SKIPPED", "c": "SUCCESS"}
    assert paths(target.hits) == ["/ok/c"]


def test_what_has_succeeded_is_not_skipped(api: httpx2.Client) -> None:
    run = started(api, at_once("a"))
    ended(api, run)
    assert_error(node_order(api, run, "a", "skip"), 409)
    assert node_of(api, run, "a")["status"] == "SUCCESS"


# What is recorded


@pytest.mark.parametrize("what", ["retry", "complete", "skip"])
def test_why_a_person_ordered_something_is_recorded_with_what_and_when(api: httpx2.Client, what: str) -> None:
    run = started(api, failing("bad"), at_once("good"))
    ended(api, run, "FAILED")
    reason = unique("because the disk is back")
    node_obeyed(api, run, "bad", what, reason=reason)
    until_run(api, run, "SUCCESS", "FAILED")
    told = [event for event in events_of(api, run) if reason in str(event)]
    assert told, events_of(api, run)
    assert "bad" in str(told[0])
    assert instant(told[0]["at"]) <= now()


# Attempts


def test_a_node_is_tried_as_often_as_it_says_and_no_sooner(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/flaky/2"), retry=retries(3, 100, 2.0)))
    node = ended(api, run)["a"]
    assert (node["status"], node["attempt"]) == ("SUCCESS", 3)
    first, second, third = target.hits
    assert (second.at - first.at).total_seconds() >= 0.1
    assert (third.at - second.at).total_seconds() >= 0.2


def test_a_node_whose_attempts_are_used_up_has_failed(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/status/503"), retry=retries(2)), http("b", target.url(), "a"))
    nodes = ended(api, run, "FAILED")
    assert (nodes["a"]["status"], nodes["a"]["attempt"]) == ("FAILED", 2)
    assert "503" in nodes["a"]["lastError"]
    assert nodes["b"]["status"] == "SKIPPED"
    assert len(target.hits) == 2


def test_a_node_that_failed_for_good_is_not_tried_again(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/status/404"), retry=retries(3)))
    assert ended(api, run, "FAILED")["a"]["attempt"] == 1
    assert len(target.hits) == 1


def test_a_node_waits_for_its_next_attempt_as_retrying(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/status/503"), retry=retries(3, 60_000)))
    node = until_node(api, run, "a", "RETRYING")
    assert node["attempt"] == 1
    assert "503" in node["lastError"]
    until_run(api, run, "RUNNING")
    obeyed(api, run, "close")


def test_a_node_that_takes_too_long_fails(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/hold"), timeout="1500ms"), shell("s", "sleep 60", timeout="300ms"))
    hit = held(target, "/hold")
    nodes = ended(api, run, "FAILED", timeout=10)
    target.wait_gone(hit)
    assert statuses(nodes) == {"a": "FAILED", "s": "FAILED"}
    for node in nodes.values():
        assert node["lastError"]
        assert seconds_between(node["startedAt"], node["endedAt"]) < 5


# Callbacks


def test_an_async_node_ends_with_its_callback_and_its_dependents_go_on(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/async"), cfg={"mode": "async"}), http("b", target.url("/ok/b"), "a"))
    (hit,) = target.wait_hits(1, "/async")
    until_node(api, run, "a", "RUNNING", "CALLBACK_PENDING")
    answer = httpx2.post(hit.callback.url, json={"status": "SUCCESS", "data": {"rows": 3}}, timeout=ANSWER_SECONDS)
    assert answer.status_code == 200, answer.text
    nodes = ended(api, run)
    assert nodes["a"]["status"] == "SUCCESS"
    assert nodes["a"]["artifact"]["rows"] == 3
    assert paths(target.hits) == ["/async", "/ok/b"]


def test_an_async_node_whose_callback_says_failed_has_failed(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/async"), cfg={"mode": "async"}), http("b", target.url("/ok/b"), "a"))
    (hit,) = target.wait_hits(1)
    body = {"status": "FAILED", "error_message": "no such tenant"}
    assert httpx2.post(hit.callback.url, json=body, timeout=ANSWER_SECONDS).status_code == 200
    nodes = ended(api, run, "FAILED")
    assert statuses(nodes) == {"a": "FAILED", "b": "SKIPPED"}
    assert "no such tenant" in nodes["a"]["lastError"]


def test_a_callback_that_comes_before_the_answer_counts(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/async-early"), cfg={"mode": "async"}), at_once("b", "a"))
    assert ended(api, run)["a"]["attempt"] == 1


def test_a_node_without_its_callback_fails_in_time(api: httpx2.Client, target: Target) -> None:
    cfg = {"mode": "async", "callback_timeout": "500ms"}
    run = started(api, http("a", target.url("/async"), cfg=cfg), at_once("b", "a"))
    nodes = ended(api, run, "FAILED", timeout=10)
    assert statuses(nodes) == {"a": "FAILED", "b": "SKIPPED"}
    assert nodes["a"]["lastError"]


def test_a_node_that_waits_for_its_callback_is_completed_by_hand(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/async"), cfg={"mode": "async"}), at_once("b", "a"))
    (hit,) = target.wait_hits(1)
    completed_once_it_waits(api, run, "a")
    nodes = ended(api, run)
    assert nodes["a"]["artifact"] == {"by": "hand"}
    late = httpx2.post(hit.callback.url, json={"status": "FAILED"}, timeout=ANSWER_SECONDS)
    assert late.status_code in {200, 404, 409, 410}
    assert node_of(api, run, "a")["status"] == "SUCCESS"


def completed_once_it_waits(api: httpx2.Client, run: str, node: str) -> None:
    """The request may still be on its way back; both states may be completed."""
    until_node(api, run, node, "RUNNING", "CALLBACK_PENDING")
    node_obeyed(api, run, node, "complete", artifact={"by": "hand"})


def test_a_callback_may_name_the_run_and_the_node(api: httpx2.Client, target: Target) -> None:
    run = started(api, http("a", target.url("/async"), cfg={"mode": "async"}), wait("w"), at_once("b", "a", "w"))
    target.wait_hits(1)
    until(api, f"{RUNS}/{run}/events", lambda body: str(body).count("CALLBACK_PENDING") == 2)
    for node in ("a", "w"):
        body = {"run_id": run, "node_id": node, "status": "SUCCESS", "data": {"of": node}}
        assert api.post("/api/v1/callbacks", json=body).status_code == 200
    nodes = ended(api, run)
    assert (nodes["a"]["artifact"], nodes["w"]["artifact"]) == ({"of": "a"}, {"of": "w"})


# Commands


def test_a_command_gets_values_through_its_environment_and_gives_its_artifact(api: httpx2.Client) -> None:
    cmd = (
        'printf \'{"who": "%s", "node": "%s", "try": %s}\' "$WHO" "$KSANA_NODE_ID" "$KSANA_ATTEMPT" > "$KSANA_ARTIFACT"'
    )
    workflow = defined(api, shell("s", cmd, env={"WHO": "{{ params.who }}"}))
    nodes = ended(api, start(api, workflow, params={"who": "$(id) 刹那"}))
    assert nodes["s"]["artifact"] == {"who": "$(id) 刹那", "node": "s", "try": 1}


def test_the_output_of_a_command_is_its_artifact_unless_it_makes_one(api: httpx2.Client) -> None:
    nodes = ended(api, started(api, shell("s", "echo hello")))
    assert nodes["s"]["artifact"] == {"exitCode": 0, "stdout": "hello\n"}


def test_a_command_that_fails_tells_its_code_and_what_it_said(api: httpx2.Client) -> None:
    node = ended(api, started(api, shell("s", "echo no such table >&2; exit 3")), "FAILED")["s"]
    assert "3" in node["lastError"]
    assert "no such table" in node["lastError"]


def test_output_that_is_no_text_does_no_harm(api: httpx2.Client) -> None:
    noise = "printf 'out \\000 \\377 \\360\\237\\230\\200\\n'; printf 'err \\000 \\377 \\360\\237\\230\\200\\n' >&2"
    run = started(api, shell("good", noise), shell("bad", f"{noise}; exit 1"))
    nodes = ended(api, run, "FAILED")
    assert statuses(nodes) == {"good": "SUCCESS", "bad": "FAILED"}
    assert "\U0001f600" in nodes["good"]["artifact"]["stdout"]
    assert "\U0001f600" in nodes["bad"]["lastError"]
    for node in nodes:
        assert "\U0001f600" in log_of(api, run, node)


def test_params_and_artifacts_are_any_json(api: httpx2.Client) -> None:
    odd = {
        "nul": "a\x00b",
        "emoji": "\U0001f600",
        "big": 2**53 - 1,
        "float": 0.1,
        "deep": [[[{"": None}]]],
        "empty": {},
    }
    workflow = defined(api, wait("a"))
    run = start(api, workflow, params=odd)
    until_node(api, run, "a", "RUNNING")
    node_obeyed(api, run, "a", "complete", artifact=odd, checkpoint=odd)
    node = ended(api, run)["a"]
    assert (node["artifact"], node["checkpoint"]) == (odd, odd)


def test_a_checkpoint_is_offered_to_the_next_attempt(api: httpx2.Client) -> None:
    cmd = (
        'if [ -s "$KSANA_CHECKPOINT" ]; then cat "$KSANA_CHECKPOINT" > "$KSANA_ARTIFACT"; exit 0; fi; '
        'echo \'{"row": 41}\' > next && mv next "$KSANA_CHECKPOINT"; exit 1'
    )
    nodes = ended(api, started(api, shell("s", cmd, retry=retries(2))))
    assert (nodes["s"]["attempt"], nodes["s"]["artifact"], nodes["s"]["checkpoint"]) == (2, {"row": 41}, {"row": 41})


def test_the_log_of_a_command_is_kept(api: httpx2.Client) -> None:
    run = started(api, shell("s", "echo to the one; echo to the other >&2"))
    ended(api, run)
    for follow in ({}, {"follow": "true"}):
        log = log_of(api, run, "s", **follow)
        assert "to the one" in log
        assert "to the other" in log


def test_the_log_of_a_command_is_followed_while_it_runs_until_it_ends(api: httpx2.Client, tmp_path: Path) -> None:
    go = tmp_path / "go"
    cmd = 'echo first; while ! [ -e "$GO" ]; do sleep 0.05; done; echo last'
    run = started(api, shell("s", cmd, env={"GO": str(go)}))
    until_node(api, run, "s", "RUNNING")
    seen = ""
    with api.stream("GET", f"{RUNS}/{run}/nodes/s/logs", params={"follow": "true"}) as answer:
        assert answer.status_code == 200
        for text in answer.iter_text():
            seen += text
            if "first" in seen and not go.exists():
                assert "last" not in seen
                go.touch()
    assert "last" in seen
    ended(api, run)


def test_the_log_of_each_attempt_is_kept(api: httpx2.Client) -> None:
    run = started(api, shell("s", 'echo "try $KSANA_ATTEMPT"; [ "$KSANA_ATTEMPT" = 2 ]', retry=retries(2)))
    ended(api, run)
    log = log_of(api, run, "s")
    assert "try 1" in log
    assert "try 2" in log


# Waiting


def test_a_wait_for_a_time_ends_by_itself_and_no_sooner(api: httpx2.Client) -> None:
    node = ended(api, started(api, wait("w", cfg={"for": "1s"})))["w"]
    assert seconds_between(node["startedAt"], node["endedAt"]) >= 1.0


def test_a_wait_until_an_instant_that_has_passed_ends_at_once(api: httpx2.Client) -> None:
    nodes = ended(api, started(api, wait("w", cfg={"until": "2020-01-01T00:00:00Z"})))
    assert statuses(nodes) == {"w": "SUCCESS"}


def test_a_wait_for_a_person_lasts_until_the_node_is_completed(api: httpx2.Client) -> None:
    run = started(api, wait("w"), at_once("after", "w"))
    until_node(api, run, "w", "RUNNING")
    ended(api, started(api, at_once("other")))
    assert statuses(nodes_of(api, run)) == {"w": "RUNNING", "after": "PENDING"}
    node_obeyed(api, run, "w", "complete", artifact={"approved": True})
    assert ended(api, run)["w"]["artifact"] == {"approved": True}


def test_a_wait_that_nobody_ends_in_time_has_failed(api: httpx2.Client) -> None:
    run = started(api, wait("w", cfg={"timeout": "300ms"}), at_once("after", "w"))
    assert statuses(ended(api, run, "FAILED", timeout=10)) == {"w": "FAILED", "after": "SKIPPED"}


def test_a_node_that_waits_for_a_time_is_running(api: httpx2.Client) -> None:
    run = started(api, wait("w", cfg={"for": "1h"}))
    begun = until(api, f"{RUNS}/{run}", lambda body: nodes_in(body)["w"]["startedAt"])
    until(api, f"{RUNS}/{run}", lambda body: body["status"] == "RUNNING")
    ended(api, started(api, wait("other", cfg={"for": "200ms"})))
    node = node_of(api, run, "w")
    assert node["status"] == "RUNNING"
    assert node["startedAt"] == nodes_in(begun)["w"]["startedAt"]
    obeyed(api, run, "close")


def test_a_long_wait_is_ended_early_by_hand(api: httpx2.Client) -> None:
    run = started(api, wait("w", cfg={"for": "1h"}))
    until(api, f"{RUNS}/{run}", lambda body: nodes_in(body)["w"]["startedAt"])
    ended(api, started(api, wait("other", cfg={"for": "200ms"})))
    node_obeyed(api, run, "w", "complete")
    ended(api, run)


@pytest.mark.parametrize(("what", "body", "status"), [("stop", {"force": True}, "STOPPED"), ("close", {}, "CLOSED")])
def test_a_wait_ends_with_its_run(api: httpx2.Client, what: str, body: Json, status: str) -> None:
    run = started(api, wait("w"))
    until_node(api, run, "w", "RUNNING")
    obeyed(api, run, what, **body)
    until_run(api, run, status)
    assert until_node(api, run, "w", "STOPPED")["endedAt"]
