"""Everything that is left to chance, or to the machine, in the hands of the seed while a world runs."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from ksana.domain import ids
from ksana.engine import leadership, loop, membership, runner, scheduler, upkeep, workers

if TYPE_CHECKING:
    from tests.simulation.world import World

TALKERS = (leadership, loop, membership, runner, scheduler, upkeep, workers)


class Secrets:
    """In place of `secrets`: every run of a seed has the same ids and tokens."""

    def __init__(self, world: "World") -> None:
        self._random = world.random

    def token_bytes(self, length: int) -> bytes:
        return self._random.randbytes(length)

    def token_urlsafe(self, length: int) -> str:
        return self._random.randbytes(length).hex()


class Silence:
    """In place of the log, which would take most of the time."""

    def __getattr__(self, _: str) -> Any:
        return _nothing


def _nothing(*_: object, **__: object) -> None:
    """Not said."""


@contextmanager
def seeded(world: "World") -> Iterator[None]:
    secrets, silence = Secrets(world), Silence()
    with ExitStack() as patches:
        patches.enter_context(patch.object(membership, "threading", world.threading))
        patches.enter_context(patch.object(ids, "secrets", secrets))
        patches.enter_context(patch.object(runner, "secrets", secrets))
        for module in (loop, membership, runner):
            patches.enter_context(patch.object(module, "random", world.random))
        for module in TALKERS:
            patches.enter_context(patch.object(module, "log", lambda: silence))
        yield
