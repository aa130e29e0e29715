"""What is sent, and that the evidence says the same."""

import encodings
import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.executors.attempts import GRANT, TOKEN, TRACE, attempt
from tests.unit.executors.witness import Witness

from ksana import __version__
from ksana.domain.job import Contract, ExecutionMode
from ksana.domain.outcome import AwaitingCallback, Evidence, Failed, Outcome, Succeeded
from ksana.executors.base import Place
from ksana.executors.egress_connection import Answer, Bounds
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.http import HttpExecutor
from ksana.executors.http_evidence import Exchange
from ksana.executors.http_prepared import LARGEST_KEPT, PreparedJobs
from ksana.executors.http_request import Sender

FILLED = {
    "run": "{{ run_id }}",
    "task": "{{ task_id }}",
    "job": "{{ job_id }}",
    "names": "{{ job_name }}/{{ task_name }}",
    "times": "{{ scheduled_at }} {{ triggered_at }}",
    "tries": "{{ attempt }} of {{ max_attempts }}",
    "trace": "{{ trace_id }}",
    "back": "[{{ callback_url }}{{ callback_token }}]",
    "who": "{{ input.who }}",
    "run_id": "<filled-by-service>",
    "number": 1,
}


def succeeded(outcome: Outcome) -> Evidence:
    assert isinstance(outcome, Succeeded), outcome
    return outcome.evidence


async def test_the_headers_tell_the_target_which_run_this_is(http: HttpExecutor, witness: Witness) -> None:
    await http.execute(attempt({"url": witness.url()}))
    seen = witness.seen[0]
    assert seen.method == "GET"
    assert seen.header("x-ksana-run-id") == "42"
    assert seen.header("x-ksana-job-id") == "nightly"
    assert seen.header("x-ksana-attempt") == "2"
    assert seen.header("x-ksana-scheduled-at") == "2026-03-01T09:30:00Z"
    assert seen.header("idempotency-key") == "ksana-1-42"
    assert seen.header("user-agent") == f"ksana/{__version__}"
    assert re.fullmatch(rf"00-{TRACE}-[0-9a-f]{{16}}-01", seen.header("traceparent") or "")
    assert seen.header("x-ksana-callback-url") is None


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
@pytest.mark.parametrize("body", [None, "text"])
async def test_the_evidence_holds_the_request_as_it_was_sent(
    http: HttpExecutor, witness: Witness, method: str, body: str | None
) -> None:
    config = {"url": witness.url("/ok?a=1#gone"), "method": method, "body": body, "headers": {"X-Own": "ä"}}
    evidence = succeeded(await http.execute(attempt(config)))
    seen = witness.seen[0]
    on_the_wire = {name: value.encode("latin-1").decode() for name, value in seen.headers}
    assert evidence.request == {"method": method, "url": witness.url("/ok?a=1"), "headers": on_the_wire}
    assert (seen.method, seen.target, seen.body) == (method, "/ok?a=1", (body or "").encode())
    assert evidence.request_body == body


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"a": 1}', "application/json"),
        ("[]", "application/json"),
        ({"a": 1}, "application/json"),
        ([1, "zwölf"], "application/json"),
        ("hello", "text/plain; charset=utf-8"),
        ("{not json", "text/plain; charset=utf-8"),
    ],
)
async def test_the_content_type_is_inferred(http: HttpExecutor, witness: Witness, body: Any, kind: str) -> None:
    await http.execute(attempt({"url": witness.url(), "method": "POST", "body": body}))
    assert witness.seen[0].header("content-type") == kind
    sent = witness.seen[0].body.decode()
    assert (sent if isinstance(body, str) else json.loads(sent)) == body


async def test_the_jobs_own_headers_come_before_ours(http: HttpExecutor, witness: Witness) -> None:
    own = {"content-type": "text/csv", "IDEMPOTENCY-KEY": "mine", "user-agent": "me", "Traceparent": "00-1-2-03"}
    await http.execute(attempt({"url": witness.url(), "method": "POST", "body": "[]", "headers": own}))
    names = [name.lower() for name, _ in witness.seen[0].headers]
    assert len(names) == len(set(names))
    for name, value in own.items():
        assert witness.seen[0].header(name) == value


