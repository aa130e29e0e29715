"""Connections: when one is used again, who waits for one, and what they lead to."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.unit.executors.attempts import attempt
from tests.unit.executors.conftest import MakeExecutor
from tests.unit.executors.raw_server import OK, RawServer, held, raw_server, says
from tests.unit.executors.witness import Witness

from ksana.domain.outcome import Failed, Outcome, Succeeded, TimedOut
from ksana.executors import egress_dial, egress_pool
from ksana.executors.egress_connection import Answer, Bounds, Origin
from ksana.executors.egress_errors import BrokenOff
from ksana.executors.http import HttpExecutor


def calling(http: HttpExecutor, server: RawServer, **config: str) -> "asyncio.Task[Outcome]":
    return asyncio.create_task(http.execute(attempt({"url": server.url, **config})))


def no_answer(outcome: Outcome) -> None:
    assert isinstance(outcome, Failed), outcome
    assert outcome.error.endswith("closed the connection without an answer")
    assert outcome.retryable


# Used again ---------------------------------------------------------------------------------------------------------


async def test_a_connection_that_the_target_closed_in_between_is_not_used_again(http: HttpExecutor) -> None:
    async with raw_server(says(OK, stays=False), says(OK)) as server:
        assert isinstance(await calling(http, server), Succeeded)
        await server.left.get()  # our side is closed as well
        assert isinstance(await calling(http, server), Succeeded)
        assert (len(server.seen), server.connections) == (2, 2)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_a_connection_that_the_target_closes_at_that_very_moment_is_told_and_nothing_sent_again(
    http: HttpExecutor, method: str
) -> None:
    async with raw_server(says(OK), says(stays=False), says(OK)) as server:
        assert isinstance(await calling(http, server), Succeeded)
        no_answer(await calling(http, server, method=method))
        assert (len(server.seen), server.connections) == (2, 1)


async def test_what_comes_before_the_request_was_written_is_not_its_answer(http: HttpExecutor) -> None:
    async with raw_server(says(OK)) as server:
        assert isinstance(await calling(http, server), Succeeded)
        pool = http._client._pool
        assert pool is not None
        connection, answer = await pool.acquire(Origin("http", "127.0.0.1", server.port)), Answer(Bounds(100, 100))
        waiter = connection.ask(b"GET / HTTP/1.1\r\n\r\n", answer, asyncio.get_running_loop().time() + 60)
        connection.data_received(OK)  # before the loop has had its next turn
        with pytest.raises(BrokenOff):
            await waiter
        await server.left.get()
        assert answer.status is None
        assert len(server.seen) == 1


async def test_idle_connections_are_closed_after_a_while(http: HttpExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress_pool, "KEEP_ALIVE_SECONDS", 0.01)
    async with raw_server(says(OK)) as server:
        for count in (1, 2):
            assert isinstance(await calling(http, server), Succeeded)
            await server.left.get()
            assert server.connections == count


async def test_an_answer_that_comes_before_the_request_was_taken_ends_its_connection(
    http: HttpExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def narrow(_self: object, _address: str) -> socket.socket:
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return opened

    async def hasty(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await asyncio.Event().wait()  # and takes no more of it
        return False

    monkeypatch.setattr(egress_dial.Dialler, "open_socket", narrow)
    async with raw_server(hasty, reads_bodies=False) as server:
        for body in ("x" * 900_000, ""):
            outcome = await calling(http, server, method="POST", body=body)
            assert isinstance(outcome, Failed)
            assert outcome.error == "answered 413"
        assert server.connections == 2


# Waiting for a place ------------------------------------------------------------------------------------------------


async def test_no_more_connections_are_open_than_allowed_and_all_are_served_in_turn(
    make_executor: MakeExecutor,
) -> None:
    http, go = make_executor(connections=2), asyncio.Event()
    async with raw_server(held(OK, go)) as server:
        tasks = [calling(http, server, method=method) for method in ("GET", "PUT", "POST", "PATCH", "DELETE")]
        await server.arrived.get()
        await server.arrived.get()
        go.set()
        assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(*tasks))
        assert server.connections == 2
        asked = [head.split(b" ")[0] for head in server.seen]
        assert [sorted(asked[:2]), sorted(asked[2:4]), asked[4:]] == [
            [b"GET", b"PUT"],
            [b"PATCH", b"POST"],
            [b"DELETE"],
        ]


async def test_a_place_is_passed_on_to_another_target(make_executor: MakeExecutor) -> None:
    http, go = make_executor(connections=1), asyncio.Event()
    async with raw_server(held(OK, go)) as one, raw_server(says(OK)) as other:
        first = calling(http, one)
        await one.arrived.get()
        second, third = calling(http, other), calling(http, one)
        go.set()
        for task in (first, second, third):
            assert isinstance(await task, Succeeded)
        assert (one.connections, other.connections) == (2, 1)


async def test_an_idle_connection_makes_room_for_one_to_elsewhere(
    make_executor: MakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(egress_pool, "KEEP_ALIVE_SECONDS", 600.0)
    http = make_executor(connections=1)
    async with raw_server(says(OK)) as one, raw_server(says(OK)) as other:
        for server in (one, other, one):
            assert isinstance(await calling(http, server), Succeeded)
        assert (one.connections, other.connections) == (2, 1)


async def test_waiting_for_a_place_counts_as_connecting(make_executor: MakeExecutor) -> None:
    http = make_executor(connections=1)
    async with raw_server(held(OK, asyncio.Event())) as server:
        busy = calling(http, server)
        await server.arrived.get()
        outcome = await calling(http, server, connect_timeout="50ms")
        assert isinstance(outcome, TimedOut)
        assert outcome.error == f"no connection to 127.0.0.1:{server.port} within 50ms"
        assert len(server.seen) == 1
        busy.cancel()
        await asyncio.gather(busy, return_exceptions=True)


async def test_who_no_longer_waits_gives_way_to_the_next(make_executor: MakeExecutor) -> None:
    http, go = make_executor(connections=1), asyncio.Event()
    async with raw_server(held(OK, go)) as server:
        busy = calling(http, server)
        await server.arrived.get()
        gone, next_one = calling(http, server), calling(http, server)
        await asyncio.sleep(0)
        gone.cancel()
        go.set()
        assert isinstance(await busy, Succeeded)
        assert isinstance(await next_one, Succeeded)
        assert len(server.seen) == 2


async def test_who_no_longer_waits_is_forgotten_at_once(make_executor: MakeExecutor) -> None:
    http = make_executor(connections=1)
    async with raw_server(held(OK, asyncio.Event())) as server:
        busy = calling(http, server)
        await server.arrived.get()
        gone = [calling(http, server) for _ in range(3)]
        await asyncio.sleep(0)
        pool = http._client._pool
        assert pool is not None
        assert len(pool._waiting) == 3
        for each in (gone[1], gone[0], gone[2]):
            each.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        assert not pool._waiting
        busy.cancel()


async def test_a_connection_given_to_who_left_at_that_moment_is_not_lost(make_executor: MakeExecutor) -> None:
    http = make_executor(connections=1)
    async with raw_server(says(OK)) as server:
        assert isinstance(await calling(http, server), Succeeded)
        pool, origin = http._client._pool, Origin("http", "127.0.0.1", server.port)
        assert pool is not None
        connection = await pool.acquire(origin)
        gone = asyncio.create_task(pool.acquire(origin))
        await asyncio.sleep(0)
        pool.freed(connection)  # it is handed over, but the other one has not been woken yet
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert pool.idle(origin) is connection


async def test_a_connection_that_did_not_come_about_takes_no_place(
    make_executor: MakeExecutor, witness: Witness
) -> None:
    http = make_executor(connections=1)
    without_tls = witness.url().replace("http:", "https:")
    for url in ("http://127.0.0.1:1/", without_tls, "http://169.254.169.254/"):
        assert isinstance(await http.execute(attempt({"url": url})), Failed)
    cancelled = asyncio.create_task(http.execute(attempt({"url": witness.url()})))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert isinstance(await http.execute(attempt({"url": witness.url()})), Succeeded)


async def test_closing_breaks_off_what_is_under_way_and_what_waits(make_executor: MakeExecutor) -> None:
    http = make_executor(connections=1)
    async with raw_server(held(OK, asyncio.Event())) as server:
        busy, waiting = calling(http, server), calling(http, server)
        await server.arrived.get()
        await http.close()
        no_answer(await busy)
        no_answer(await waiting)


# The deadline -------------------------------------------------------------------------------------------------------


async def test_a_shorter_deadline_on_a_connection_that_is_used_again_is_kept(http: HttpExecutor) -> None:
    async with raw_server(says(OK), held(OK, asyncio.Event())) as server:
        assert isinstance(await http.execute(attempt({"url": server.url}, timeout=60)), Succeeded)
        outcome = await http.execute(attempt({"url": server.url}, timeout=0.05))
        assert isinstance(outcome, TimedOut)
        assert outcome.error == "no answer within 50ms"
        assert server.connections == 1


async def test_the_deadline_of_an_earlier_request_does_not_end_a_later_one(http: HttpExecutor) -> None:
    loop = asyncio.get_running_loop()

    async def after_the_first_deadline(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        passed = asyncio.Event()
        loop.call_at(begun + 0.1, passed.set)  # later than the timer of the first request, which is still running
        await passed.wait()
        writer.write(OK)
        return True

    async with raw_server(says(OK), after_the_first_deadline) as server:
        begun = loop.time()
        assert isinstance(await http.execute(attempt({"url": server.url}, timeout=0.08)), Succeeded)
        assert isinstance(await http.execute(attempt({"url": server.url}, timeout=60)), Succeeded)
        assert server.connections == 1


# Where it leads -----------------------------------------------------------------------------------------------------


class Leads:
    """A name server that gives every name the same addresses."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = list(addresses)
        self.asked: list[str] = []

    async def resolve(self, host: str, _port: int, /) -> list[str]:
        self.asked.append(host)
        return list(self._addresses)

    async def close(self) -> None:
        pass


