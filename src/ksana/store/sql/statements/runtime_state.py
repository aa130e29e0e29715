"""Runtime state, where the database is what shows it. `{now}` is the database's clock wherever several instances share it.

Rows are locked in the order of their keys, then judged here, one write after the other, so that of many in one batch each
sees what those before it did. Two that both find no row insert both: the one that loses is tried again by the writer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Row

from ksana.domain.errors import KsanaError
from ksana.store.runtime_requests import Rule, RuntimeRemoval, RuntimeWrite
from ksana.store.sql.dialects.base import Dialect
from ksana.store.sql.rows import Statement, columns, storable
from ksana.store.sql.tx import Tx

Name = tuple[str, str]
"""Kind and key."""

_MICROSECOND = timedelta(microseconds=1)
_SAME_KEY = "t.kind = r.kind AND t.state_key = r.state_key"
_BY_VALUE = {Rule.FREE, Rule.HELD}
_VALUES = columns(kind="key", state_key="key", value="text", version="int", ttl="int")

# The value, which may be long, only where it is compared.
_LOCK = Statement(
    "SELECT t.kind, t.state_key, t.version, CASE WHEN r.compared = 1 THEN t.value END AS value,"
    " CASE WHEN t.expires_at > {now} THEN 1 ELSE 0 END AS lives"
    f" FROM {{rows}} {{join}} runtime_state t {{by_id}} ON {_SAME_KEY} ORDER BY t.kind, t.state_key {{for_update}}",
    columns(kind="key", state_key="key", compared="int"),
)
_INSERT = Statement(
    "INSERT INTO runtime_state (kind, state_key, value, version, expires_at)"
    " SELECT r.kind, r.state_key, r.value, r.version, {now} + r.ttl FROM {rows}",
    _VALUES,
)
_READ = Statement(
    f"SELECT t.state_key, t.value, t.version FROM {{rows}} {{join}} runtime_state t {{by_id}} ON {_SAME_KEY}"
    " WHERE t.expires_at > {now}",
    columns(kind="key", state_key="key"),
)
_ALL = Statement(
    "SELECT t.state_key, t.value, t.version FROM runtime_state t WHERE t.kind = :kind AND t.expires_at > {now}"
    " ORDER BY t.state_key LIMIT :limit"
)
_COUNT = Statement("SELECT t.kind, COUNT(*) AS number FROM runtime_state t WHERE t.expires_at > {now} GROUP BY t.kind")
# The time is given: one that is asked for anew for every row is nothing to search an index by.
_EXPIRED = Statement(
    "SELECT t.kind, t.state_key FROM runtime_state t WHERE t.expires_at <= :now"
    " ORDER BY t.expires_at LIMIT :limit {skip_locked}"
)


def _update(dialect: Dialect, rows: str) -> str:
    ends = f"{dialect.marks['now']} + r.ttl"
    # MySQL's UPDATE has no FROM.
    if dialect.name == "mysql":
        changes = f"t.value = r.value, t.version = r.version, t.expires_at = {ends}"
        return f"UPDATE {rows} STRAIGHT_JOIN runtime_state t {dialect.marks['by_id']} ON {_SAME_KEY} SET {changes}"
    changes = f"value = r.value, version = r.version, expires_at = {ends}"
    return f"UPDATE runtime_state AS t SET {changes} FROM {rows} WHERE {_SAME_KEY}"


def _delete(dialect: Dialect, rows: str) -> str:
    # MySQL would look at, and lock, every row for a subquery.
    if dialect.name == "mysql":
        return f"DELETE t FROM {rows} STRAIGHT_JOIN runtime_state t {dialect.marks['by_id']} ON {_SAME_KEY}"
    return f"DELETE FROM runtime_state WHERE (kind, state_key) IN (SELECT r.kind, r.state_key FROM {rows})"


_UPDATE = Statement(_update, _VALUES)
_DELETE = Statement(_delete, columns(kind="key", state_key="key"))


@dataclass(frozen=True, slots=True)
class _There:
    """What is under a name: `value` is known where it is compared."""

    value: str | None
    version: int


def write(tx: Tx, batches: list[Sequence[RuntimeWrite]]) -> list[list[bool] | KsanaError]:
    writes = [each for batch in batches for each in batch]
    rows = _locked(
        tx, {_name(each): False for each in writes} | {_name(w): True for w in writes if w.rule in _BY_VALUE}
    )
    there = _living(rows.values())
    last: dict[Name, RuntimeWrite] = {}
    answers: list[list[bool] | KsanaError] = [[_judge(each, there, last) for each in batch] for batch in batches]
    _write(tx, _INSERT, [each for name, each in last.items() if name not in rows])
    _write(tx, _UPDATE, [each for name, each in last.items() if name in rows])
    return answers


def remove(tx: Tx, batches: list[Sequence[RuntimeRemoval]]) -> list[list[bool] | KsanaError]:
    removals = [each for batch in batches for each in batch]
    compared = {(each.kind, each.key): True for each in removals if each.value is not None}
    rows = _locked(tx, {(each.kind, each.key): False for each in removals} | compared)
    there = _living(rows.values())
    before = set(there)
    answers: list[list[bool] | KsanaError] = [[_removed(each, there) for each in batch] for batch in batches]
    _delete_all(tx, before - set(there))
    return answers


def read(tx: Tx, kind: str, keys: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Value and version of those that are there."""
    rows = tx.query(_READ, [(kind, key) for key in sorted(set(keys))]) if keys else []
    return _values(rows)


