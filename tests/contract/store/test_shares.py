"""Shares of the workers: when more is ready than there is room for, nobody's backlog keeps the others waiting, and no host takes
all the places. What a claim costs does not grow with what is ready."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import text

from ksana.domain.errors import KsanaError
from ksana.domain.execution import Claimed
from ksana.domain.job import Job
from ksana.domain.states import ExecutionStatus
from ksana.store.requests import ClaimRequest, Room
from ksana.store.sql import migrate, open_store, schema
from ksana.store.sql.statements import claiming
from ksana.store.sql.statements.known_jobs import KnownJobs
from ksana.store.sql.statements.lane_lookup import LaneLookup
from ksana.store.sql.statements.node_claims import KnownRuns
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.clock import FakeClock
from tests.contract.store.conftest import BACK_ENDS, OPTIONS
from tests.contract.store.counting import counting
from tests.contract.store.world import World, run_sql
from tests.servers.postgresql import PostgresAddress
from tests.unit.engine.plan_world import Rollout
from tests.unit.engine.simulation import Simulation
from tests.unit.engine.workflow_world import Flow, node

SECOND = timedelta(seconds=1)
ROOM = 16
CROWD = 5_000
LARGE = 20_000


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Turns:
    """Claims of one instance that are served in turn, each going on where the last one stopped."""

    def __init__(self, world: World, **wish: Any) -> None:
        self._world = world
        self._wish = wish
        self.served = ""

    async def claim(self, room: int = ROOM) -> list[Claimed]:
        request = ClaimRequest("one", room, in_turn_after=self.served, **self._wish)
        claimed = list(await self._world.store.claim(request, self._world.clock.now()))
        self.served = claimed[-1].share if claimed else self.served
        return claimed


async def crowd(world: World, url: str, number: int, **changes: Any) -> Job:
    """So many ready executions of one job, copied below the store: to ask for each takes too long."""
    job = await world.job(**changes)
    made = await world.enqueue(job)
    names = ", ".join(column.name for column in schema.executions.columns if column.name != "id")
    count = 1
    while count < number:
        most = min(count, number - count)
        run_sql(
            url,
            f"INSERT INTO executions ({names}) SELECT {names} FROM executions WHERE job_id = {job.id}"
            f" AND id >= {made.id} ORDER BY id LIMIT {most}",
        )
        count += most
    return job


async def some_jobs(world: World, number: int, **changes: Any) -> list[Job]:
    """One ready execution of each."""
    jobs = await asyncio.gather(*(world.job(**changes) for _ in range(number)))
    await asyncio.gather(*(world.enqueue(job) for job in jobs))
    return list(jobs)


def shares_of(url: str, where: str = "1 = 1") -> list[str]:
    return [row.share for row in run_sql(url, f"SELECT share FROM executions WHERE {where} ORDER BY id")]


def by_job(claimed: Sequence[Claimed]) -> list[int]:
    return [each.job.id for each in claimed]


def at(host: str) -> dict[str, str]:
    return {"url": f"http://{host}/x"}


# In turn ------------------------------------------------------------------------------------------------------------------


async def test_a_backlog_of_one_job_delays_the_others_by_no_more_than_its_share(world: World, url: str) -> None:
    large = await crowd(world, url, CROWD)
    world.clock.advance(SECOND)
    others = await some_jobs(world, 20)
    world.clock.advance(SECOND)
    assert set(by_job(await world.claim(ROOM))) == {large.id}, "the earliest first"
    turns = Turns(world)
    served = [job for _ in range(3) for job in by_job(await turns.claim())]
    assert {job.id for job in others} <= set(served)
    assert len(served) == 3 * ROOM, "no place stays empty"


async def test_the_turn_goes_round(world: World, url: str) -> None:
    jobs = [await crowd(world, url, 40) for _ in range(5)]
    turns = Turns(world)
    order = [job for _ in range(10) for job in by_job(await turns.claim(room=2))]
    by_share = [job.id for job in sorted(jobs, key=lambda job: f"job/{job.id}")]
    assert order == by_share * 4


async def test_whoever_was_served_last_comes_after_all_others(world: World, url: str) -> None:
    first, second = [await crowd(world, url, 40) for _ in range(2)]
    claimed = await Turns(world).claim(room=1)
    for last, following in ((first, second), (second, first)):
        turns = Turns(world)
        turns.served = f"job/{last.id}"
        assert by_job(await turns.claim(room=1)) == [following.id]
    assert claimed[0].share in {f"job/{first.id}", f"job/{second.id}"}


async def test_a_share_that_has_nothing_ready_yet_is_passed_over(world: World) -> None:
    early, late = await world.job(), await world.job()
    await world.enqueue(early)
    world.clock.advance(SECOND)
    await world.enqueue(late)
    world.clock.advance(-SECOND)
    assert by_job(await Turns(world).claim()) == [early.id]


async def test_in_turn_a_job_still_never_runs_more_often_than_its_limit(world: World, url: str) -> None:
    limited = await crowd(world, url, 50, limit=2)
    await some_jobs(world, 3)
    turns = Turns(world)
    claimed = [job for _ in range(6) for job in by_job(await turns.claim())]
    assert claimed.count(limited.id) == 2
    assert len(claimed) == 5
    queued = await world.executions(job_id=limited.id, statuses=frozenset({ExecutionStatus.QUEUED}))
    assert len(queued) == 48


async def test_a_job_that_is_full_gives_its_turn_away(world: World, url: str) -> None:
    limited = await crowd(world, url, 20, limit=1)
    await world.claim(1)
    others = await some_jobs(world, 4)
    assert set(by_job(await Turns(world).claim(room=4))) == {job.id for job in others}
    assert limited.id not in by_job(await Turns(world).claim())


# Whose share ---------------------------------------------------------------------------------------------------------------


async def test_a_run_of_a_job_takes_its_jobs_share_however_it_began(world: World, url: str) -> None:
    job = await world.job()
    await world.enqueue(job)
    await world.every(job, SECOND)
    world.clock.advance(SECOND)
    await world.fire_due()
    assert shares_of(url) == [f"job/{job.id}"] * 2
    assert [each.share for each in await world.claim()] == [f"job/{job.id}"] * 2


async def test_nodes_and_their_items_take_their_workflows_share(store: SqlStore, clock: FakeClock, url: str) -> None:
    simulation = Simulation(store, clock)
    await simulation.join()
    flow = Flow(simulation)
    await flow.run([node("first"), node("each", "first", forEach=[1, 2, 3])])
    [workflow] = run_sql(url, "SELECT id FROM workflows")
    found = shares_of(url)
    assert len(found) >= 5
    assert set(found) == {f"workflow/{workflow.id}"}


async def test_stages_take_their_tenants_share_even_if_its_name_is_long(
    store: SqlStore, clock: FakeClock, url: str
) -> None:
    simulation = Simulation(store, clock)
    await simulation.join()
    rollout = Rollout(simulation)
    long = "t" * 64
    await rollout.run("a", long)
    assert set(shares_of(url)) == {"tenant/a", f"tenant/{long}"}


# Lanes ---------------------------------------------------------------------------------------------------------------------


async def test_never_more_of_one_host_run_at_an_instance_than_it_may(world: World) -> None:
    slow = await some_jobs(world, 30, config=at("slow.example"))
    world.clock.advance(SECOND)
    others = await some_jobs(world, 3, config=at("other.example"))
    request = ClaimRequest("one", ROOM, per_lane=12, lanes={"slow.example": 5})
    claimed = by_job(list(await world.store.claim(request, world.clock.now())))
    assert len(set(claimed) & {job.id for job in slow}) == 7
    assert {job.id for job in others} <= set(claimed)


@pytest.mark.parametrize("in_turn", [False, True], ids=["earliest", "in turn"])
async def test_a_host_that_is_full_hides_nobody_however_much_is_ready_for_it(
    world: World, url: str, in_turn: bool
) -> None:
    await crowd(world, url, CROWD, config=at("slow.example"))
    world.clock.advance(SECOND)
    other = await world.enqueue(await world.job(config=at("other.example")))
    request = ClaimRequest("one", 4, per_lane=12, lanes={"slow.example": 12}, in_turn_after="" if in_turn else None)
    claimed = await world.store.claim(request, world.clock.now())
    assert [each.execution.id for each in claimed] == [other.id]


async def test_many_jobs_of_a_host_that_is_full_hide_nobody_either(world: World) -> None:
    await some_jobs(world, 80, config=at("slow.example"))
    world.clock.advance(SECOND)
    other = await world.enqueue(await world.job(config=at("other.example")))
    request = ClaimRequest("one", 4, per_lane=1, lanes={"slow.example": 1}, in_turn_after="")
    claimed = await world.store.claim(request, world.clock.now())
    assert [each.execution.id for each in claimed] == [other.id]


async def test_a_claim_takes_what_there_is_room_for_when_its_turn_has_come(world: World) -> None:
    slow = await some_jobs(world, 10, config=at("slow.example"))
    full = {"slow.example": 3}
    asked_for = ClaimRequest("one", 1, per_lane=3, lanes=full, latest=lambda: Room(5, {"slow.example": 1}))
    claimed = by_job(list(await world.store.claim(asked_for, world.clock.now())))
    assert len(set(claimed) & {job.id for job in slow}) == 2, "two of the host's have ended since it was asked for"
    asked_for = ClaimRequest("one", 1, latest=lambda: Room(4, {}))
    assert len(await world.store.claim(asked_for, world.clock.now())) == 4


@pytest.mark.parametrize("in_turn_after", ["", None])
@pytest.mark.parametrize("full", [1, 2, 3])
async def test_the_last_share_behind_others_whose_host_is_full_is_not_hidden(
    world: World, url: str, full: int, in_turn_after: str | None
) -> None:
    for _ in range(full):
        await crowd(world, url, 400, type="http", config=at("slow.example"))
    world.clock.advance(SECOND)
    other = await world.job(type="http", config=at("fast.example"))
    await world.enqueue(other)
    world.clock.advance(SECOND)
    request = ClaimRequest("one", 2, per_lane=12, lanes={"slow.example": 12}, in_turn_after=in_turn_after)
    assert by_job(await world.store.claim(request, world.clock.now())) == [other.id]


async def test_what_calls_no_host_and_what_names_it_only_when_sent_know_no_lane(world: World) -> None:
    await some_jobs(world, 3, type="shell", config={"cmd": ["true"]})
    await some_jobs(world, 3, config={"url": "http://{{ params.host }}/x"})
    claimed = await world.store.claim(ClaimRequest("one", ROOM, per_lane=1), world.clock.now())
    assert len(claimed) == 6


# What it costs ---------------------------------------------------------------------------------------------------------------


def _sqlite_steps(tx: Tx, work: Callable[[], object]) -> int:
    """Instructions of the virtual machine."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    driver: Any = tx.connection.connection.driver_connection
    driver.set_progress_handler(count, 1)
    try:
        work()
    finally:
        driver.set_progress_handler(None, 1)
    return steps


