"""Writes and reads one word on a server of any kind, as the tests of the servers themselves need."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

import psycopg
import pymysql

from tests.servers.redis import RedisAddress


class Client(Protocol):
    """One way to keep a word in the database at `url`."""

    def write(self, url: str, word: str) -> None:
        """Keeps the word; durable when it returns, if the server is."""

    def read(self, url: str) -> str:
        """The word that was kept, or an error of the driver."""


class PostgresClient:
    """By psycopg."""

    def write(self, url: str, word: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE note (word TEXT)")
            connection.execute("INSERT INTO note VALUES (%s)", (word,))

    def read(self, url: str) -> str:
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT word FROM note").fetchone()
        assert row is not None
        return str(row[0])


class MySqlClient:
    """By PyMySQL."""

    def write(self, url: str, word: str) -> None:
        with mysql_connection(url) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE note (word TEXT)")
            cursor.execute("INSERT INTO note VALUES (%s)", (word,))
            connection.commit()

    def read(self, url: str) -> str:
        with mysql_connection(url) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT word FROM note")
            row = cursor.fetchone()
        assert row is not None
        return str(row[0])


class RedisClient:
    """By a socket."""

    def write(self, url: str, word: str) -> None:
        address, database = _redis(url)
        address.call(database, "SET", "note", word)

    def read(self, url: str) -> str:
        address, database = _redis(url)
        return address.call(database, "GET", "note")


@contextmanager
def mysql_connection(url: str) -> Iterator["pymysql.Connection[Any]"]:
    """A connection to the database at `url`, in a transaction."""
    parts = urlsplit(url)
    connection = pymysql.connect(
        host=parts.hostname, port=parts.port or 0, user=parts.username, database=parts.path.lstrip("/")
    )
    with closing(connection):
        yield connection


def _redis(url: str) -> tuple[RedisAddress, int]:
    parts = urlsplit(url)
    return RedisAddress(parts.port or 0), int(parts.path.lstrip("/"))
