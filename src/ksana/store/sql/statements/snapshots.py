"""Snapshots: kept once for all runs that started with the same graph and jobs, and read once by each process."""

from collections.abc import Iterable

from sqlalchemy import insert, select

from ksana.domain.dag import Graph
from ksana.domain.errors import KsanaError
from ksana.domain.workflow import Dag, Snapshot
from ksana.store.sql import schema
from ksana.store.sql.codec_workflows import SNAPSHOTS, read_snapshot, snapshot_json
from ksana.store.sql.rows import Statement
from ksana.store.sql.tx import Tx

# Also what keeps retention from it: whoever looks for old ones waits for this, and then sees that it is in use.
_USE = Statement("UPDATE snapshots SET used_at = :at WHERE digest = :digest")


def keep(tx: Tx, snapshots: Iterable[Snapshot], at: int) -> None:
    """Each of them is there from now on."""
    for snapshot in {each.digest: each for each in snapshots}.values():
        if tx.changed(_USE, digest=snapshot.digest, at=at) == 0:
            values = {"digest": snapshot.digest, "document": snapshot_json(snapshot), "used_at": at}
            tx.core_run(insert(schema.snapshots).values(values))
        SNAPSHOTS.add(snapshot)


def read(tx: Tx, digests: Iterable[str]) -> dict[str, Snapshot]:
    """Each of these, from memory if it has been read before."""
    found: dict[str, Snapshot] = {}
    missing: list[str] = []
    for digest in set(digests):
        known = SNAPSHOTS.get(digest)
        if known is None:
            missing.append(digest)
        else:
            found[digest] = known
    kept = schema.snapshots.c
    if missing:
        for row in tx.core(select(schema.snapshots).where(kept.digest.in_(sorted(missing)))):
            found[row.digest] = _read(row.digest, row.document)
    return {digest: found.get(digest) or _nothing(digest) for digest in (*found, *missing)}


def _read(digest: str, document: str) -> Snapshot:
    """One that cannot be read has no nodes: its runs go no further, and keep nobody else from going on."""
    try:
        snapshot = read_snapshot(digest, document)
    except (KsanaError, ValueError, KeyError, TypeError):
        return _nothing(digest)
    SNAPSHOTS.add(snapshot)
    return snapshot


def _nothing(digest: str) -> Snapshot:
    return Snapshot(digest, Dag({}, (), Graph({}, {}, {})), {})