def _counted(tx: Tx, work: Callable[[], object], statement: str) -> int:
    before = tx.connection.execute(text(statement)).scalar_one()
    work()
    return int(tx.connection.execute(text(statement)).scalar_one() - before)


def _rows_read(tx: Tx, work: Callable[[], object]) -> int:
    if tx.dialect.name == "sqlite":
        return _sqlite_steps(tx, work)
    if tx.dialect.name == "postgresql":
        return _counted(
            tx, work, "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"
        )
    return _counted(
        tx,
        work,
        "SELECT sum(variable_value) FROM information_schema.session_status WHERE variable_name LIKE 'HANDLER\\_READ%'"
        " AND variable_name NOT LIKE '%RND%'",
    )


def _measured(tx: Tx, wishes: list[claiming.Wish]) -> list[int | KsanaError]:
    return [_rows_read(tx, lambda wish=wish: claiming.claim(tx, [wish])) for wish in wishes]  # type: ignore[misc]


async def test_a_claim_reads_no_more_however_much_is_ready(world: World, store: SqlStore, url: str) -> None:
    earliest, in_turn = ClaimRequest("one", ROOM), ClaimRequest("one", ROOM, in_turn_after="")
    known = KnownJobs()
    lookup, runs = LaneLookup(known), KnownRuns()
    wishes = [claiming.Wish(request, world.clock.now(), lookup, known, runs) for request in (earliest, in_turn)]
    await some_jobs(world, 60)
    few = [await store.writer.submit(_measured, wish) for wish in wishes]
    await crowd(world, url, LARGE)
    await some_jobs(world, 60)
    many = [await store.writer.submit(_measured, wish) for wish in wishes]
    for before, after in zip(few, many, strict=True):
        assert 0 < after <= 1.5 * before + 100, (few, many)


