"""Hints between instances on one PostgreSQL: they come, they come again after an outage, and no silent server holds anybody."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, Queue

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from structlog.testing import capture_logs

from ksana.store.requests import StoreOptions
from ksana.store.sql import migrate, open_store
from ksana.store.sql.dialects import postgresql_courier
from ksana.store.sql.dialects.base import Courier
from ksana.store.sql.dialects.postgresql import PostgresqlDialect
from ksana.store.sql.dialects.postgresql_courier import MISSED
from tests.clock import FakeClock
from tests.conftest import StartPrivate
from tests.servers.postgresql import PostgresServer
from tests.servers.proxy import proxied

pytestmark = pytest.mark.postgresql
OPTIONS = StoreOptions(readers=1)
SOON = 20.0
"""Seconds; a machine that is busy with other tests takes its time."""


class Ears:
    """What a listener has heard."""

    def __init__(self) -> None:
        self._heard: Queue[str] = Queue()

    def __call__(self, hint: str) -> None:
        self._heard.put(hint)

    def hear(self, hint: str) -> None:
        """Waits until it has come, whatever comes before."""
        while (heard := self._heard.get(timeout=SOON)) != hint:
            assert heard == MISSED

    def silent(self, seconds: float) -> bool:
        try:
            self._heard.get(timeout=seconds)
        except Empty:
            return True
        return False


@contextmanager
def courier(url: str, listener: Callable[[str], None]) -> Iterator[Courier]:
    made = PostgresqlDialect().courier(url, OPTIONS)
    assert made is not None
    made.start(listener)
    try:
        yield made
    finally:
        made.close()


async def test_hints_are_carried_between_two_stores(postgres_url: str, clock: FakeClock) -> None:
    migrate.upgrade(postgres_url, OPTIONS)
    one, two = (open_store(postgres_url, options=OPTIONS, clock=clock) for _ in range(2))
    ears, others = Ears(), Ears()
    try:
        assert one.listen(ears)
        assert two.listen(others)
        ears.hear(MISSED)
        others.hear(MISSED)
        one.tell_others("work")
        others.hear("work")
        assert ears.silent(0.2)  # nobody hears himself
        two.tell_others("leader")
        ears.hear("leader")
    finally:
        await one.close()
        await two.close()
    one.tell_others("after the end")


def test_after_a_restart_of_the_server_they_are_heard_again(private_postgres: StartPrivate[PostgresServer]) -> None:
    server = private_postgres()
    url = server.create_database()
    here, there = Ears(), Ears()
    with courier(url, here) as one, courier(url, there):
        here.hear(MISSED)
        there.hear(MISSED)
        server.restart()
        here.hear(MISSED)
        there.hear(MISSED)
        one.send("work")
        there.hear("work")


@pytest.mark.parametrize("hosts", ["one", "several"])
def test_the_url_is_understood_as_the_engines_understand_it(postgres_url: str, hosts: str) -> None:
    parsed = make_url(postgres_url).update_query_dict({"options": "-c search_path=pg_catalog -c lock_timeout=1s"})
    if hosts == "several":
        at = f"{parsed.host}:{parsed.port}"
        parsed = parsed.set(host=None, port=None).update_query_dict({"host": [at, at]})
    url = parsed.render_as_string(hide_password=False)
    here, there = Ears(), Ears()
    with courier(url, here) as one, courier(postgres_url, there):
        here.hear(MISSED)
        there.hear(MISSED)
        one.send("work")
        there.hear("work")
    engine = PostgresqlDialect().writing_engine(url, OPTIONS)
    with engine.connect() as connection:
        shown = [connection.execute(text(f"SHOW {name}")).scalar_one() for name in ("search_path", "lock_timeout")]
    engine.dispose()
    assert shown == ["pg_catalog", "2s"]  # the URL's, unless we must have it otherwise


def test_what_could_not_be_sent_is_sent_when_the_connection_is_back(postgres_url: str) -> None:
    here, there = Ears(), Ears()
    with proxied(postgres_url) as (url, proxy), courier(url, here) as one, courier(postgres_url, there):
        here.hear(MISSED)
        there.hear(MISSED)
        proxy.drop(b"PG_NOTIFY")
        one.send("work")
        there.hear("work")
        assert proxy.lost == 1


def test_a_silent_server_is_given_up_and_told_once(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_courier, "_LOOK", 0.5)
    monkeypatch.setattr(postgresql_courier, "_PATIENCE", 1.0)
    monkeypatch.setattr(postgresql_courier, "_WORTH_TELLING", 0.5)
    ears = Ears()
    with capture_logs() as lines, proxied(postgres_url) as (url, proxy), courier(url, ears):
        ears.hear(MISSED)
        proxy.blackhole()
        time.sleep(6)  # it is looked at, given up, and tried again
        proxy.pass_on()
        ears.hear(MISSED)
    told = [(line["action"], line["log_level"]) for line in lines if line["action"].startswith("store.courier")]
    assert told == [("store.courier_lost", "warning"), ("store.courier_regained", "info")]


def test_a_short_absence_is_not_worth_a_word(
    private_postgres: StartPrivate[PostgresServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_courier, "_WORTH_TELLING", SOON)
    server = private_postgres()
    ears = Ears()
    with capture_logs() as lines, courier(server.create_database(), ears):
        ears.hear(MISSED)
        _end_sessions(server)
        ears.hear(MISSED)
    assert lines == []


def _end_sessions(server: PostgresServer) -> None:
    with server.address._connection(10) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ksana'")


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "sending"])
def test_to_close_it_waits_for_no_silent_server(postgres_url: str, busy: bool) -> None:
    ears = Ears()
    with proxied(postgres_url) as (url, proxy), courier(url, ears) as one:
        ears.hear(MISSED)
        proxy.blackhole()
        if busy:
            one.send("work")
        began = time.monotonic()
        one.close()
        assert time.monotonic() - began < 5
        _nobody_is_harmed(one)


def test_to_close_it_waits_for_no_server_that_does_not_let_it_in(postgres_url: str) -> None:
    with proxied(postgres_url) as (url, proxy):
        proxy.blackhole()
        with courier(url, Ears()) as one:
            began = time.monotonic()
            one.close()
            assert time.monotonic() - began < 5
            _nobody_is_harmed(one)


def test_what_is_sent_after_the_end_goes_nowhere(postgres_url: str) -> None:
    ears = Ears()
    with courier(postgres_url, ears) as one:
        ears.hear(MISSED)
        one.close()
        _nobody_is_harmed(one)


def test_one_that_never_began_can_be_closed(postgres_url: str) -> None:
    one = PostgresqlDialect().courier(postgres_url, OPTIONS)
    assert one is not None
    one.send("work")
    one.close()
    _nobody_is_harmed(one)


def _nobody_is_harmed(closed: Courier) -> None:
    """Whoever has the descriptors now gets nothing that was meant for it; and to close it again is nothing."""
    pipes = [os.pipe() for _ in range(4)]
    try:
        for out, _ in pipes:
            os.set_blocking(out, False)
        closed.send("work")
        closed.close()
        for out, _ in pipes:
            with pytest.raises(BlockingIOError):
                os.read(out, 1)
    finally:
        for pair in pipes:
            for descriptor in pair:
                os.close(descriptor)


def test_its_thread_keeps_no_process_alive(postgres_url: str) -> None:
    ears = Ears()
    with courier(postgres_url, ears):
        ears.hear(MISSED)
        found = [thread for thread in threading.enumerate() if thread.name == "ksana-courier"]
        assert found
        assert all(thread.daemon for thread in found)
