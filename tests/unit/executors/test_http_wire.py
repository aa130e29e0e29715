"""Answers as servers really send them: cut anywhere, framed in every way, too large, too many, or not HTTP at all."""

import asyncio
import socket
import struct
from typing import Any

import pytest
from tests.unit.executors.attempts import attempt
from tests.unit.executors.raw_server import OK, RawServer, raw_server, says

from ksana.domain.outcome import Failed, Outcome, Succeeded
from ksana.executors import egress_pool
from ksana.executors.egress_connection import MAX_FIELD, MAX_FIELDS, MAX_HEAD
from ksana.executors.http import HttpExecutor

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'6;why=not\r\n{"done\r\n7\r\n":true}\r\n0\r\nX-Trailer: 1\r\nContent-Type: text/plain\r\n\r\n'
)
UNTIL_CLOSE = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"done":true}'
INFORMED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Early: 1\r\n\r\n"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


async def called(http: HttpExecutor, server: RawServer, **config: Any) -> Outcome:
    return await http.execute(attempt({"url": server.url, **config}))


def done(outcome: Outcome) -> None:
    assert isinstance(outcome, Succeeded), outcome
    assert outcome.output == {"done": True}
    assert outcome.evidence.response_headers["Content-Type"] == "application/json"
    assert "notes" not in outcome.evidence.request


def not_http(outcome: Outcome, server: RawServer) -> None:
    assert isinstance(outcome, Failed), outcome
    assert outcome.error == f"the answer of 127.0.0.1:{server.port} is not valid HTTP"
    assert outcome.retryable


@pytest.mark.parametrize(
    ("answer", "stays"), [(OK, True), (CHUNKED, True), (UNTIL_CLOSE, False), (INFORMED + OK, True)]
)
async def test_an_answer_is_the_same_wherever_it_is_cut(http: HttpExecutor, answer: bytes, stays: bool) -> None:
    bytewise = says(*(bytes([byte]) for byte in answer), stays=stays)
    async with raw_server(says(answer, stays=stays), bytewise) as server:
        first, second = [await called(http, server), await called(http, server)]
        done(first)
        done(second)
        assert first.evidence.response_headers == second.evidence.response_headers
        assert server.connections == (1 if stays else 2)


async def test_trailers_and_what_came_before_the_answer_are_not_of_it(http: HttpExecutor) -> None:
    async with raw_server(says(INFORMED, CHUNKED), says(OK)) as server:
        for names in ({"Content-Type", "Transfer-Encoding"}, {"Content-Type", "Content-Length"}):
            outcome = await called(http, server)
            done(outcome)
            assert set(outcome.evidence.response_headers) == names


@pytest.mark.parametrize(
    "length", [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n"]
)
async def test_an_answer_to_head_has_no_body_whatever_it_says(http: HttpExecutor, length: bytes) -> None:
    async with raw_server(says(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n"), says(OK)) as server:
        outcome = await called(http, server, method="HEAD")
        assert isinstance(outcome, Succeeded), outcome
        assert outcome.evidence.response_body == ""
        done(await called(http, server))
        assert server.connections == 1


@pytest.mark.parametrize("status", [204, 304])
async def test_some_statuses_have_no_body_whatever_they_say(http: HttpExecutor, status: int) -> None:
    answer = f"HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n".encode()
    async with raw_server(says(answer), says(OK)) as server:
        assert (await called(http, server)).evidence.response_code == status
        done(await called(http, server))
        assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        OK.replace(b"HTTP/1.1", b"HTTP/1.0"),
        OK.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n"),
        OK + OK,
        OK + b"HTTP/1.1 2",
        OK + b"garbage",
        CHUNKED + b"more",
    ],
)
async def test_a_connection_is_not_used_again_if_it_ends_or_more_has_come_than_was_asked_for(
    http: HttpExecutor, answer: bytes
) -> None:
    async with raw_server(says(answer), says(OK)) as server:
        done(await called(http, server))
        done(await called(http, server))
        assert server.connections == 2


async def test_what_comes_unasked_closes_the_connection(http: HttpExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress_pool, "KEEP_ALIVE_SECONDS", 600.0)
    more = asyncio.Event()

    async def chatty(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(OK)
        await more.wait()
        writer.write(OK.replace(b"true", b"1   "))
        return True

    async with raw_server(chatty, says(OK)) as server:
        done(await called(http, server))
        more.set()
        await asyncio.wait_for(server.left.get(), 60)
        done(await called(http, server))
        assert server.connections == 2


async def test_an_upgrade_that_nobody_asked_for_is_an_answer_and_the_end(http: HttpExecutor) -> None:
    upgrade = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nother protocol"
    async with raw_server(says(upgrade)) as server:
        outcome = await called(http, server)
        assert isinstance(outcome, Failed)
        assert outcome.error == "answered 101"
        assert not outcome.retryable
        await server.left.get()


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", INFORMED])
async def test_a_connection_that_ends_before_the_answer_has_none(http: HttpExecutor, sent: bytes) -> None:
    async with raw_server(says(sent, stays=False)) as server:
        outcome = await called(http, server)
        assert isinstance(outcome, Failed)
        assert outcome.error == f"127.0.0.1:{server.port} closed the connection without an answer"
        assert outcome.evidence.response_code is None
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (OK[:-3], '{"done":tr'),
        (CHUNKED[: CHUNKED.index(b"7\r\n")], '{"done'),
        (CHUNKED[:-2], '{"done":true}'),
        (CHUNKED[:-2].replace(b"\r\n", b"\r\nTransfer-Encoding: gzip\r\n", 1), '{"done":true}'),
    ],
)
async def test_a_body_that_ends_too_early_is_told_as_such(http: HttpExecutor, sent: bytes, body: str) -> None:
    async with raw_server(says(sent, stays=False)) as server:
        outcome = await called(http, server)
        assert isinstance(outcome, Failed)
        assert outcome.error == f"the answer of 127.0.0.1:{server.port} broke off"
        assert outcome.evidence.response_body == body
        assert outcome.evidence.request["notes"]["response_bytes_read"] == len(body)


