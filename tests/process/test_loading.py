"""What a start loads: what nobody asked for is not paid for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPEN = """
import asyncio, sys
from ksana.cli import app, process, serve
from ksana.engine.clock import SystemClock
from ksana.settings import load

async def start():
    loaded = load(flags={"--data-dir": sys.argv[1]})
    instance = await process.open_instance(loaded, SystemClock(), asyncio.Event(), "http://127.0.0.1:1")
    process.configured(instance.app())
    await instance.start()
    await instance.health()
    print(*(each for each in sys.modules))
    await instance.drain(process.LAST_ANSWERS)
    await instance.close()

asyncio.run(start())
"""
SPARED = (
    "alembic",
    "aiohttp",
    "redis",
    "psycopg",
    "pymysql",
    "yaml",
    "cel",
    "jsonschema_rs",
    "rich",
    "ksana.client",
    "ksana.store.jsonfile",
)
"""What takes long to load, and a start on SQLite can do without."""


@pytest.fixture
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path_factory.mktemp("data") / "new")],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_start_on_a_new_sqlite_file_loads_only_what_it_needs(loaded: set[str]) -> None:
    assert {"ksana.api.app", "ksana.engine.engine", "ksana.store.sql.store", "sqlite3", "fastapi"} <= loaded
    assert loaded & set(SPARED) == set()
