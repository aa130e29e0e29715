from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.api.plans.bench import PlanDesk, opened


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[PlanDesk]:
    async with opened(tmp_path) as desk:
        yield desk