@pytest.mark.parametrize(("contract", "job_id"), [(Contract.KSANA, "nightly"), (Contract.CRONJOB, "7")])
async def test_templates_are_filled_in_wherever_they_may_stand(
    http: HttpExecutor, witness: Witness, contract: Contract, job_id: str
) -> None:
    config = http.check(
        {
            "url": witness.url("/ok/{{ run_id }}?at={{ scheduled_at | urlencode }}&who={{ input.who | urlencode }}"),
            "method": "POST",
            "headers": {"X-Job": "{{ job_name }} {{ attempt }}"},
            "body": FILLED,
        }
    )
    await http.execute(attempt(config, contract=contract, input={"who": 'A "&" B'}))
    seen = witness.seen[0]
    assert seen.target == "/ok/42?at=2026-03-01T09:30:00Z&who=A%20%22%26%22%20B"
    assert seen.header("x-job") == "nightly report 2"
    assert seen.json() == {
        "run": "42",
        "task": "7",
        "job": job_id,
        "names": "nightly report/nightly report",
        "times": "2026-03-01T09:30:00Z 2026-03-01T09:30:00.250000Z",
        "tries": "2 of 3",
        "trace": TRACE,
        "back": "[]",
        "who": 'A "&" B',
        "run_id": "42",
        "number": 1,
    }


OF_A_WORKFLOW = {
    "params": "{{ params.day }}",
    "rows": "{{ nodes.load.artifact.rows }}",
    "status": "{{ nodes['a-b'].status }}",
    "item": "{{ item.id }} {{ index }}",
    "place": "{{ workflow_id }} {{ workflow_run_id }} {{ node_id }}",
}


async def test_a_node_of_a_workflow_is_told_its_place_and_what_came_before(
    http: HttpExecutor, witness: Witness
) -> None:
    config = http.check({"url": witness.url("/{{ node_id | urlencode }}"), "method": "POST", "body": OF_A_WORKFLOW})
    context = replace(
        attempt(config),
        place=Place(run_id="run-9", workflow_id="wf-1", node_id="send[3]", item={"id": "x"}, index=3),
        params={"day": "monday"},
        nodes={"load": {"status": "SUCCESS", "artifact": {"rows": [1]}}, "a-b": {"status": "FAILED"}},
    )
    await http.execute(context)
    seen = witness.seen[0]
    assert seen.header("x-ksana-workflow-run-id") == "run-9"
    assert seen.header("x-ksana-node-id") == "send[3]"
    assert seen.target == "/send%5B3%5D"
    assert seen.json() == {
        "params": "monday",
        "rows": "[1]",
        "status": "FAILED",
        "item": "x 3",
        "place": "wf-1 run-9 send[3]",
    }


async def test_a_jobs_own_run_has_no_place_in_a_workflow(http: HttpExecutor, witness: Witness) -> None:
    body = "{{ params }} {{ nodes }} {{ item }} {{ index }} {{ workflow_id }} {{ workflow_run_id }} {{ node_id }}"
    config = http.check({"url": witness.url(), "method": "POST", "body": body})
    await http.execute(attempt(config))
    await http.execute(replace(attempt(config), params={"a": 1}))
    assert [seen.body for seen in witness.seen] == [
        b"{} {} null null null null null",
        b'{"a": 1} {} null null null null null',
    ]
    assert not [
        name for name, _ in witness.seen[0].headers if name.lower() in {"x-ksana-workflow-run-id", "x-ksana-node-id"}
    ]


async def test_a_result_that_is_not_there_fails_for_good(http: HttpExecutor) -> None:
    outcome = await http.execute(attempt({"url": "http://127.0.0.1:1/{{ nodes.load.artifact }}"}))
    assert isinstance(outcome, Failed)
    assert outcome.error == "the template failed: there is no 'load'"
    assert not outcome.retryable


async def test_the_body_of_a_single_run_replaces_the_jobs(http: HttpExecutor, witness: Witness) -> None:
    config = {"url": witness.url(), "method": "POST", "body": "the job's"}
    await http.execute(attempt(config, input={"override_body": '{"run": {{ run_id }}}'}))
    await http.execute(attempt(config, input={"override_body": {"run": "{{ run_id }}"}}))
    await http.execute(attempt(config, input={"override_body": ""}))
    assert [seen.body for seen in witness.seen] == [b'{"run": 42}', b'{"run":"42"}', b"the job's"]