@pytest.mark.parametrize("jobs", [10, 20, 90])
async def test_many_jobs_with_much_ready_take_few_questions(world: World, store: SqlStore, url: str, jobs: int) -> None:
    made = [await crowd(world, url, 20) for _ in range(jobs)]
    later = await world.enqueue(await world.job())
    run_sql(url, f"UPDATE executions SET ready_at = ready_at + 1000000 WHERE id = {later.id}")
    with counting(store) as count:
        claimed = await store.claim(ClaimRequest("one", jobs + 1, in_turn_after=""), world.clock.now())
    assert sorted(by_job(claimed)[:jobs]) == sorted(job.id for job in made)
    assert later.job_id not in by_job(claimed)
    assert count.trips <= 12
    assert count.rows <= 5 * jobs + 200


async def test_a_share_that_alone_has_anything_ready_is_taken_at_once(world: World, store: SqlStore, url: str) -> None:
    alone = await crowd(world, url, 3 * ROOM)
    turns = Turns(world)
    first = await turns.claim()
    with counting(store) as count:
        second = await turns.claim()
    claimed = [each.execution.id for each in (*first, *second)]
    assert claimed == sorted(claimed)
    assert by_job(second) == [alone.id] * ROOM
    assert len([each for each in count.sql if each.startswith("UPDATE") and "executions" in each]) == 1


