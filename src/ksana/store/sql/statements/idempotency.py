"""Idempotency keys: under which something is known to whoever asked for it."""

from collections.abc import Iterable, Sequence

from ksana.domain.errors import InvalidInput
from ksana.store.sql.rows import Statement, columns, insert_rows
from ksana.store.sql.tx import Tx

KEY_LENGTH = 128
Name = tuple[str, str]
"""A scope, as in `job/1`, and a key."""

_INSERT = insert_rows(
    "idempotency_keys", columns(scope="text", idempotency_key="text", resource_id="int", created_at="int")
)
_KNOWN = Statement(
    "SELECT t.scope, t.idempotency_key, t.resource_id FROM {rows} {join} idempotency_keys t"
    " ON t.scope = r.scope AND t.idempotency_key = r.idempotency_key",
    columns(scope="key", idempotency_key="key"),
)


def refusal(key: str) -> InvalidInput | None:
    """Why it is no key; None if it is one."""
    if not 0 < len(key.strip()) <= KEY_LENGTH:
        return InvalidInput("idempotency_key", f"must have 1 to {KEY_LENGTH} characters")
    if not key.isprintable():
        return InvalidInput("idempotency_key", "must not contain control characters or halves of characters")
    return None


def known(tx: Tx, names: Iterable[Name]) -> dict[Name, int]:
    """What these have made before."""
    wanted = sorted(set(names))
    return {(row.scope, row.idempotency_key): row.resource_id for row in tx.query(_KNOWN, wanted)} if wanted else {}


def remember(tx: Tx, made: Sequence[tuple[str, str, int]]) -> None:
    """Scope, key, and the id of what it made."""
    if made:
        tx.run(_INSERT, [(*each, tx.clock) for each in made])