async def test_an_asynchronous_job_is_told_where_to_report(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url(), "method": "POST"}, mode=ExecutionMode.ASYNC))
    assert isinstance(outcome, AwaitingCallback)
    seen = witness.seen[0]
    assert seen.header("x-ksana-callback-url") == GRANT.url
    assert seen.header("x-ksana-callback-token") == TOKEN
    assert seen.json() == {
        "job_id": "nightly",
        "task_id": 7,
        "run_id": 42,
        "scheduled_at": "2026-03-01T09:30:00Z",
        "triggered_at": "2026-03-01T09:30:00.250000Z",
        "attempt": 2,
        "callback_url": GRANT.url,
        "callback_token": TOKEN,
    }


@pytest.mark.parametrize(
    ("method", "body", "sent"), [("GET", None, b""), ("DELETE", None, b""), ("POST", "own", b"own")]
)
async def test_an_asynchronous_job_with_a_body_or_without_room_for_one_gets_none_of_ours(
    http: HttpExecutor, witness: Witness, method: str, body: str | None, sent: bytes
) -> None:
    config = {"url": witness.url(), "method": method, "body": body}
    await http.execute(attempt(config, mode=ExecutionMode.ASYNC))
    assert witness.seen[0].body == sent


async def test_no_secret_gets_into_the_evidence(http: HttpExecutor, witness: Witness) -> None:
    secrets = {
        "Authorization": "Bearer s3cr3t-bearer",
        "Cookie": "session=s3cr3t-cookie",
        "X-Api-Key": "s3cr3t-key-1",
        "X-Auth-Token": "s3cr3t-token-1",
        "My-Secret": "s3cr3t-other",
        "X-Password": "short",
    }
    witness.answer_headers["Set-Cookie"] = "sid=s3cr3t-set-by-target"
    witness.answer_headers["X-Echo"] = f"got s3cr3t-bearer and {TOKEN}"
    config = {
        "url": witness.url("/echo?token={{ callback_token }}&key=s3cr3t-key-1"),
        "method": "POST",
        "headers": secrets,
        "body": {"callback": "{{ callback_url }}", "again": "s3cr3t-bearer", "plain": "visible"},
    }
    outcome = await http.execute(attempt(config, mode=ExecutionMode.ASYNC))
    assert isinstance(outcome, AwaitingCallback)
    assert witness.seen[0].header("authorization") == "Bearer s3cr3t-bearer"
    assert TOKEN in witness.seen[0].target
    kept = repr(outcome.evidence)
    assert "s3cr3t" not in kept
    assert TOKEN not in kept
    assert "visible" in kept
    headers = outcome.evidence.request["headers"]
    assert {headers[name] for name in (*secrets, "X-Ksana-Callback-Token")} == {"***"}
    assert headers["X-Ksana-Callback-Url"] == "http://ksana.example/api/v1/callbacks/***"
    assert outcome.evidence.response_headers["X-Echo"] == "got *** and ***"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"headers": {"X-A": "{{ input.bad }}"}}, "headers.X-A: must not contain line breaks or control characters"),
        ({"headers": {"X-A": "{{ input.long }}"}}, "headers.X-A: is longer than 16384 bytes"),
        ({"url": "http://127.0.0.1:1/{{ input.bad }}"}, "url: must not contain control characters"),
        ({"url": "http://127.0.0.1:1/{{ input.gone }}"}, "the template failed: there is no 'gone'"),
        ({"body": "{{ input.gone }}"}, "the template failed: there is no 'gone'"),
        ({"body": "{{ input.half }}"}, "the body cannot be written as JSON or UTF-8"),
        ({"body": ["{{ input.half }}"]}, "the body cannot be written as JSON or UTF-8"),
        ({"body": "{{ input.wide }}"}, "the body is larger than 1000000 bytes"),
        ({"body": ["{{ input.wide }}"] * 3}, "body: is longer than 1000000 characters"),
        ({"body": ["{{ run_id }}"] * 201}, "body: has more than 200 strings with templates: write it as one text"),
        ({"url": "http://user:pw@127.0.0.1:1/"}, "url: must not contain a user or password"),
        ({"url": "file:///etc/passwd"}, "url: must begin with http:// or https://"),
    ],
)
async def test_what_cannot_be_sent_fails_for_good(http: HttpExecutor, change: dict[str, Any], complaint: str) -> None:
    values = {"bad": "a\r\nX-Evil: 1", "long": "x" * 17_000, "half": "\ud800", "wide": "語" * 400_000}
    config = {"url": "http://127.0.0.1:1/", "method": "POST", **change}
    outcome = await http.execute(attempt(config, input=values))
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(complaint)
    assert not outcome.retryable
    assert outcome.evidence.request["method"] == "POST"


