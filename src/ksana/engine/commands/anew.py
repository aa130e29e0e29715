"""A change that somebody else's came before is worked out anew, on what is there now."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ksana.domain.errors import VersionMismatch

T = TypeVar("T")
TRIES = 20
_PAUSE_SECONDS = 0.02


def _always(_: VersionMismatch) -> bool:
    return True


async def until_it_fits(
    attempt: Callable[[], Awaitable[T]], worth_it: Callable[[VersionMismatch], bool] = _always
) -> T:
    """The attempt's answer; it is made again, a few times, while it fails with a VersionMismatch for which that is worth it."""
    for _ in range(TRIES - 1):
        try:
            return await attempt()
        except VersionMismatch as error:
            if not worth_it(error):
                raise
            await asyncio.sleep(random.uniform(0, _PAUSE_SECONDS))  # noqa: S311 - so that two do not meet again
    return await attempt()
