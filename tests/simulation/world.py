"""A simulated world: one database, several processes, one clock, and a seed that says what happens next.

Each step is one of: a process runs one callback, a thread of one runs until it waits, the database applies a request, an
answer arrives, something goes wrong, or, if nothing else can happen, time passes until something can. All invariants are
looked at in each step; the first that does not hold ends the run.
"""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from ksana.domain.errors import CommitUnknown, KsanaError, StoreUnavailable
from ksana.domain.execution import Claimed
from tests.simulation.ending import check_end
from tests.simulation.faults import Nemesis
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.memory_store import Call
from tests.simulation.memory_tables import Tables
from tests.simulation.mood import Mood
from tests.simulation.process import Process
from tests.simulation.scenario import furnish
from tests.simulation.seeding import seeded
from tests.simulation.target import Witness
from tests.simulation.threads import SimulatedThread, Threading
from tests.simulation.wire import Message, Request

START = datetime(2026, 1, 1, tzinfo=UTC)
SLOWEST = 8.0
QUIET = 30.0
"""Seconds without faults before the end is looked at: a lease, a recovery, the longest run and retry, and some."""
POLLS = (1, 3, 5)
ARRIVES = 0.9
"""How many hints do."""
TRACE = 400


Choice = Process | SimulatedThread | Request | Message