def read_all(tx: Tx, kind: str, limit: int) -> dict[str, tuple[str, int]]:
    return _values(tx.query(_ALL, kind=str(kind), limit=limit))


def count(tx: Tx) -> Mapping[str, int]:
    return {row.kind: row.number for row in tx.query(_COUNT)}


def purge(tx: Tx, limit: int) -> int:
    """Removes at most `limit` of those that have expired, the oldest first, but none that somebody is at: how many."""
    return _delete_all(tx, {(row.kind, row.state_key) for row in tx.query(_EXPIRED, now=tx.now(), limit=limit)})


def _judge(write: RuntimeWrite, there: dict[Name, _There], last: dict[Name, RuntimeWrite]) -> bool:
    """Whether it is written; then it is what those after it find."""
    name = _name(write)
    found = there.get(name)
    if not write.allowed(None if found is None else (found.value or "", found.version)):
        return False
    there[name] = _There(storable(write.value), write.version)
    last[name] = write
    return True


def _removed(removal: RuntimeRemoval, there: dict[Name, _There]) -> bool:
    found = there.get((removal.kind, removal.key))
    if found is None or removal.value not in {None, found.value}:
        return False
    del there[removal.kind, removal.key]
    return True


def _locked(tx: Tx, names: Mapping[Name, bool]) -> dict[Name, Row[tuple[object, ...]]]:
    """The rows there are of these names, expired or not; of some, the value is wanted, too."""
    wanted = [(*name, int(compared)) for name, compared in sorted(names.items())]
    found = tx.query(_LOCK, wanted) if wanted else []
    return {(row.kind, row.state_key): row for row in found}


def _living(rows: Iterable[Row[tuple[object, ...]]]) -> dict[Name, _There]:
    return {(row.kind, row.state_key): _There(row.value, row.version) for row in rows if row.lives}


def _write(tx: Tx, statement: Statement, writes: Sequence[RuntimeWrite]) -> None:
    rows = [(*_name(w), storable(w.value), w.version, w.ttl // _MICROSECOND) for w in writes]
    if rows:
        tx.run(statement, sorted(rows))


def _delete_all(tx: Tx, names: set[Name]) -> int:
    return tx.changed(_DELETE, sorted(names)) if names else 0


def _name(write: RuntimeWrite) -> Name:
    return (write.kind, write.key)


def _values(rows: Iterable[Row[tuple[object, ...]]]) -> dict[str, tuple[str, int]]:
    return {row.state_key: (row.value, row.version) for row in rows}
