"""Group commit: whatever has gathered is applied as one transaction, by one thread.

While a batch is being committed the next one gathers, so that the size of batches follows the load and nobody waits for a
timer. Commands that are in a batch together were all asked for before any was answered: they are concurrent, and the
writer may apply them in any order, all of one kind with one many-row statement.

    callers ── submit ──▶ deque ──▶ [gather] ──▶ BEGIN · handler(kind A) · handler(kind B) · COMMIT ──▶ each is answered
                                        │                            any error
                                        └────────────◀── each command alone ◀──┘

What takes a moment only, on a database that is a file of ours, the event loop applies itself while the thread has nothing to do:
two changes of thread cost more than such a transaction. What turns out to be more, or goes wrong, is left to the thread.

A COMMIT whose answer is lost with the connection is looked up: the transaction wrote its batch number into `writers`, and
whether it is there tells whether the batch was applied. See docs/design/group-commit.md.
"""

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from ksana import failpoints
from ksana.domain.clock import Clock, to_micros
from ksana.domain.errors import CommitUnknown, KsanaError, StoreBusy, StoreUnavailable
from ksana.store.sql.dialects.base import Dialect
from ksana.store.sql.driven import Driven, Transaction
from ksana.store.sql.errors import Trouble, diagnose, translate
from ksana.store.sql.live import Live
from ksana.store.sql.rows import Statement
from ksana.store.sql.steady import Steady
from ksana.store.sql.tx import Fresh, Tx
from ksana.store.workflow_requests import EndedRun

P = TypeVar("P")
R = TypeVar("R")
Handler = Callable[[Tx, list[P]], list[R | KsanaError]]
"""Applies all commands of one kind; one answer each, in order. An error as an answer fails that command alone."""

TRIES = 4
_LONGEST_PAUSE_SECONDS = 0.2
CROWD = 16
"""A batch of so many commands is one of many; the next one is then waited for until it is half as large."""
PATIENCE_SECONDS = 0.002
"""And no longer than this."""
MOST_TURNS = 8
"""Of the event loop, for which commands are waited for that follow from each other."""
MOST_BRIEF = 512
"""Commands that the event loop applies itself."""
MOST_BRIEF_ROWS = 6_000
"""And rows that their statements are about."""
ATTENTIVE_SECONDS = 0.25
"""For so long after somebody has asked for something, the event loop applies only what nobody notices:"""
FEW_BRIEF = 16
FEW_BRIEF_ROWS = 400
SLOW_COMMIT_SECONDS = 0.01
"""Where commits take longer, by their moving average, the event loop has better things to do than to wait for the disk."""
LATEST_WEIGHS = 1 / 8
"""How much the latest commit counts in that average."""

_WORTH_ANOTHER_TRY = {
    Trouble.TRANSIENT,
    Trouble.OUTDATED,
    Trouble.DISCONNECTED,
    Trouble.DUPLICATE,  # the next transaction sees what the other one wrote, and can say what it means
}

_FORGOTTEN_AFTER = 7 * 86_400_000_000
_MARK = Statement(
    "INSERT INTO writers (id, batch, marked_at) VALUES (:writer, :batch, {now})"
    " {if_there} batch = :batch, marked_at = {now}"
)
# Locking: a COMMIT that the server is still working on holds the row, and is waited for.
_MARKED = Statement("SELECT t.batch FROM writers t WHERE t.id = :writer {for_update}")
_CLOSE = Statement("DELETE FROM writers WHERE id = :writer")
_FORGET = Statement(f"DELETE FROM writers WHERE marked_at < {{now}} - {_FORGOTTEN_AFTER}")


class Mirror(Protocol):
    """A copy of what is stored, kept outside the database and never behind what has been answered."""

    def write(self, tx: Tx) -> None:
        """Makes the copy what it will be, before the COMMIT. What it raises is the end of the transaction."""

    def withdraw(self, clock: int) -> None:
        """The COMMIT after the last `write` failed: makes the copy what it was. CommitUnknown if it cannot."""


@dataclass(slots=True, eq=False)
class _Command:
    handler: Handler[Any, Any]
    payload: Any
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    last: bool
    brief: bool


def _nobody(_: EndedRun) -> None:
    """Nobody wants to know."""


