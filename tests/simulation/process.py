"""One instance of Ksana in a simulated world: the engine itself, over the model of the store, in an event loop of its own."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from ksana.domain.clock import Clock
from ksana.domain.errors import KsanaError
from ksana.engine.clock import Timekeeper
from ksana.engine.commands import NodeDefaults, Resolver, RunCommands, WorkflowCommands
from ksana.engine.engine import Engine, EngineOptions, Shared
from ksana.engine.loop import Loop
from ksana.engine.measures import MeasureOptions, Measures
from ksana.engine.plans.outside import Outside
from ksana.engine.runner import CallbackOptions
from ksana.engine.scheduler import SchedulerOptions
from ksana.engine.signals import Signals
from ksana.executors.registry import Executors
from ksana.runtime.memory import MemoryRuntime
from tests.simulation.event_loop import ProcessLoop
from tests.simulation.memory_store import MemoryStore
from tests.simulation.target import Target
from tests.simulation.threads import SimulatedThread
from tests.simulation.wire import SimulatedWire

if TYPE_CHECKING:
    from tests.simulation.world import World

MODELLED = frozenset({"scheduler", "dispatcher", "recovery", "deadlines", "watch", "leadership"})
"""The services that run here; the others are about workflows, plans and old rows, which the model does not have."""
WORKERS = 4
KEEP_TIME = 0.8


class OffsetClock:
    """The clock of one machine: it can be wrong, and jump; what is monotonic never does."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.offset = timedelta(0)

    def now(self) -> datetime:
        return self._world.now() + self.offset

    def monotonic(self) -> float:
        return self._world.seconds()


class Process:
    def __init__(self, world: "World", name: str, poll: timedelta) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.up = False
        """Whether it has started and does not stop yet."""
        self.paused_until: float | None = None
        self._pauses: list[float] = []
        self._claimed: dict[tuple[int, int], float] = {}
        self.threads: list[SimulatedThread] = []
        self.loop = ProcessLoop(world.seconds)  # type: ignore[abstract]  # what asyncio itself uses is there
        self.machine = OffsetClock(world)
        # As on a database that is shared; a few without, since nothing may hang on a clock that is right.
        self.clock: Clock = Timekeeper(self.machine) if world.random.random() < KEEP_TIME else self.machine
        self.listener: Callable[[str], None] = _ignored
        self.store = MemoryStore(world.tables, self.clock, SimulatedWire(world, self)).as_store()
        self._build(poll)

    def _build(self, poll: timedelta) -> None:
        signals, measures = Signals(), Measures(CollectorRegistry(), MeasureOptions())
        executors = Executors([Target(self, self.world.witness)], plugins=[])
        options = EngineOptions(
            CallbackOptions("http://ksana/callbacks"), workers=WORKERS, scheduler=SchedulerOptions(poll_interval=poll)
        )
        workflows = WorkflowCommands(self.store, self.clock, Resolver(self.store, executors, NodeDefaults()), signals)
        outside = Outside(MemoryRuntime(options.lifetimes, clock=self.clock))
        self.engine = Engine(self.store, self.clock, executors, options, Shared(signals, measures, outside), workflows)
        self.runs = RunCommands(self.store, self.clock, signals, measures)
        for loop in _loops(self.engine):
            if loop._periodic.name not in MODELLED:
                loop.start = _never  # type: ignore[method-assign]

    # What happens to it -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.do(self._start())

    async def _start(self) -> None:
        try:
            await self.engine.start()
        except KsanaError:
            self.world.exits(self)  # whoever supervises it will start another
        else:
            self.up = True

    def stop(self, grace: timedelta) -> None:
        """Asks it to stop; it is gone when it has."""
        self.up = False
        self.do(self._stop(grace))

    async def _stop(self, grace: timedelta) -> None:
        with suppress(KsanaError):  # nobody heard its last words; others will find out
            await self.engine.stop(grace)
        self.world.exits(self)

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Something that was asked of it."""
        self.loop.create_task(work)

    def pause(self, until: float) -> None:
        self.paused_until = until

    def resume(self) -> None:
        self.paused_until = None
        self._pauses.append(self.world.seconds())

    # What is known of it ----------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self.alive and self.paused_until is None

    def claimed(self, execution_id: int, epoch: int) -> None:
        self._claimed[execution_id, epoch] = self.world.seconds()

    def paused_since(self, execution_id: int, epoch: int) -> bool:
        """Whether it is paused, or was since the store gave it that claim."""
        since = self._claimed.get((execution_id, epoch), 0.0)
        return self.paused_until is not None or any(at >= since for at in self._pauses)

    def next_at(self) -> float | None:
        """When the next of its timers is due."""
        times = [thread.wake_at for thread in self.threads if not thread.ended and thread.wake_at is not None]
        timer = self.loop.next_timer()
        return min([*times, timer] if timer is not None else times, default=None)


def _loops(engine: Engine) -> list[Loop]:
    parts = [part for value in vars(engine).values() for part in (value if isinstance(value, list) else [value])]
    return [part for part in parts if isinstance(part, Loop)]


def _never() -> None:
    """It does not run here."""


def _ignored(_: str) -> None:
    """It does not listen yet."""
