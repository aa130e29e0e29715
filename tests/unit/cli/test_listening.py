"""The socket that requests come in by."""

import socket
from contextlib import closing

import pytest

from ksana.cli import process
from ksana.cli.process import bind, listen
from ksana.settings import load

PATIENCE = 20.0
PIECE = b"." * 65_536


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system cuts nobody off")
def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "UNREAD_MILLISECONDS", 100)
    loaded = load(environ={"KSANA_SERVER__PORT": str(free_port())})
    with closing(bind(loaded)) as listener:
        listen(listener, loaded)
        with closing(socket.create_connection(listener.getsockname())), closing(listener.accept()[0]) as served:
            served.settimeout(PATIENCE)
            with pytest.raises(OSError, match=r"timed out|reset|[Bb]roken") as cut:
                flood(served)
    assert cut.value.errno is not None  # told by the system, and not by our own patience


def flood(served: socket.socket) -> None:
    while True:
        served.sendall(PIECE)


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port: int = taken.getsockname()[1]
        return port