class Writer:
    """Owns the one connection that writes."""

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        clock: Clock,
        steady: Steady,
        *,
        name: str,
        max_batch: int,
        mirror: Mirror | None = None,
    ) -> None:
        self._engine = engine
        self._dialect = dialect
        self._mirror = mirror
        self._clock = clock
        self._steady = steady
        self._name = name
        self._max_batch = max_batch
        self._connection: Connection | None = None
        self._patient = True
        """Whether the connection waits for a lock that somebody else has."""
        self._live: Live[Any] | None = Live(dialect.others_wrote) if dialect.others_wrote else None
        self._batch = 0
        self.ended = 0
        """How many transactions have been committed, or may have been."""
        self._commands: deque[_Command] = deque()
        self._handing_over: set[asyncio.AbstractEventLoop] = set()
        """Event loops whose commands are there, but which have not handed them over yet."""
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._busy = False
        """Somebody applies commands: the thread, or an event loop."""
        self._called = False
        """The thread is to apply what is there."""
        self._waiting: set[asyncio.AbstractEventLoop] = set()
        """Event loops that hand over again when the thread is done."""
        self._does_brief = bool(dialect.patience) and mirror is None
        self._attentive_until = 0.0
        """By the monotonic clock."""
        self._commit_seconds = 0.0
        """How long a commit takes, by the latest ones."""
        self._crowd = 0
        """How many commands to wait for, since the last batch was that of a crowd."""
        self._closing = False
        self._pause = threading.Event()
        self.on_run_ended: Callable[[EndedRun], None] = _nobody
        """Told of each workflow run that ended, in the thread that wrote it, after the commit."""
        self._thread = threading.Thread(target=self._work, name="ksana-writer", daemon=True)

    def start(self) -> None:
        """Raises StoreError if the database cannot be written to."""
        if self._dialect.shared:
            self._transact(lambda tx: tx.run(_FORGET))
        else:
            self._transact(lambda _: None)
        self._thread.start()

    def refuse(self) -> None:
        """Takes no command, ever: this store is only read."""
        with self._wake:
            self._closing = True

    def submit(
        self, handler: Handler[P, R], payload: P, *, last: bool = False, brief: bool = False
    ) -> "asyncio.Future[R]":
        """Done after the commit, or with what went wrong with this command. One that comes `last` sees what the others in its
        transaction have done. A `brief` one the event loop may apply itself. StoreUnavailable if none are taken any more."""
        loop = asyncio.get_running_loop()
        command = _Command(handler, payload, loop, loop.create_future(), last, brief)
        with self._lock:  # not by way of the condition, whose own code is Python
            if self._closing:
                raise StoreUnavailable("the store is closed")
            self._commands.append(command)
        if loop not in self._handing_over:
            self._handing_over.add(loop)
            loop.call_soon(self._await_more, loop, 0, MOST_TURNS)
        return command.future

    def _await_more(self, loop: asyncio.AbstractEventLoop, there: int, turns: int) -> None:
        """Not at once: what is asked for in the same turn of the loop, and in the next because of it, goes with it; and as long as
        each turn brings more, what the next one brings."""
        now_there = len(self._commands)
        if now_there > there and turns:
            loop.call_soon(self._await_more, loop, now_there, turns - 1)
        else:
            self._hand_over(loop)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        self._handing_over.discard(loop)
        batch = self._brief_batch(loop)
        if batch:
            self._apply_briefly(loop, batch)

    # The event loop ---------------------------------------------------------------------------------------------

    def _brief_batch(self, loop: asyncio.AbstractEventLoop) -> list[_Command]:
        """What the event loop applies itself. Nothing if the thread has been called, or is at work and will say when it is done."""
        with self._wake:
            if not self._can_be_brief():
                self._called = True
                self._wake.notify()
                return []
            if self._busy:
                self._waiting.add(loop)
                return []
            self._busy = bool(self._commands)
            batch = list(self._commands)
            self._commands.clear()
            return batch

    def _can_be_brief(self) -> bool:
        return (
            self._does_brief
            and not self._closing
            and not self._called
            and len(self._commands) <= self._most_brief()
            and self._commit_seconds < SLOW_COMMIT_SECONDS
            and all(command.brief for command in self._commands)
        )

    def _most_brief(self) -> int:
        if not self._is_attentive():
            return min(MOST_BRIEF, self._max_batch)
        return 0 if self._crowd else FEW_BRIEF  # a few of a crowd go with the others

    def _is_attentive(self) -> bool:
        return time.monotonic() < self._attentive_until

    def _apply_briefly(self, loop: asyncio.AbstractEventLoop, batch: list[_Command]) -> None:
        try:
            most_rows = FEW_BRIEF_ROWS if self._is_attentive() else MOST_BRIEF_ROWS
            answers = self._transact_once(lambda tx: _apply(tx, batch), most_rows)
        except Exception:  # noqa: BLE001  the thread will find out which command it belongs to, and whether to try again
            self._leave_to_the_thread(batch)
            return
        except BaseException:
            self._done()  # told to end: whether it was committed is not known, and nobody waits for the answers
            raise
        self._done()
        _answer(answers, loop)

    def _leave_to_the_thread(self, batch: list[_Command]) -> None:
        with self._wake:
            self._commands.extendleft(reversed(batch))
            self._called = True
        self._done()

    def _done(self) -> None:
        """The commands of others may be applied."""
        with self._wake:
            self._busy = False
            waiting, self._waiting = self._waiting, set()
            if self._has_work():
                self._wake.notify()
        for loop in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._hand_over, loop)

    def attend(self) -> None:
        """Somebody waits for an answer of this process: for a while, its event loop is not held up for long."""
        self._attentive_until = time.monotonic() + ATTENTIVE_SECONDS

    def close(self) -> None:
        """Commits what has been submitted, then ends the thread and its connection."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.ident is not None:
            self._thread.join()
            if self._dialect.shared:
                self._try_to_forget()
        self._drop_connection()

    # The thread -------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while batch := self._gather():
            answers = self._commit(batch)
            self._done()
            _answer(answers)

    def _gather(self) -> list[_Command]:
        with self._wake:
            self._wake.wait_for(self._has_work)
            self._busy = True
            if len(self._commands) < self._crowd:
                # Others are on their way, as they were a moment ago: to commit for a few costs nearly as much as for all.
                self._wake.wait_for(lambda: len(self._commands) >= self._crowd or self._closing, PATIENCE_SECONDS)
            size = min(len(self._commands), self._max_batch)
            self._crowd = size // 2 if size >= CROWD else 0
            batch = [self._commands.popleft() for _ in range(size)]
            self._called = bool(self._commands)  # whoever asked for what is left will not call again
            return batch

    def _has_work(self) -> bool:
        if self._busy:
            return False
        return self._closing or (bool(self._commands) and (self._called or not self._does_brief))

    def _commit(self, batch: list[_Command]) -> list[tuple[_Command, Any]]:
        try:
            return self._transact(lambda tx: _apply(tx, batch))
        except StoreBusy as error:
            # One that waits for a lock must not take the others with it.
            return self._one_by_one(batch) if len(batch) > 1 else [(batch[0], error)]
        except StoreUnavailable as error:
            return [(command, error) for command in batch]
        except Exception as error:  # noqa: BLE001  whatever a command raises is that command's answer
            if len(batch) == 1:
                return [(batch[0], error)]
            return self._one_by_one(batch)

    def _one_by_one(self, batch: list[_Command]) -> list[tuple[_Command, Any]]:
        return [answer for command in batch for answer in self._commit([command])]

    # One transaction --------------------------------------------------------------------------------------------

    def _transact(self, body: Callable[[Tx], R]) -> R:
        """Runs `body` in a transaction and commits it; anew after a lost race, or on a new connection if there is one."""
        for tries in range(1, TRIES + 1):
            try:
                return self._transact_once(body)
            except SQLAlchemyError as error:
                trouble = diagnose(error)
                if trouble is Trouble.DISCONNECTED:
                    self._drop_connection()
                worth_it = trouble in _WORTH_ANOTHER_TRY and tries < TRIES and not self._has_waited_for(trouble)
                if not worth_it or (trouble is Trouble.DISCONNECTED and not self._reachable()):
                    raise translate(error) from error
                self._pause.wait(random.uniform(0, _LONGEST_PAUSE_SECONDS * tries / TRIES))  # noqa: S311
        raise AssertionError("unreachable")

    def _has_waited_for(self, trouble: Trouble) -> bool:
        """Whether the driver itself has waited for the lock as long as anybody should."""
        return trouble is Trouble.TRANSIENT and bool(self._dialect.patience)

    def _transact_once(self, body: Callable[[Tx], R], most_rows: int | None = None) -> R:
        """With `most_rows` it neither waits for a lock nor does more than that: it raises what comes in its way."""
        connection = self._connected(patient=most_rows is None)
        transaction = self._begun(connection)
        try:
            if self._live is not None:
                self._live.begin(connection.connection.dbapi_connection)
            now, steady = to_micros(self._clock.now()), self._steady.micros()
            tx = Tx(connection, self._dialect, now, steady, most_rows, self._live)
            answer = body(tx)
            tx.release()
            self._mark(tx)
            if self._mirror is not None:
                self._mirror.write(tx)
            tx.flush()
        except BaseException:
            self._forget()
            transaction.rollback()
            raise
        try:
            failpoints.reach("commit.before", _broken)
            began = time.perf_counter()
            transaction.commit()
            self._commit_seconds += LATEST_WEIGHS * (time.perf_counter() - began - self._commit_seconds)
            failpoints.reach("commit.after", _broken)
        except SQLAlchemyError as error:
            # Whatever state it is in, the next transaction gets a connection of its own.
            self._forget()
            self._drop_connection()
            if diagnose(error) is not Trouble.DISCONNECTED or not self._was_committed(error):
                if self._mirror is not None:
                    self._mirror.withdraw(tx.clock)
                raise
        finally:
            self.ended += 1
        for ended in tx.ended_runs:
            self.on_run_ended(ended)
        return answer

    def _begun(self, connection: Connection) -> Transaction:
        begin = self._dialect.begin
        return Driven(connection, begin) if begin else connection.begin()

    def _forget(self) -> None:
        """What is known may not be so."""
        if self._live is not None:
            self._live.forget()

    def _mark(self, tx: Tx) -> None:
        """Writes the batch's number, by which it can be found if the answer to its COMMIT is lost. Last: a session that the server
        has not noticed to be lost holds up whoever writes the same row."""
        self._batch += 1
        if self._dialect.shared:
            tx.run(_MARK, batch=self._batch, writer=self._name)

    def _was_committed(self, error: SQLAlchemyError) -> bool:
        """Whether the transaction whose COMMIT broke is there, by the number that it wrote."""
        for _ in range(TRIES):
            try:
                connection = self._connected()
                with connection.begin():
                    marked = Tx(connection, self._dialect, 0).query(_MARKED, writer=self._name)
                return bool(marked) and marked[0][0] == self._batch
            except SQLAlchemyError:
                self._drop_connection()
                self._pause.wait(_LONGEST_PAUSE_SECONDS)
        raise CommitUnknown(
            "the connection broke at COMMIT and the database does not answer: whether this was written is unknown"
        ) from error

    # The connection ---------------------------------------------------------------------------------------------

    def _connected(self, *, patient: bool = True) -> Connection:
        if self._connection is None:
            self._connection, self._patient = self._engine.connect(), True
            self._forget()
        if patient is not self._patient:
            self._connection.connection.cursor().execute(self._dialect.patience[patient])
            self._patient = patient
        return self._connection

    def _reachable(self) -> bool:
        try:
            self._connected()
        except SQLAlchemyError:
            return False
        return True

    def _drop_connection(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                connection.invalidate()
                connection.close()
            except SQLAlchemyError:
                self._engine.dispose()

    def _try_to_forget(self) -> None:
        try:
            connection = self._connected()
            with connection.begin():  # not as a batch, which would write the row anew
                Tx(connection, self._dialect, 0).changed(_CLOSE, writer=self._name)
        except SQLAlchemyError:
            return  # the row stays; a writer that opens the database a week later removes it


def _broken() -> SQLAlchemyError:
    """As if the connection were lost at COMMIT."""
    return OperationalError("COMMIT", {}, ConnectionResetError("failpoint"), connection_invalidated=True)


def _apply(tx: Tx, batch: list[_Command]) -> list[tuple[_Command, Any]]:
    kinds: dict[Handler[Any, Any], list[_Command]] = {}
    last: dict[Handler[Any, Any], list[_Command]] = {}
    for command in batch:
        of_kind = last if command.last else kinds
        if command.handler in of_kind:
            of_kind[command.handler].append(command)
        else:
            of_kind[command.handler] = [command]
    answers: list[tuple[_Command, Any]] = []
    for handler, commands in (*kinds.items(), *last.items()):
        if not commands[0].last:
            tx.fresh = Fresh()  # it may change what those before it have found
        results = handler(tx, [command.payload for command in commands])
        answers += zip(commands, results, strict=True)
    return answers


def _answer(answers: list[tuple[_Command, Any]], here: asyncio.AbstractEventLoop | None = None) -> None:
    """Wakes each event loop once for all its answers, except the one that this is called in."""
    for loop in {command.loop for command, _ in answers}:
        theirs = [each for each in answers if each[0].loop is loop]
        if loop is here:
            _resolve(theirs)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, theirs)


def _resolve(answers: list[tuple[_Command, Any]]) -> None:
    for command, answer in answers:
        future = command.future
        if future.done():
            continue  # whoever asked has gone away
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