async def test_a_body_of_a_single_run_may_do_no_more_than_a_jobs(http: HttpExecutor) -> None:
    config = {"url": "http://127.0.0.1:1/", "method": "POST"}
    outcome = await http.execute(attempt(config, input={"override_body": "{% for a in input %}{% endfor %}"}))
    assert isinstance(outcome, Failed)
    assert outcome.error == "line 1: loops cannot be used in a template"
    assert not outcome.retryable


@pytest.mark.parametrize(
    ("kind", "sent", "read"),
    [
        ("text/plain; charset=gbk", "中文".encode("gbk"), "中文"),
        ('text/plain; charset="ISO-8859-1"', b"\xe4", "ä"),
        ("text/plain", b"a\xffb", "a\ufffdb"),
        ("text/plain; charset=nonsense", "ä".encode(), "ä"),
        ("text/plain; charset=rot13", b"abc", "abc"),
        ("text/plain; charset=zlib", b"abc", "abc"),
        ("text/plain; charset=utf-7", b"+AGEA-", "+AGEA-"),
        ("text/plain; charset=windows-1252", b"\x80", "€"),
        ("text/plain; charset=KOI8-U", "Ї".encode("koi8-u"), "Ї"),
    ],
)
def test_an_answer_is_decoded_as_it_says_if_that_is_a_way_to_write_text(kind: str, sent: bytes, read: str) -> None:
    assert answered(kind, sent) == read


def answered(kind: str, sent: bytes) -> str | None:
    """The body as it is shown."""
    answer = Answer(Bounds(100, 100))
    answer.status, answer.headers = 200, [(b"Content-Type", kind.encode())]
    answer.kept, answer.bytes_read, answer.complete = sent, len(sent), True
    return Exchange("GET", "http://h/", answer=answer).evidence().response_body


def test_what_targets_call_their_encodings_is_not_remembered_for_ever() -> None:
    before = len(encodings._cache)
    for number in range(10):
        assert answered(f"text/plain; charset=made-up-{number}", b"a") == "a"
    assert len(encodings._cache) == before


async def test_a_job_that_was_changed_is_sent_as_it_stands_now(http: HttpExecutor, witness: Witness) -> None:
    for value in (1, True, 1.0, "1", 1):
        await http.execute(attempt({"url": witness.url(), "method": "POST", "body": {"a": value}}))
    assert [seen.body for seen in witness.seen] == [b'{"a":1}', b'{"a":true}', b'{"a":1.0}', b'{"a":"1"}', b'{"a":1}']


async def test_what_was_worked_out_for_one_attempt_does_not_show_in_the_next(
    http: HttpExecutor, witness: Witness
) -> None:
    config = {"url": witness.url(), "method": "POST", "headers": {"X-Api-Key": "s3cr3t-key"}}
    plain, called_back = attempt(config), attempt(config, mode=ExecutionMode.ASYNC)
    for context in (plain, called_back, plain):
        await http.execute(context)
    assert [seen.header("x-ksana-callback-token") for seen in witness.seen] == [None, TOKEN, None]
    assert [bool(seen.body) for seen in witness.seen] == [False, True, False]
    assert len({seen.header("traceparent") for seen in witness.seen}) == 3


def test_of_prepared_jobs_the_least_used_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ksana.executors.http_prepared.KEPT", 2)
    jobs = PreparedJobs(Sender(EgressPolicy(), "ksana", timedelta(seconds=1)))
    first, second, third = ({"url": f"http://127.0.0.1/{number}"} for number in range(3))
    known = jobs.of(first)
    jobs.of(second)
    assert jobs.of(dict(first)) is known
    jobs.of(third)
    assert jobs.of(first) is known
    large = {"url": "http://127.0.0.1/", "body": "x" * LARGEST_KEPT}
    assert jobs.of(large) is not jobs.of(large)
