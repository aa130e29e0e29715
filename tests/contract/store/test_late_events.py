"""Where several write, an event can appear after one with a greater id: the reader of streams finds it all the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import Connection, NullPool, create_engine, make_url, text

from ksana.api.live.reader import EventReader
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.world import DRIVERS, World

_INSERT = "INSERT INTO events (type, at, subject) VALUES ('job.changed', 0, 'job/1')"


@pytest.fixture(params=BACK_ENDS[1:3])
def back_end(request: pytest.FixtureRequest) -> str:
    """Those that several instances can share."""
    return str(request.param)


@contextmanager
def slow_writer(url: str) -> Iterator[Connection]:
    """Somebody who has written an event, and has not committed it yet."""
    address = make_url(url)
    engine = create_engine(address.set(drivername=DRIVERS[address.get_backend_name()]), poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text(_INSERT))
        yield connection


async def test_an_event_that_becomes_visible_late_is_told_once_and_the_position_waits_for_it(
    world: World, url: str
) -> None:
    reader = EventReader(world.store, world.clock)
    await reader.begin()
    with slow_writer(url) as other:
        job = await world.job()
        passed = await reader.read()
        assert [event.subject for event in passed.events] == [f"job/{job.id}"]
        assert reader.position < passed.events[0].id - 1
        other.commit()
    late = await reader.read()
    assert [event.type for event in late.events] == ["job.changed"]
    assert (await reader.read()).events == []


async def test_one_that_was_written_before_the_reader_began_is_told_too(world: World, url: str) -> None:
    reader = EventReader(world.store, world.clock)
    with slow_writer(url) as other:
        await world.job()
        await reader.begin()
        other.commit()
    assert [event.type for event in (await reader.read()).events] == ["job.changed"]


async def test_one_of_a_type_that_only_a_newer_version_knows_is_told_as_it_is(world: World, url: str) -> None:
    with slow_writer(url) as other:
        other.execute(text("UPDATE events SET type = 'comet.seen'"))
        other.commit()
    assert await world.event_types() == ["comet.seen"]


async def test_an_id_that_nobody_ever_has_is_given_up(world: World, url: str) -> None:
    reader = EventReader(world.store, world.clock)
    await reader.begin()
    with slow_writer(url) as other:
        await world.job()
        await reader.read()
        other.rollback()
    waited = [reader.waits_for_gaps]
    world.clock.advance(timedelta(seconds=11))
    await reader.read()
    assert [*waited, reader.waits_for_gaps] == [True, False]
    assert reader.position == await world.store.newest_event_id()
