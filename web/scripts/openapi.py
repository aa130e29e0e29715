"""Writes the API's description to a file, without a server: an instance on an empty database that never starts."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from ksana.bootstrap import open_instance
from ksana.engine.clock import SystemClock
from ksana.settings import load


async def describe() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(environ={"KSANA_DATA_DIR": folder})
        instance = await open_instance(loaded, SystemClock(), asyncio.Event(), "http://127.0.0.1")
        assert instance is not None, "nobody told it to stop"
        try:
            return instance.app().openapi()
        finally:
            await instance.close()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(asyncio.run(describe())))