async def test_an_address_that_takes_no_connection_is_passed_over(make_executor: MakeExecutor) -> None:
    async with raw_server(says(OK)) as server:
        url = f"http://two.example:{server.port}/"
        assert isinstance(
            await make_executor(Leads("127.0.0.2", "127.0.0.1")).execute(attempt({"url": url})), Succeeded
        )
        outcome = await make_executor(Leads("127.0.0.2", "127.0.0.3")).execute(attempt({"url": url}))
        assert isinstance(outcome, Failed)
        assert outcome.error == f"connection refused by two.example:{server.port}"


async def test_a_name_is_looked_up_once_for_all_who_ask_and_for_a_while(make_executor: MakeExecutor) -> None:
    names = Leads("127.0.0.1")
    http = make_executor(names)
    async with raw_server(says(OK, stays=False)) as server:
        context = attempt({"url": f"http://once.example:{server.port}/"})
        await asyncio.gather(*(http.execute(context) for _ in range(3)))
        await http.execute(context)
        assert len(server.seen) == server.connections == 4
        assert names.asked == ["once.example"]


async def test_closing_ends_a_lookup_that_takes_for_ever(make_executor: MakeExecutor) -> None:
    class Slow(Leads):
        async def resolve(self, host: str, _port: int, /) -> list[str]:
            begun.set()
            await asyncio.Event().wait()
            return [host]

    begun = asyncio.Event()
    http = make_executor(Slow())
    task = asyncio.create_task(http.execute(attempt({"url": "http://slow.example/"})))
    await begun.wait()
    await http.close()
    no_answer(await task)