class World:
    def __init__(self, seed: int, mood: Mood | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.mood = mood or Mood.chosen_by(self.random)
        self.micros = 0
        self.steps = 0
        self.trace: deque[tuple[object, ...]] = deque(maxlen=TRACE)
        self.counts: Counter[str] = Counter()
        self.tables = Tables(self.now)
        self.invariants = Invariants(self.tables)
        self.tables.watcher = self.invariants
        self.nemesis = Nemesis(self)
        self.witness = Witness(self.random, self.nemesis.granted)
        self.processes: list[Process] = []
        self.gone: list[Process] = []
        self.requests: list[Request] = []
        self.messages: list[Message] = []
        self.threading = Threading(self.seconds, self._adopt)
        self._current: Process | None = None
        self._started = 0
        self.targets = furnish(self)

    # Time -------------------------------------------------------------------------------------------------------------

    def seconds(self) -> float:
        return self.micros / 1_000_000

    def now(self) -> datetime:
        return START + timedelta(microseconds=self.micros)

    # Running ----------------------------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """So many steps with faults, then a quiet time, then the end is judged. Violation."""
        with seeded(self):
            try:
                for _ in range(self.random.randint(2, 3)):
                    self.begin()
                while self.steps < steps:
                    self._step()
                self.nemesis.make_peace()
                end = self.seconds() + QUIET
                while self.seconds() < end:
                    self._step()
                check_end(self)
            finally:
                self._bury_all()

    def _step(self) -> None:
        self.steps += 1
        if not self.processes:
            self.begin()  # whoever supervises them
        if self.nemesis.strikes():
            return
        choices = [*self._choices()]
        if choices:
            self._take(choices[int(self.random.random() * len(choices))])
        else:
            self._pass_time()
        if self.witness.broken is not None:
            raise self.witness.broken
        leaders = [process.name for process in self.processes if process.engine.leadership.leads]
        if len(leaders) > 1:
            raise Violation("I8", f"{' and '.join(leaders)} lead at once")

    def _choices(self) -> Iterator["Choice"]:
        """Whatever can happen at this moment."""
        for process in self.processes:
            if process.running:
                if process.loop.runnable():
                    yield process
                for thread in process.threads:
                    if thread.runnable():
                        yield thread
        now = self.seconds()
        for request in self.requests:
            if request.due_at <= now and (not request.applied or request.process.running):
                yield request
        for message in self.messages:
            if message.due_at <= now and message.process.running:
                yield message

    def _take(self, choice: "Choice") -> None:
        if isinstance(choice, Process):
            with self._as(choice):
                choice.loop.run_one()
            if choice.loop.failures:
                raise Violation("I0", f"{choice.name}: {choice.loop.failures[0]}")
        elif isinstance(choice, SimulatedThread):
            choice.resume()
        elif isinstance(choice, Message):
            self.messages.remove(choice)
            choice.process.listener(choice.hint)
        elif choice.applied:
            self.requests.remove(choice)
            choice.deliver()
        else:
            self._apply(choice)

    def _pass_time(self) -> None:
        """To the next moment at which anything can happen."""
        now = self.seconds()
        times = [process.paused_until for process in self.processes if process.paused_until is not None]
        times += [at for process in self.processes if process.running and (at := process.next_at()) is not None]
        times += [request.due_at for request in self.requests if request.due_at > now]
        times += [message.due_at for message in self.messages if message.due_at > now]
        times += [self.nemesis.next_at]
        self.micros = max(self.micros + 1, -int(-min(times) * 1_000_000 // 1))
        for process in self.processes:
            if process.paused_until is not None and process.paused_until <= self.seconds():
                process.resume()
                self.note(process.name, "goes on")

    # Requests ---------------------------------------------------------------------------------------------------------

    def asked(self, process: Process, call: Call[Any], caller: Any) -> None:
        request = Request(process, call, caller, self.seconds() + self._delay())
        self.requests.append(request)
        self.nemesis.asked(request)

    def _delay(self) -> float:
        if self.random.random() >= self.mood.slow or self.nemesis.at_peace:
            return 0.0
        return self.random.uniform(0, SLOWEST)

    def _apply(self, request: Request) -> None:
        fate = self.random.random() if not self.nemesis.at_peace else 1.0
        request.applied, request.due_at = True, self.seconds() + self._delay()
        if fate < self.mood.refused or self.nemesis.database_is_away:
            request.answer = StoreUnavailable("not reachable")
            self.note(request.process.name, f"{request.call.name} is refused")
        else:
            request.answer = self._applied(request)
            if fate < self.mood.refused + self.mood.unheard:
                request.answer = CommitUnknown("the answer was lost")
                self.note(request.process.name, f"{request.call.name} is not heard of")
        if not request.process.alive:
            self.requests.remove(request)

    def _applied(self, request: Request) -> Any:
        call, answer = request.call, None
        try:
            answer = call.apply()
        except KsanaError as error:
            answer = error
        self.counts[call.name] += 1
        if call.name == "claim" and not isinstance(answer, KsanaError):
            self._tell_claims(request.process, answer)
        elif call.name in {"settle", "fire", "report_callback", "recover", "join", "cancel"}:
            self.note(request.process.name, call.name, call.args[0], "→", answer)
        self.invariants.applied(call, answer)
        return answer

    def _tell_claims(self, process: Process, claimed: list[Claimed]) -> None:
        for each in claimed:
            process.claimed(each.execution.id, each.execution.epoch)
            self.note(process.name, "claims", each.execution.id, "epoch", each.execution.epoch)

    def told(self, process: Process, hint: str) -> None:
        """Others may be told, soon."""
        for other in self.processes:
            if other is not process and self.random.random() < ARRIVES:
                self.messages.append(Message(other, hint, self.seconds() + self._delay()))

    # Processes --------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """One more process."""
        self._started += 1
        poll = timedelta(seconds=self.random.choice(POLLS))
        process = Process(self, f"p{self._started}", poll)
        self.processes.append(process)
        self.note(process.name, "begins")
        with self._as(process):
            process.start()

    def exits(self, process: Process) -> None:
        """It is gone; what it asked for may still be applied, or not."""
        process.alive = process.up = False
        if process in self.processes:
            self.processes.remove(process)
            self.gone.append(process)
        self.messages = [each for each in self.messages if each.process is not process]
        self.requests = [
            each
            for each in self.requests
            if each.process is not process or (not each.applied and self.random.random() < 0.5)
        ]

    @contextmanager
    def _as(self, process: Process) -> Iterator[None]:
        before, self._current = self._current, process
        try:
            yield
        finally:
            self._current = before

    def _adopt(self, thread: SimulatedThread) -> None:
        assert self._current is not None
        self._current.threads = [*(each for each in self._current.threads if not each.ended), thread]

    def _bury_all(self) -> None:
        for process in [*self.processes, *self.gone]:
            process.alive = False
            for thread in process.threads:
                thread.vanish()
            process.loop.bury()

    def note(self, *what: object) -> None:
        """For whoever reads the trace; made into text only then."""
        self.trace.append((self.steps, f"{self.seconds():.3f}", *what))
