"""How an attempt ends: every status, every way in which a network fails, every deadline."""

import asyncio
import socket
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs
from tests.unit.executors.attempts import attempt
from tests.unit.executors.conftest import MakeExecutor
from tests.unit.executors.witness import Witness

from ksana.domain.job import ExecutionMode
from ksana.domain.outcome import AwaitingCallback, Failed, Succeeded, TimedOut
from ksana.executors.http import HttpExecutor
from ksana.executors.http_answer import parse_retry_after

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


async def test_an_answer_of_200_succeeds_and_its_json_is_the_output(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/ok")}))
    assert isinstance(outcome, Succeeded)
    assert outcome.output == {"done": True}
    assert outcome.evidence.response_code == 200
    assert outcome.evidence.response_body == '{"done": true}'
    assert outcome.evidence.response_headers["Content-Type"] == "application/json"
    assert "notes" not in outcome.evidence.request


async def test_an_answer_that_is_not_json_succeeds_without_output(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/status/204")}))
    assert isinstance(outcome, Succeeded)
    assert outcome.output is None


async def test_an_accepted_asynchronous_job_waits_for_its_callback(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/status/202")}, mode=ExecutionMode.ASYNC))
    assert isinstance(outcome, AwaitingCallback)
    assert outcome.within == timedelta(seconds=77)
    assert outcome.evidence.response_code == 202


@pytest.mark.parametrize("mode", list(ExecutionMode))
@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((status, True) for status in (408, 429, 500, 502, 503, 504, 599)),
        *((status, False) for status in (300, 302, 304, 400, 401, 403, 404, 409, 410, 422, 499)),
    ],
)
async def test_other_answers_fail(
    http: HttpExecutor, witness: Witness, status: int, retryable: bool, mode: ExecutionMode
) -> None:
    outcome = await http.execute(attempt({"url": witness.url(f"/status/{status}")}, mode=mode))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"answered {status}"
    assert outcome.retryable is retryable
    assert outcome.evidence.response_code == status


@pytest.mark.parametrize(
    ("status", "wait"), [(503, timedelta(seconds=120)), (429, timedelta(seconds=120)), (404, None)]
)
async def test_retry_after_is_heeded_where_a_retry_is(
    http: HttpExecutor, witness: Witness, status: int, wait: timedelta | None
) -> None:
    witness.answer_headers["retry-after"] = "120"
    outcome = await http.execute(attempt({"url": witness.url(f"/status/{status}")}))
    assert isinstance(outcome, Failed)
    assert outcome.retry_after == wait


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("0", timedelta(0)),
        (" 30 ", timedelta(seconds=30)),
        ("Sun, 01 Mar 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("Sun, 01 Mar 2026 12:01:00 -0000", timedelta(minutes=1)),
        ("Sun, 01 Mar 2026 11:00:00 GMT", timedelta(0)),
        *((value, None) for value in (None, "", "soon", "-5", "1.5", "٣", "9" * 400, "Sun, 99 Foo 2026 12:01:00 GMT")),
    ],
)
def test_retry_after_may_be_seconds_or_a_date(value: str | None, wait: timedelta | None) -> None:
    assert parse_retry_after(value, now=NOW) == wait


async def test_nobody_listening_is_told_in_plain_words(http: HttpExecutor) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        outcome = await http.execute(attempt({"url": f"http://127.0.0.1:{port}/"}))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"connection refused by 127.0.0.1:{port}"
    assert outcome.retryable
    assert outcome.evidence.request["url"] == f"http://127.0.0.1:{port}/"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_a_connection_that_is_reset_fails_after_one_request_only(
    http: HttpExecutor, witness: Witness, method: str
) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/reset"), "method": method}))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"127.0.0.1:{witness.port} closed the connection without an answer"
    assert outcome.retryable
    assert len(witness.seen) == 1


async def test_an_answer_that_breaks_off_fails_and_keeps_what_had_come(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/half")}))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"the answer of 127.0.0.1:{witness.port} broke off"
    assert outcome.retryable
    assert outcome.evidence.response_body == "half"
    assert outcome.evidence.request["notes"] == {"response_truncated": True, "response_bytes_read": 4}


async def test_what_is_not_http_fails(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/garbage")}))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"the answer of 127.0.0.1:{witness.port} is not valid HTTP"


async def test_a_target_without_tls_is_not_talked_to_in_plain(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url().replace("http:", "https:")}))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"no TLS with 127.0.0.1:{witness.port}"
    assert not witness.seen


