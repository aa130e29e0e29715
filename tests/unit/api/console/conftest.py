from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.api.jobchain.workflow_bench import Desk, opened


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened(tmp_path) as desk:
        yield desk
