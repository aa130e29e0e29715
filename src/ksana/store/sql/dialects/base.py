"""What a database must tell the store about itself. Everything else is common."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from sqlalchemy import Connection, Engine

from ksana.store.requests import Diagnosis, StoreOptions

RowColumns = Sequence[tuple[str, str]]
GIVEN = re.compile(r"\br\.(\w+)")
"""A column of the rows that a statement is given."""
Said = tuple[str, Mapping[str, Any]]
"""A statement as the driver takes it, with its parameters."""


READING_SECONDS = 30
WRITING_SECONDS = 10
"""How long an answer may take before its connection is given up. What writes is quick, and a lease hangs on it."""


STANDSTILL_SECONDS = 8
"""How long a transaction may stand still before the server breaks it off. An instance that is frozen in the middle of one would
otherwise keep its locks, and nobody could take its work over; so it is less than a lease."""


class Pool(NamedTuple):
    """How many connections are kept, how many more there may be while they are needed, and how long each waits for an answer."""

    kept: int
    more: int = 0
    patience: int | None = READING_SECONDS
    """Seconds; None: as long as it takes."""

    repeats: bool = False
    """The same statements come again and again."""

    @property
    def statement_seconds(self) -> int | None:
        """After which the server breaks a statement off: before its client gives the connection up, and would ask again for what
        the server is still at."""
        return None if self.patience is None else self.patience - 1


class Courier(Protocol):
    """Carries hints between the instances on one database."""

    def start(self, listener: Callable[[str], None]) -> None:
        """From now on, what others send is heard, in a thread of its own. Never raises."""

    def send(self, hint: str) -> None:
        """To all others, soon. Never raises and never waits."""

    def close(self) -> None:
        """Ends the thread. Harmless if it never started."""


class Dialect(ABC):
    name: ClassVar[str]
    marks: ClassVar[dict[str, str]]
    """What stands for {join}, {for_update}, {skip_locked}, {for_share}, {for_update_jobs}, {now} and, behind a table's name, for
    {by_id}, {by_ready}, {by_node}, {by_owner}, {by_share} and {by_job_status} (the index by which it is to be read), and for
    {status}, a state that no index is to be searched by, in a statement; {once}, behind the AS of a WITH, that it is worked out
    once and not for each row that it is joined to; {in_ready_index}, what the rows of the
    index {by_ready} have in common; {share}, the share of one that can be claimed; {if_there}, behind an INSERT, what it
    sets if its `id` is there already."""
    seeks_shares: ClassVar[bool] = True
    """Whether a statement that goes from row to row finds each next share by the index."""
    sees_what_is_the_same: ClassVar[bool] = True
    """Whether an index is taken to be in order by its further columns where the first ones are NULL in all rows asked for."""
    seeks_pairs: ClassVar[bool] = True
    """Whether `(a, b) > (c, d)` goes by an index to where it begins, which the same said with OR does not."""
    takes_values: ClassVar[bool] = False
    """Whether rows are better given to it as values than as JSON."""
    or_fail: ClassVar[str] = ""
    """What a statement that writes many rows says behind its verb where it would otherwise keep what it needs to take itself back:
    if one fails, so does its transaction, with everything in it."""
    patience: ClassVar[Mapping[bool, str]] = {}
    """What tells a connection whether to wait for a lock that somebody else has. Empty where brief transactions are not for an
    event loop, since a server is asked."""
    begin: ClassVar[str] = ""
    """What begins a transaction of the writer, where its driver is told so by ourselves; empty where SQLAlchemy does it."""
    others_wrote: ClassVar[str] = ""
    """The question that is answered differently after somebody else has written; empty where there are always others."""
    gathers_rows: ClassVar[bool] = False
    """Whether many rows are better taken from it as one JSON text than one by one."""
    has_runs_by_job: ClassVar[bool] = True
    """Whether there is an index of each job's runs, whatever their states. Else they are asked for state by state."""
    shared: ClassVar[bool]
    """Whether several processes may use the database at once: then leases follow its clock and a COMMIT can be ambiguous."""

    def exists(self, url: str) -> bool:  # noqa: ARG002
        """False for an embedded database that has not been made yet: to open it would make it."""
        return True

    @abstractmethod
    def writing_engine(self, url: str, options: StoreOptions, *, patient: bool = False) -> Engine:
        """An engine whose connections are for one writer at a time; `patient`: for statements that may take long."""

    @abstractmethod
    def reading_engine(self, url: str, options: StoreOptions) -> Engine:
        """An engine with a pool of `options.readers` connections."""

    @abstractmethod
    def rows_table(self, columns: RowColumns, given: str = "rows", name: str = "r") -> str:
        """A table expression over the JSON array of arrays in the parameter `given`."""

    def values_table(self, columns: RowColumns) -> str:
        """The same over values, `:size` rows of them in the place of `:rows`."""
        fields = ", ".join(f"column{i} AS {name}" for i, (name, _) in enumerate(columns, 1))
        return f"(SELECT {fields} FROM (VALUES :rows) LIMIT :size) AS r"

    def update_joined(self, table: str, assignments: Mapping[str, str], rows: str, on: str = "t.id = r.id") -> str:
        """UPDATE of `table` (as `t`) from the rows `r` that go with it; `on` is about its primary key."""
        changes = ", ".join(f"{column} = {value}" for column, value in assignments.items())
        return f"UPDATE {self.or_fail} {table} AS t SET {changes} FROM {rows} WHERE {on}"

    def update_listed(self, table: str, assignments: Mapping[str, str], columns: RowColumns, count: int) -> str | None:  # noqa: ARG002
        """The same for `count` rows by their id, whose values are parameters of their own: `:name_0`, `:name_1`, …; None if so many
        are better given as rows."""
        return None

    def following(self, index: str) -> str:  # noqa: ARG002
        """Behind a table's name: that it is to be read by this index."""
        return ""

    @abstractmethod
    def diagnose(self, connection: Connection) -> list[Diagnosis]:
        """What an operator should know: whether commits are durable, versions, limits."""

    def courier(self, url: str, options: StoreOptions) -> Courier | None:  # noqa: ARG002
        """None where the database cannot wake anybody: then others look often enough by themselves."""
        return None

    @abstractmethod
    def lock_for_migration(self, connection: Connection) -> None:
        """Waits until no other process migrates this database; held until the connection is closed."""


class ServerDialect(Dialect):
    """A database behind a network, which several instances share."""

    shared = True

    def writing_engine(self, url: str, options: StoreOptions, *, patient: bool = False) -> Engine:
        # One connection for the writer, one for heartbeats; one more while a heartbeat hangs and whoever joined anew beats.
        return self.engine(
            url, options, Pool(kept=2, more=1, patience=None if patient else WRITING_SECONDS, repeats=True)
        )

    def reading_engine(self, url: str, options: StoreOptions) -> Engine:
        kept = max(1, min(options.idle_readers, options.readers))
        return self.engine(url, options, Pool(kept, more=options.readers - kept))

    @abstractmethod
    def insert_with_ids(
        self, connection: Connection, table: str, columns: RowColumns, rows: str, count: int
    ) -> list[int]:
        """Inserts one chunk of rows; the ids they were given, in the order of the rows."""

    @abstractmethod
    def together(self, connection: Any, said: Sequence[Said]) -> Any:
        """Has all of these done, one after the other, and waits once; the driver's cursor with the answer to the last. If one
        fails, that is raised, and those after it are not done."""

    @abstractmethod
    def engine(self, url: str, options: StoreOptions, pool: Pool) -> Engine:
        """READ COMMITTED; gives up on a silent server."""