async def test_a_backlog_in_one_queue_leaves_a_place_for_another(world: World) -> None:
    crowd_, other = await world.job(), await world.job(worker_queue="other")
    for _ in range(ROOM):
        await world.enqueue(crowd_)
    await world.enqueue(other)
    request = ClaimRequest("one", 2, ("default", "other"), in_turn_after="")
    claimed = await world.store.claim(request, world.clock.now())
    assert sorted(each.job.id for each in claimed) == sorted([crowd_.id, other.id])


@pytest.mark.parametrize("back_end", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True)
async def test_shares_are_served_in_the_databases_order_of_texts(
    postgres_server: PostgresAddress, back_end: str
) -> None:
    """One of a language has acme before Zeta, which for Python is the other way round."""
    name = f"test_icu_{uuid4().hex[:12]}"
    with psycopg.connect(postgres_server.url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
    url = postgres_server.url.rpartition("/")[0] + f"/{name}"
    migrate.upgrade(url, OPTIONS)
    store, clock = open_store(url, options=OPTIONS, clock=FakeClock()), FakeClock()
    try:
        world = World(store, clock)
        zeta, acme = await world.job(), await world.job()
        for job in [zeta] * 6 + [acme] * 3:
            await world.enqueue(job)
        with psycopg.connect(url, autocommit=True) as connection:
            share = "UPDATE executions SET share = CASE job_id WHEN %s THEN 'tenant/Zeta' ELSE 'tenant/acme' END"
            connection.execute(share, (zeta.id,))
        turns = Turns(world)
        served = [(await turns.claim(1))[0].job.id for _ in range(6)]
        assert served == [acme.id, zeta.id] * 3
    finally:
        await store.close()
        postgres_server.drop_database(url)
