"""Tasks that run tell how far they are, however slow their stage is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from ksana.domain.clock import to_micros
from ksana.domain.errors import KsanaError
from ksana.domain.events import EventType
from ksana.store.sql.codec_plans import plan_spec
from ksana.store.sql.rows import LATER, Statement, columns, update_by_id
from ksana.store.sql.statements import outbox
from ksana.store.sql.statements.journal import record_events
from ksana.store.sql.tx import Tx

_MICROSECOND = timedelta(microseconds=1)
# Those that somebody is just changing tell by that.
_SILENT = Statement(
    "SELECT t.id, t.plan_id, t.tenant_id, t.last_completed FROM tenant_tasks t"
    " WHERE t.told_at <= :since ORDER BY t.told_at, t.id LIMIT :most {skip_locked}"
)
_TELL = update_by_id("tenant_tasks", columns(id="int"), told_at=":at", updated_at=LATER, version="t.version + 1")
_SPECS = Statement("SELECT t.id, t.spec FROM {rows} {join} plans t {by_id} ON t.id = r.id", columns(id="int"))


@dataclass(frozen=True, slots=True)
class Round:
    at: datetime
    every: timedelta
    limit: int


def tell(tx: Tx, rounds: list[Round]) -> list[int | KsanaError]:
    return [_tell(tx, each) for each in rounds]


def _tell(tx: Tx, wanted: Round) -> int:
    at = to_micros(wanted.at)
    rows = tx.query(_SILENT, since=at - wanted.every // _MICROSECOND, most=wanted.limit)
    if not rows:
        return 0
    tx.run(_TELL, sorted((row.id,) for row in rows), at=at)
    found = tx.query(_SPECS, sorted({(row.plan_id,) for row in rows}))
    stages = {row.id: len(plan_spec(row.spec).stage_names) for row in found}
    told = EventType.TASK_PROGRESSED
    record_events(
        tx,
        at,
        [
            (
                told,
                f"task/{row.id}",
                {
                    "tenant": row.tenant_id,
                    "completed": row.last_completed + 1,
                    "stages": stages[row.plan_id],
                },
            )
            for row in rows
        ],
    )
    outbox.add(tx, at, [(told, row.plan_id, row.id) for row in rows])
    return len(rows)