async def test_a_target_that_never_answers_is_timed_out_with_what_was_sent(
    http: HttpExecutor, witness: Witness
) -> None:
    config = {"url": witness.url("/never"), "method": "POST", "body": "hello"}
    outcome = await http.execute(attempt(config, timeout=0.2))
    assert isinstance(outcome, TimedOut)
    assert outcome.error == "no answer within 200ms"
    assert outcome.evidence.request_body == "hello"
    assert outcome.evidence.request["method"] == "POST"
    assert outcome.evidence.response_code is None


async def test_a_target_that_drips_is_cut_at_the_deadline(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/drip")}, timeout=0.5))
    assert isinstance(outcome, TimedOut)
    assert outcome.error == "answered 200, but not to the end within 500ms"
    assert outcome.evidence.response_code == 200
    assert set(outcome.evidence.response_body or ".") == {"."}
    assert outcome.evidence.request["notes"]["response_truncated"] is True
    await witness.left.wait()


async def test_a_connection_that_does_not_come_about_has_a_deadline_of_its_own(http: HttpExecutor) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)  # it takes connections, and never begins TLS
        port = silent.getsockname()[1]
        outcome = await http.execute(attempt({"url": f"https://127.0.0.1:{port}/", "connect_timeout": "100ms"}))
    assert isinstance(outcome, TimedOut)
    assert outcome.error == f"no connection to 127.0.0.1:{port} within 100ms"
    assert outcome.evidence.request["url"] == f"https://127.0.0.1:{port}/"


async def test_a_cancelled_attempt_closes_its_connection(http: HttpExecutor, witness: Witness) -> None:
    task = asyncio.create_task(http.execute(attempt({"url": witness.url("/never")})))
    await witness.arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await witness.left.wait()


async def test_an_attempt_cancelled_within_the_body_closes_its_connection(
    make_executor: MakeExecutor, witness: Witness
) -> None:
    task = asyncio.create_task(make_executor(max_read=10**10).execute(attempt({"url": witness.url("/huge")})))
    await witness.flowing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await witness.left.wait()


async def test_a_body_larger_than_is_read_is_left_and_the_status_decides(
    make_executor: MakeExecutor, witness: Witness
) -> None:
    http = make_executor(max_read=300_000, max_kept=100_000)
    outcome = await http.execute(attempt({"url": witness.url("/huge")}))
    assert isinstance(outcome, Succeeded)
    assert outcome.evidence.response_body == "x" * 100_000
    notes = outcome.evidence.request["notes"]
    assert notes["response_truncated"] is True
    assert 300_000 < notes["response_bytes_read"] < 1_000_000
    await witness.left.wait()


async def test_a_bomb_is_unpacked_no_further_than_is_kept(make_executor: MakeExecutor, witness: Witness) -> None:
    outcome = await make_executor(max_kept=50_000).execute(attempt({"url": witness.url("/bomb")}))
    assert isinstance(outcome, Succeeded)
    assert len(outcome.evidence.response_body or "") <= 50_000
    assert outcome.evidence.request["notes"]["response_truncated"] is True


async def test_an_answer_that_is_packed_though_nobody_asked_is_read(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/packed")}))
    assert isinstance(outcome, Succeeded)
    assert outcome.output == {"packed": True}
    assert witness.seen[0].header("accept-encoding") == "identity"


async def test_json_larger_than_is_kept_is_no_output(make_executor: MakeExecutor, witness: Witness) -> None:
    outcome = await make_executor(max_kept=5).execute(attempt({"url": witness.url("/ok")}))
    assert isinstance(outcome, Succeeded)
    assert outcome.output is None
    assert outcome.evidence.response_body == '{"don'


async def test_connections_are_used_again(http: HttpExecutor, witness: Witness) -> None:
    for _ in range(5):
        assert isinstance(await http.execute(attempt({"url": witness.url("/ok")})), Succeeded)
    assert len(witness.seen) == 5
    assert witness.connections == 1


async def test_what_nobody_thought_of_ends_the_attempt_and_may_be_tried_again(
    http: HttpExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ksana.executors.http.compose", broken)
    with capture_logs() as lines:
        outcome = await http.execute(attempt({"url": "http://127.0.0.1/"}))
    assert [line["action"] for line in lines] == ["http.unexpected"]
    assert isinstance(outcome, Failed)
    assert outcome.error == "the request failed unexpectedly: see the log"
    assert outcome.retryable


async def test_closing_what_never_ran_is_harmless() -> None:
    await HttpExecutor().close()
