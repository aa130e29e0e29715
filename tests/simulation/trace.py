"""What happened in a world, line by line, short enough to be read."""

from collections.abc import Iterable, Sequence

from ksana.domain.errors import KsanaError
from ksana.domain.execution import Execution
from ksana.domain.instance import Instance
from ksana.domain.ledger import Fired, Firing
from ksana.store.requests import CallbackAnswer, CallbackReport, NewInstance, Recovered
from tests.simulation.memory_queue import Settlement


def lines(trace: Iterable[Sequence[object]]) -> list[str]:
    return [" ".join(map(short, entry)) for entry in trace]


def short(value: object) -> str:
    match value:
        case Settlement(ending=ending, target=target, attempt=attempt):
            return f"{ending.claim.execution_id} epoch {ending.claim.epoch} {attempt} → {target}"
        case Firing(schedule_id=number, cursor=cursor, decision=decision):
            return f"schedule {number} at {cursor:%H:%M:%S}, {len(decision.fires)} of them"
        case Fired(schedule_id=number, lost=lost, execution_ids=ids, skipped=skipped):
            return f"schedule {number} " + ("lost" if lost else f"made {list(ids)}, skipped {skipped}")
        case Execution(id=number, epoch=epoch, status=status):
            return f"{number} epoch {epoch} {status}"
        case CallbackReport(target=target, token_hash=token, execution_id=number):
            return f"{target} by {'token' if token else f'ids of {number}'}"
        case CallbackAnswer(execution=execution, accepted=accepted):
            return f"{short(execution)} {'accepted' if accepted else 'ignored'}"
        case Instance(id=name) | NewInstance(id=name):
            return f"…{name[-6:]}"
        case Recovered(dead_instances=dead, requeued=requeued, failed=failed):
            return f"{len(dead)} dead, {requeued} put back, {failed} failed"
    return _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, KsanaError):
        return type(value).__name__
    if isinstance(value, list | tuple):
        return "; ".join(map(short, value)) or "nothing"
    return str(value)