async def test_a_name_without_addresses_is_no_host(make_executor: MakeExecutor) -> None:
    outcome = await make_executor(Leads()).execute(attempt({"url": "http://empty.example/"}))
    assert isinstance(outcome, Failed)
    assert outcome.error == "there is no host empty.example"
    assert outcome.retryable


async def test_a_name_of_another_script_is_looked_up_and_sent_in_ascii(make_executor: MakeExecutor) -> None:
    names = Leads("127.0.0.1")
    async with raw_server(says(OK)) as server:
        outcome = await make_executor(names).execute(attempt({"url": f"http://bücher.example:{server.port}/ä"}))
        assert isinstance(outcome, Succeeded)
        assert server.seen[0].startswith(b"GET /%C3%A4 HTTP/1.1\r\nHost: xn--bcher-kva.example:")
        assert names.asked == ["xn--bcher-kva.example"]


async def test_an_ipv6_address_is_a_target_like_any_other(http: HttpExecutor) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    async with raw_server(says(OK), host="::1") as server:
        assert isinstance(await calling(http, server), Succeeded)
        assert f"Host: [::1]:{server.port}\r\n".encode() in server.seen[0]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
async def test_tls_is_verified_with_the_name_that_the_job_gives(
    make_executor: MakeExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-subj", "/CN=private", "-addext", "subjectAltName=DNS:right.example,IP:127.0.0.1"]
    subprocess.run([*made, *named, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=certificate)
    serving.load_cert_chain(certificate, key)
    monkeypatch.setattr(egress_dial, "tls_context", lambda: trusting)
    http = make_executor(Leads("127.0.0.1"))
    async with raw_server(says(OK), tls=serving) as server:
        for host in ("right.example", "right.example.", "right.example", "127.0.0.1"):
            outcome = await http.execute(attempt({"url": f"https://{host}:{server.port}/"}))
            assert isinstance(outcome, Succeeded), outcome
        assert server.connections == 3
        outcome = await http.execute(attempt({"url": f"https://wrong.example:{server.port}/"}))
        assert isinstance(outcome, Failed)
        assert outcome.error.startswith(
            f"the certificate of wrong.example:{server.port} is not valid: Hostname mismatch"
        )
        assert len(server.seen) == 4