async def test_a_body_until_the_end_of_the_connection_is_not_whole_if_that_was_reset(http: HttpExecutor) -> None:
    async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await says(UNTIL_CLOSE)(reader, writer)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return False

    async with raw_server(resets) as server:
        outcome = await called(http, server)
        assert isinstance(outcome, Failed)
        assert outcome.error == f"the answer of 127.0.0.1:{server.port} broke off"
        assert outcome.evidence.response_body == '{"done":true}'


def fields(*lines: bytes) -> bytes:
    return OK.replace(b"\r\n\r\n", b"\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 13\r\n\r\n" + b"x" * 13,
        b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        fields(*(b"X-%d: 1" % number for number in range(MAX_FIELDS))),
        fields(b"X-Long: " + b"x" * MAX_FIELD),
        fields(*(b"X-%d: " % number + b"x" * 8_000 for number in range(9))),
    ],
)
async def test_what_is_not_http_or_beyond_all_bounds_is_refused(http: HttpExecutor, answer: bytes) -> None:
    async with raw_server(says(answer)) as server:
        not_http(await called(http, server), server)
        await server.left.get()


async def test_as_many_and_as_long_headers_as_are_allowed_are_read(http: HttpExecutor) -> None:
    many = fields(*(b"X-%d: 1" % number for number in range(MAX_FIELDS - 2)))
    long = fields(b"X-Long: " + b"x" * (MAX_FIELD - len("X-Long")))
    async with raw_server(says(many), says(*(bytes([byte]) for byte in many)), says(long)) as server:
        for _ in range(3):
            done(await called(http, server))
        assert server.connections == 1


@pytest.mark.parametrize(
    "begin",
    [
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 200 OK\r\nX-Endless: ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;ext=",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: ",
    ],
)
async def test_a_head_without_end_is_not_read_for_ever(http: HttpExecutor, begin: bytes) -> None:
    async def endless(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(begin)
        while True:
            writer.write(b"x" * (MAX_HEAD // 4))
            await writer.drain()
            await asyncio.sleep(0)

    async with raw_server(endless) as server:
        not_http(await called(http, server), server)
        await server.left.get()


async def test_informational_answers_without_end_are_not_read_for_ever(http: HttpExecutor) -> None:
    async def endless(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        while True:
            writer.write(INFORMED)
            await writer.drain()
            await asyncio.sleep(0)

    async with raw_server(endless) as server:
        not_http(await called(http, server), server)
        await server.left.get()


async def test_what_servers_do_that_they_should_not_is_understood(http: HttpExecutor) -> None:
    bare = OK.replace(b"\r\n", b"\n")
    folded = OK.replace(b"OK\r\n", b"OK\r\nX-Folded: a\r\n b\r\nX-Empty:\r\n")
    async with raw_server(says(bare), says(folded), says(OK.replace(b"200 OK", b"200"))) as server:
        for _ in range(3):
            done(await called(http, server))


async def test_bytes_that_are_no_text_and_headers_given_twice_are_shown(http: HttpExecutor) -> None:
    async with raw_server(
        says(fields(b"X-A: \xff", b"X-B: 1", b"X-B: \xc3\xa4", b"Set-Cookie: a", b"Set-Cookie: b"))
    ) as server:
        outcome = await called(http, server)
        done(outcome)
        shown = outcome.evidence.response_headers
        assert (shown["X-A"], shown["X-B"], shown["Set-Cookie"]) == ("\ufffd", "1, ä", "***")


async def test_nothing_may_break_out_of_its_line_on_the_way_out(http: HttpExecutor) -> None:
    async with raw_server(says(OK)) as server:
        context = attempt({"url": server.url})
        object.__setattr__(context, "_key", "a\r\nX-Evil: 1")
        outcome = await http.execute(context)
        assert isinstance(outcome, Failed)
        assert outcome.error == "the request failed unexpectedly: see the log"
        assert server.connections == 0
