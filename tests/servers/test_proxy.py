"""The proxy does to connections what it says."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.servers.proxy import Proxy

PATIENCE = 10.0
SILENCE = 0.2


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Before a server that answers each request with itself in capitals."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(1024):
                    connection.sendall(data.upper())

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        with Proxy("127.0.0.1", server.getsockname()[1]) as proxy:
            yield proxy
        server.shutdown(socket.SHUT_RDWR)


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), PATIENCE)


def asked(connection: socket.socket, text: bytes = b"hello") -> bytes:
    connection.sendall(text)
    return connection.recv(1024)


def drained(connection: socket.socket) -> bytes:
    """All that still comes."""
    return b"".join(iter(lambda: connection.recv(1024), b""))


def test_it_passes_on(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert asked(connection) == b"HELLO"
        assert asked(connection, b"again") == b"AGAIN"
        assert proxy.connections == 1


def test_a_reset_is_a_reset_for_the_old_and_the_new(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        asked(connection)
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with pytest.raises(ConnectionResetError), connected(proxy) as connection:
        connection.recv(1)
    proxy.pass_on()
    with connected(proxy) as connection:
        assert asked(connection) == b"HELLO"


def test_who_is_refused_finds_nobody_and_later_the_same_port(proxy: Proxy) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connected(proxy)
    proxy.pass_on()
    with connected(proxy) as connection:
        assert asked(connection) == b"HELLO"


def test_a_blackhole_is_open_and_silent_and_holds_back_what_was_on_its_way(proxy: Proxy) -> None:
    with connected(proxy) as old:
        asked(old)
        proxy.blackhole()
        old.settimeout(SILENCE)
        with pytest.raises(TimeoutError):
            asked(old, b"late")
        with connected(proxy) as new:
            new.settimeout(SILENCE)
            with pytest.raises(TimeoutError):
                asked(new, b"later")
            proxy.pass_on()
            old.settimeout(PATIENCE)
            new.settimeout(PATIENCE)
            assert old.recv(1024) == b"LATE"
            assert new.recv(1024) == b"LATER"


def test_a_delay_is_for_each_request(proxy: Proxy) -> None:
    proxy.delay(SILENCE)
    with connected(proxy) as connection:
        began = time.monotonic()
        asked(connection)
        asked(connection)
    assert time.monotonic() - began >= 2 * SILENCE


def test_an_answer_is_cut_in_the_middle(proxy: Proxy) -> None:
    proxy.cut_after(7)
    with connected(proxy) as connection:
        assert asked(connection) == b"HELLO"
        connection.sendall(b"hello")
        with pytest.raises(ConnectionResetError):
            drained(connection)


def test_every_third_answer_to_a_request_is_lost_and_no_more_than_said(proxy: Proxy) -> None:
    proxy.lose_answer_to(b"COMMIT", times=2, every=3)
    answers = []
    for _ in range(9):
        with connected(proxy) as connection:
            answers.append(asked(connection, b"commit"))
    assert answers == [b"COMMIT", b"COMMIT", b"", b"COMMIT", b"COMMIT", b"", b"COMMIT", b"COMMIT", b"COMMIT"]
    assert proxy.lost == 2


def test_a_dropped_request_ends_its_connection(proxy: Proxy) -> None:
    proxy.drop(b"COMMIT")
    with connected(proxy) as connection:
        assert asked(connection, b"commit") == b""
    with connected(proxy) as connection:
        assert asked(connection, b"commit") == b"COMMIT"
