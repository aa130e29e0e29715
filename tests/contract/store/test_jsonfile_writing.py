"""The JSON-file store: when the file is written, where it is, and what is beside it."""

import asyncio
from pathlib import Path

import pytest

from ksana.domain.errors import KsanaError, StoreError
from ksana.domain.execution import Claim
from ksana.store.jsonfile import json_path
from ksana.store.requests import NewJob
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock
from tests.contract.store.test_jsonfile import MINUTE, opened, said, version_of
from tests.contract.store.world import ANNA, World, http_spec
from tests.unit.engine.simulation import Simulation

pytestmark = pytest.mark.parametrize("back_end", ["json"], indirect=True)


@pytest.fixture
def file(json_file: Path | None) -> Path:
    assert json_file is not None
    return json_file


# When it is written -----------------------------------------------------------------------------------------------------


async def test_claims_retries_and_heartbeats_leave_the_file_alone(
    file: Path, store: SqlStore, clock: FakeClock
) -> None:
    world = World(store, clock)
    await world.join("one")
    await world.enqueue(await world.job())
    before = version_of(file)
    [claimed] = await world.claim()
    assert store.beat("one", MINUTE)
    assert await store.retry(world.ending(claimed, error="x"), clock.now())
    assert (await world.store.acquire_lock("leader", "one", MINUTE)) is not None
    [claimed] = await world.claim()
    assert version_of(file) == before
    assert await store.succeed(world.ending(claimed))
    assert version_of(file) != before


async def test_what_is_asked_for_at_once_is_one_write(
    file: Path, store: SqlStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[Path] = []
    replace = Path.replace

    def noted(path: Path, target: Path) -> Path:
        writes.append(path)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", noted)
    await asyncio.gather(*(store.create_job(NewJob(f"k{n}", http_spec(f"n{n}"))) for n in range(100)))
    assert 1 <= len(writes) <= 3  # the first goes alone while the others gather
    assert len(said(file)["jobs"]) == 100


async def test_what_the_file_has_no_place_for_is_refused(file: Path, store: SqlStore, clock: FakeClock) -> None:
    plans = Simulation(store, clock).plans
    document = {"name": "p", "stages": [{"name": "a", "type": "wait"}], "tenants": ["t"]}
    with pytest.raises(StoreError, match="no plans: use another database"):
        await plans.create(document, ANNA)
    await World(store, clock).job()


# Paths and people ---------------------------------------------------------------------------------------------------------


def test_a_url_names_a_file_or_the_folder_that_has_it(
    back_end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.json").mkdir()
    assert json_path(f"json://{tmp_path}/a.json") == tmp_path / "a.json"
    assert json_path(f"json://{tmp_path}") == tmp_path / "jobs.json"
    assert json_path("json://data") == tmp_path / "data" / "jobs.json"
    assert json_path("json://data/mine.json") == tmp_path / "data" / "mine.json"
    assert json_path("json://folder.json") == tmp_path / "folder.json" / "jobs.json"
    for wrong in ("json://", "sqlite:///x", "json://x?y"):
        with pytest.raises(KsanaError, match="must name a file"):
            json_path(wrong)


async def test_the_doctor_finds_nothing_wrong(store: SqlStore, file: Path) -> None:
    findings = await store.diagnose()
    assert {finding.level for finding in findings} == {"ok"}
    assert any(str(file) in finding.message for finding in findings)


async def test_a_closed_store_leaves_only_its_file_and_its_lock(store: SqlStore, file: Path) -> None:
    await store.close()
    assert sorted(path.name for path in file.parent.iterdir()) == ["jobs.json", "jobs.json.lock"]


async def test_a_claim_of_before_the_restart_ends_nothing(file: Path, store: SqlStore, clock: FakeClock) -> None:
    world = World(store, clock)
    claimed = await world.running()
    await store.close()
    async with opened(file, clock) as again:
        stale = Claim(claimed.execution.id, claimed.execution.epoch)
        assert not await again.store.succeed(again.ending(stale))
