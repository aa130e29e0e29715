"""What attempts have written, read onwards and backwards."""

from datetime import timedelta

from ksana.domain.execution import Claimed
from ksana.store.workflow_requests import LogChunk, LogLine
from tests.contract.store.world import World, claim_of


def told(lines: list[LogLine]) -> list[tuple[int, int, str]]:
    return [(line.epoch, line.seq, line.text) for line in lines]


async def test_logs_are_read_from_any_place_in_both_directions(world: World) -> None:
    claimed = await world.running()
    run = claimed.execution.id
    await written(world, claimed, "a", "b")
    await world.store.retry(world.ending(claimed, error="no"), world.clock.now() + timedelta(seconds=5))
    world.clock.advance(timedelta(seconds=5))
    [again] = await world.claim()
    await written(world, again, "刹那", "d")
    onwards = [(1, 1, "a"), (1, 2, "b"), (2, 1, "刹那"), (2, 2, "d")]
    assert told(list(await world.store.logs(run, (0, 0), 10))) == onwards
    assert told(list(await world.store.logs(run, (1, 1), 2))) == onwards[1:3]
    assert told(list(await world.store.logs_before(run, (9, 0), 10))) == onwards[::-1]
    assert told(list(await world.store.logs_before(run, (2, 1), 1))) == [(1, 2, "b")]
    assert await world.store.logs_before(run, (1, 1), 10) == []


async def written(world: World, claimed: Claimed, *texts: str) -> None:
    chunks = [LogChunk(claim_of(claimed), seq, world.clock.now(), "stdout", text) for seq, text in enumerate(texts, 1)]
    assert await world.store.append_logs(chunks) == len(texts)


async def test_the_events_of_one_subject_are_found_among_others(world: World) -> None:
    first, _ = await world.job(), await world.job()
    subject = f"job/{first.id}"
    every = [event.id for event in await world.store.events(0, 100)]
    own = [event.id for event in await world.store.events(0, 100, subject)]
    assert own == [event.id for event in await world.store.events(0, 100) if event.subject == subject]
    assert 0 < len(own) < len(every)
    assert [event.id for event in await world.store.events(own[-1], 100, subject)] == []
