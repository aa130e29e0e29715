"""What goes wrong, and what people and targets do meanwhile: each a step of its own, chosen by the seed."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from ksana.domain.errors import KsanaError
from ksana.domain.events import Actor
from ksana.engine.commands.runs import CallbackMessage
from ksana.store.requests import NewExecution
from tests.simulation.process import Process
from tests.simulation.target import Grant
from tests.simulation.wire import Request

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")
MOST_PROCESSES = 4
PAUSES = (2, 8, 14, 16, 17, 18, 19, 20, 22, 40)
"""Seconds: some shorter than a lease, some just as long, some longer."""
AIM = 8
WRITES = frozenset({"settle", "claim", "fire", "open_callback"})
ANNA = Actor(name="anna", reason="because")
NEVER = float("inf")


class Nemesis:
    def __init__(self, world: "World") -> None:
        self._world = world
        self.at_peace = False
        self._away_until = 0.0
        self._reports: list[tuple[float, Grant]] = []
        """Callbacks on their way: when each arrives."""
        self._grants: list[Grant] = []
        self._faults: list[tuple[float, Callable[[], None]]] = [
            (3, self._crash),
            (3, self._pause),
            (2, self._stop),
            (3, self._begin),
            (2, self._jump),
            (1, self._go_away),
            (4, self._cancel),
            (4, self._run_by_hand),
            (3, self._report_again),
            (1, self._forge),
        ]

    @property
    def database_is_away(self) -> bool:
        return self._world.seconds() < self._away_until

    @property
    def next_at(self) -> float:
        """When the next callback arrives."""
        return min((at for at, _ in self._reports), default=NEVER)

    def strikes(self) -> bool:
        """Whether something happened that no process did."""
        if self.next_at <= self._world.seconds():
            self._arrive()
            return True
        if self.at_peace or self._world.random.random() >= self._world.mood.faults:
            return False
        weights = [weight for weight, _ in self._faults]
        (fault,) = self._world.random.choices([fault for _, fault in self._faults], weights)
        fault()
        return True

    def make_peace(self) -> None:
        """No more faults: clocks are right, who was paused goes on; one or two processes are left, the others vanish."""
        world = self._world
        self.at_peace, self._away_until = True, 0.0
        for request in world.requests:
            request.due_at = world.seconds()
        for process in list(world.processes):
            process.machine.offset = timedelta(0)
            if process.paused_until is not None:
                process.resume()
        up = [process for process in world.processes if process.up]
        for process in up[world.random.randint(1, 2) :]:
            self._vanish(process)
        world.note("peace")

    # Processes --------------------------------------------------------------------------------------------------------

    def asked(self, request: Request) -> None:
        """Just when a process has begun to write something, it may be paused or gone."""
        random, process = self._world.random, request.process
        if (
            self.at_peace
            or request.call.name not in WRITES
            or not process.running
            or random.random() >= AIM * self._world.mood.faults
        ):
            return
        if random.random() < 0.3:
            self._vanish(process)
        else:
            self._pause_one(process)
            if random.random() < 0.7:  # not sent yet
                request.due_at = (process.paused_until or 0.0) + random.choice((0.0, random.random()))

    def _crash(self) -> None:
        if (process := self._any(self._world.processes)) is not None:
            self._vanish(process)

    def _vanish(self, process: Process) -> None:
        self._world.note(process.name, "vanishes")
        self._world.exits(process)

    def _pause(self) -> None:
        process = self._any([process for process in self._world.processes if process.running])
        if process is not None:
            self._pause_one(process)

    def _pause_one(self, process: Process) -> None:
        seconds = self._world.random.choice(PAUSES)
        self._world.note(process.name, "is paused for", seconds)
        process.pause(self._world.seconds() + seconds)

    def _stop(self) -> None:
        process = self._up()
        if process is not None:
            grace = self._world.random.choice((0, 1, 5))
            self._world.note(process.name, "is stopped within", grace)
            process.stop(timedelta(seconds=grace))

    def _begin(self) -> None:
        if len(self._world.processes) < MOST_PROCESSES:
            self._world.begin()

    def _jump(self) -> None:
        process = self._any(self._world.processes)
        if process is not None:
            seconds = self._world.random.choice((-3600, -60, -5, -1, 0, 0, 0, 1, 5, 30))
            self._world.note(process.name, "has its clock set off by", seconds)
            process.machine.offset = timedelta(seconds=seconds)

    def _go_away(self) -> None:
        seconds = self._world.random.choice((1, 5, 13, 20))
        self._world.note("the database is away for", seconds)
        self._away_until = self._world.seconds() + seconds

    # People and targets -----------------------------------------------------------------------------------------------

    def granted(self, grant: Grant) -> None:
        """A target has been asked to report: it does once, twice, too late, or never."""
        random, now = self._world.random, self._world.seconds()
        self._grants.append(grant)
        within = grant.within.total_seconds()
        for _ in range(random.choice((0, 1, 1, 1, 2))):
            self._reports.append((now + random.choice((0.0, random.uniform(0, within), within + 2)), grant))

    def _arrive(self) -> None:
        at, grant = min(self._reports, key=lambda each: each[0])
        self._reports.remove((at, grant))
        self._report(CallbackMessage(succeeded=self._world.random.random() < 0.7, token=grant.token))

    def _report_again(self) -> None:
        if (grant := self._any(self._grants[-20:])) is not None:
            message = CallbackMessage(succeeded=True, token=grant.token)
            if self._world.random.random() < 0.3:
                message = CallbackMessage(succeeded=True, job_id=grant.job_id, execution_id=grant.execution_id)
            self._report(message)

    def _forge(self) -> None:
        self._report(CallbackMessage(succeeded=True, token="a guess"))

    def _report(self, message: CallbackMessage) -> None:
        async def report(process: Process) -> None:
            try:
                await process.runs.report(message)
            except KsanaError:
                return

        if (process := self._up()) is not None:
            process.do(report(process))

    def _cancel(self) -> None:
        async def cancel(process: Process, execution_id: int) -> None:
            try:
                await process.runs.cancel(execution_id, ANNA)
            except KsanaError:
                return

        number = self._any([*self._world.tables.active])
        if number is not None and (process := self._up()) is not None:
            self._world.note("anna cancels", number)
            process.do(cancel(process, number))

    def _run_by_hand(self) -> None:
        async def enqueue(process: Process, job_id: int) -> None:
            try:
                await process.store.enqueue(NewExecution(job_id, process.clock.now()))
            except KsanaError:
                return

        job_id = self._any([*self._world.tables.jobs])
        if job_id is not None and (process := self._up()) is not None:
            process.do(enqueue(process, job_id))

    def _up(self) -> Process | None:
        return self._any([process for process in self._world.processes if process.up])

    def _any(self, choices: Sequence[T]) -> T | None:
        return choices[int(self._world.random.random() * len(choices))] if choices else None
