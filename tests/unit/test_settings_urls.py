"""Addresses: which are accepted, how a Go DSN reads, and that a password is never part of what is said."""

import re

import pytest

from ksana.domain.errors import InvalidInput, InvalidSetting
from ksana.settings import endpoint, load, masked
from ksana.settings.urls import GO_DSN


def database_url(text: str) -> str:
    return load(environ={"KSANA_DATABASE_URL": text}).settings.database.url


def from_dsn(dsn: str) -> str:
    return GO_DSN.parse(dsn, "mysql.dsn")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("sqlite:///data/k.db", "sqlite:///data/k.db"),
        ("sqlite:////srv/k.db", "sqlite:////srv/k.db"),
        ("json:///srv/jobs.json", "json:///srv/jobs.json"),
        ("json:////srv/ksana", "json:///srv/ksana"),
        ("JSON://data/jobs.json", "json://data/jobs.json"),
        ("postgres://u:p@h/k", "postgresql://u:p@h/k"),
        ("PostgreSQL://u:p%40@h:5433/k?sslmode=require", "postgresql://u:p%40@h:5433/k?sslmode=require"),
        ("mariadb://u@[::1]:3307/k", "mysql://u@[::1]:3307/k"),
    ],
)
def test_supported_addresses_are_taken(text: str, url: str) -> None:
    assert database_url(text) == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ksana.db", "not a database address: write it as sqlite:///path"),
        ("oracle://u:s3cret@h/k", "'oracle' databases are not supported"),
        ("json://", "must name a file or a folder"),
        ("json:///", "must name a file or a folder"),
        ("json://data/jobs.json?mode=rw", "must name a file or a folder"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "would keep nothing"),
        ("postgresql://u:s3cret@h", "must end with the name of the database"),
        ("postgresql://u:s3cret@h:port/k", "host or port cannot be read"),
        ("postgresql://u:s3cret@/k", "names no host"),
        ("mysql://u:s3c@ret@h/k", "percent-encode special characters"),
        ("mysql://u:s3c/ret@h/k", "percent-encode special characters"),
        ("mysql://u:s3c#ret@h/k", "percent-encode special characters"),
    ],
)
def test_other_addresses_are_refused_without_showing_the_password(text: str, message: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        database_url(text)
    assert message in str(caught.value)
    assert "s3c" not in str(caught.value)
    assert caught.value.source == "environment KSANA_DATABASE_URL"


@pytest.mark.parametrize(
    ("dsn", "url"),
    [
        ("user:pass@tcp(127.0.0.1:3306)/cronjob?charset=utf8mb4&loc=Local", "mysql://user:pass@127.0.0.1:3306/cronjob"),
        ("u:p@ss:w/rd@tcp(db)/k", "mysql://u:p%40ss%3Aw%2Frd@db/k"),
        ("u@tcp([::1]:3306)/k", "mysql://u@[::1]:3306/k"),
        ("u:p@/k", "mysql://u:p@127.0.0.1:3306/k"),
        ("u:p@unix(/run/mysqld.sock)/k", "mysql://u:p@localhost/k?unix_socket=/run/mysqld.sock"),
        ("mysql://u:p@h/k", "mysql://u:p@h/k"),
    ],
)
def test_a_go_dsn_becomes_an_address(dsn: str, url: str) -> None:
    assert from_dsn(dsn) == url


@pytest.mark.parametrize(
    ("dsn", "message"),
    [
        ("u:p@tcp(h)/k?tls=true", "the option 'tls' cannot be translated"),
        ("u:p@tcp(h)/", "not a MySQL DSN"),
        ("u:p@pipe(x)/k", "the network must be tcp"),
    ],
)
def test_a_dsn_that_would_lose_its_meaning_is_refused(dsn: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        from_dsn(dsn)


@pytest.mark.parametrize("text", ["http://h:6379", "redis://", "redis://h:port", "nonsense"])
def test_what_is_no_redis_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="not a Redis address"):
        load(environ={"KSANA_REDIS_URL": text})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@h:1/k?password=x&sslmode=on", "postgresql://u:***@h:1/k?password=***&sslmode=on"),
        ("redis://:p@h/0", "redis://:***@h/0"),
        ("mysql://u@h/k", "mysql://u@h/k"),
        ("sqlite:///data/k.db", "sqlite:///data/k.db"),
        ("sqlite:////srv/k.db", "sqlite:////srv/k.db"),
        ("json:///srv/jobs.json", "json:///srv/jobs.json"),
        ("json://data/jobs.json", "json://data/jobs.json"),
        ("http://[broken", "***"),
    ],
)
def test_a_masked_address_has_everything_but_the_password(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_messages_name_a_database_by_host_and_port_or_by_file() -> None:
    assert endpoint("postgresql://u:p@h/k") == "h:5432"
    assert endpoint("mysql://u:p@[::1]/k") == "[::1]:3306"
    assert endpoint("sqlite:////srv/k.db") == "/srv/k.db"
    assert endpoint("sqlite:///data/k.db") == "data/k.db"
    assert endpoint("json:///srv/jobs.json") == "/srv/jobs.json"
    assert endpoint("json://data/jobs.json") == "data/jobs.json"
