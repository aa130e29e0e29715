"""The private servers keep their own contract, whichever database they are."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from pathlib import Path
from typing import NamedTuple

import psycopg
import pymysql
import pytest

from tests.conftest import StartPrivate
from tests.servers import base
from tests.servers.base import Server
from tests.servers.clients import Client, MySqlClient, PostgresClient, RedisClient, mysql_connection
from tests.servers.leash import descendants
from tests.servers.machine import free_port
from tests.servers.mysql import MySqlServer
from tests.servers.postgresql import PostgresServer

ROOT = Path(__file__).parents[2]
SYSTEM_PORTS = {5432, 3306, 6379}
PAUSE_SECONDS = 0.3
PATIENCE_SECONDS = 20.0


class BackEnd(NamedTuple):
    """How to start one kind of server and talk to it."""

    start: StartPrivate[Server]
    client: Client


@pytest.fixture(
    params=[
        pytest.param(("private_postgres", PostgresClient()), id="postgresql", marks=pytest.mark.postgresql),
        pytest.param(("private_mysql", MySqlClient()), id="mysql", marks=pytest.mark.mysql),
        pytest.param(("private_redis", RedisClient()), id="redis", marks=pytest.mark.redis),
    ]
)
def back_end(request: pytest.FixtureRequest) -> BackEnd:
    fixture, client = request.param
    return BackEnd(request.getfixturevalue(fixture), client)


def test_it_serves_new_databases_on_a_port_of_its_own(back_end: BackEnd) -> None:
    server = back_end.start()
    first, second = server.create_database(), server.create_database()
    back_end.client.write(first, "one")
    back_end.client.write(second, "two")
    assert (back_end.client.read(first), back_end.client.read(second)) == ("one", "two")
    assert server.port not in SYSTEM_PORTS


def test_a_durable_one_keeps_what_was_written_over_a_kill(back_end: BackEnd) -> None:
    server = back_end.start(durable=True)
    port, url = server.port, server.create_database()
    back_end.client.write(url, "kept")
    server.kill()
    assert not server.running
    server.start()
    assert (server.port, back_end.client.read(url)) == (port, "kept")


def test_a_durable_one_keeps_what_was_written_over_a_restart(back_end: BackEnd) -> None:
    server = back_end.start(durable=True)
    url = server.create_database()
    back_end.client.write(url, "kept")
    server.restart()
    assert back_end.client.read(url) == "kept"


def test_a_paused_one_keeps_its_clients_waiting_until_it_resumes(back_end: BackEnd) -> None:
    server = back_end.start()
    url = server.create_database()
    back_end.client.write(url, "late")
    server.pause()
    with ThreadPoolExecutor(1) as pool:
        answer: Future[str] = pool.submit(back_end.client.read, url)
        try:
            with pytest.raises(StillWaiting):
                answer.result(PAUSE_SECONDS)
        finally:
            server.resume()
        assert answer.result(PATIENCE_SECONDS) == "late"


@pytest.mark.parametrize("state", ["paused", "killed"])
def test_closing_it_leaves_neither_process_nor_folder(back_end: BackEnd, state: str) -> None:
    server = back_end.start()
    folder, pids = server.folder, descendants(_leash_of(server))
    assert pids
    {"paused": server.pause, "killed": server.kill}[state]()
    server.close()
    assert not server.running
    assert not folder.exists()
    assert not any(map(_exists, pids))


def test_it_moves_on_when_another_server_takes_its_port_first(
    back_end: BackEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = back_end.start()
    ports = [first.port, free_port()]
    monkeypatch.setattr(base, "free_port", lambda: ports.pop(0))
    second = back_end.start()
    assert ports == []
    assert second.port != first.port
    assert first.address.serves(first.folder)


def test_one_that_cannot_serve_says_why_and_leaves_no_folder(
    back_end: BackEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []
    server = back_end.start()

    def serve(failing: Server) -> list[str]:
        folders.append(failing.folder)
        return ["/bin/echo", "no"]

    monkeypatch.setattr(type(server), "_serve", serve)
    with pytest.raises(base.ServerError, match="no"):
        back_end.start()
    assert folders
    assert not any(folder.exists() for folder in folders)


def test_it_dies_with_the_process_that_started_it(back_end: BackEnd) -> None:
    kind = type(back_end.start())
    script = (
        f"from {kind.__module__} import {kind.__name__} as Server\n"
        "server = Server().start(); server.pause()\n"
        "print(server.folder, flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        assert folder.is_dir()
        holder.kill()
    # The leash removes the folder last, when everything that the server forked has ended.
    _wait_until(lambda: not folder.exists())


@pytest.mark.postgresql
def test_postgresql_drops_a_database_in_use(private_postgres: StartPrivate[PostgresServer]) -> None:
    server = private_postgres()
    url = server.create_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE held (id INTEGER)")
        server.drop_database(url)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    server.drop_database(url)


@pytest.mark.mysql
def test_mysql_drops_a_database_in_use(private_mysql: StartPrivate[MySqlServer]) -> None:
    server = private_mysql()
    url = server.create_database()
    MySqlClient().write(url, "held")
    with mysql_connection(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT word FROM note FOR UPDATE")
        server.drop_database(url)
    with pytest.raises(pymysql.err.OperationalError, match="Unknown database"), mysql_connection(url):
        pass
    server.drop_database(url)


def _leash_of(server: Server) -> int:
    assert server._leash is not None
    return server._leash.pid


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(base.POLL_SECONDS)
