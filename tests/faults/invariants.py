"""What must hold whatever happens, each as a function that counts how often it did not. The names are RELIABILITY's."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tests.faults.history import AttemptRow, Band, Execution, History, Schedule
from tests.faults.hits import Hit
from tests.faults.matching import Fire, by_fire

GIVEN_UP = {"LOST", "HANDED_BACK"}
SETTLING = 20.0
"""Seconds after a fault within which its consequences for attempts may still show: a lease runs out, work is taken over."""


def duplicated(history: History) -> set[Fire]:
    """I2: fires with two rows, or for which the target saw two runs, or two keys."""
    rows = Counter((row.schedule, row.planned) for row in history.dump.executions if row.planned is not None)
    twice: set[Fire] = {fire for fire, number in rows.items() if number > 1}
    for fire, hits in by_fire(history.hits).items():
        if len({hit.run for hit in hits}) > 1 or len({hit.key for hit in hits}) > 1:
            twice.add(fire)
    return twice


def excess_attempts(history: History) -> dict[Fire, int]:
    """I3: attempts that neither a retry nor a fault explains; of jobs that must not run twice, every second one."""
    schedules = {each.schedule.name: each.schedule for each in history.operations}
    found: dict[Fire, int] = {}
    for fire, hits in by_fire(history.hits).items():
        schedule = schedules.get(fire[0])
        if schedule is None or len(hits) == 1:
            continue
        excess = len(hits) - 1 - (0 if schedule.at_most_once else _explained(history.bands, hits, schedule))
        if excess > 0:
            found[fire] = excess
    return found


def _explained(bands: Sequence[Band], hits: Sequence[Hit], schedule: Schedule) -> int:
    """Each fault explains one more attempt of each fire that was under way while it lasted, or soon after."""
    first, last = min(hit.began for hit in hits), max(hit.began for hit in hits)
    within = sum(band.began <= last and _over(band) + SETTLING >= first for band in bands)
    return within + schedule.retries


def _over(band: Band) -> float:
    return float("inf") if band.ended is None else band.ended


def stale_writes(history: History) -> list[str]:
    """I4: results that were taken although somebody else had the run by then, and ends that were not the end."""
    attempts: dict[int, list[AttemptRow]] = defaultdict(list)
    for row in history.dump.attempts:
        attempts[row.execution].append(row)
    found = [text for row in history.dump.executions for text in _stale(row, attempts[row.id])]
    now = {row.id: row.status for row in history.dump.executions}
    for execution, status in history.ended_seen.items():
        if now.get(execution) != status:
            found.append(f"run {execution} had ended {status} and is now {now.get(execution)}")
    return found


def _stale(row: Execution, attempts: list[AttemptRow]) -> Iterable[str]:
    results = [each for each in attempts if each.status not in GIVEN_UP]
    for each in results:
        later = [other for other in attempts if other.epoch > each.epoch and other.began_wall < each.ended_wall]
        if later:
            yield f"run {row.id}: epoch {each.epoch} was taken after epoch {later[0].epoch} had begun"
        if each.epoch > row.epoch:
            yield f"run {row.id}: epoch {each.epoch} was taken, the run has {row.epoch}"
    if sum(each.status == "SUCCEEDED" for each in results) > 1:
        yield f"run {row.id} succeeded more than once"
    if row.status == "SUCCESS" and not any(each.status == "SUCCEEDED" and each.epoch == row.epoch for each in attempts):
        yield f"run {row.id} is SUCCESS without an attempt of its epoch {row.epoch} that was"


def overlaps(history: History) -> tuple[int, int]:
    """I5: attempts beyond a schedule's limit at once, seen by the target; and those that a zombie had sent before."""
    limits = {each.schedule.name: each.schedule.most_at_once for each in history.operations}
    hits: dict[str, list[Hit]] = defaultdict(list)
    for hit in history.hits:
        hits[hit.schedule].append(hit)
    plain = zombies = 0
    for name, limit in limits.items():
        if limit is not None:
            found = [_beyond(history.bands, hits[name], hit, limit) for hit in hits[name]]
            plain += sum(each == "overlap" for each in found)
            zombies += sum(each == "zombie" for each in found)
    return plain, zombies


def _beyond(bands: Sequence[Band], hits: Sequence[Hit], hit: Hit, limit: int) -> str:
    """Whether there were too many as this one began."""
    active = [
        other
        for other in hits
        if other is not hit and other.began <= hit.began and (other.ended is None or other.ended > hit.began)
    ]
    if len(active) < limit:
        return ""
    healthy = [other for other in active if not _faulted(bands, other.began, hit.began)]
    return "overlap" if len(healthy) >= limit else "zombie"


def _faulted(bands: Sequence[Band], begin: float, end: float) -> bool:
    return any(band.began <= end and _over(band) + SETTLING >= begin for band in bands)


def callbacks(history: History) -> tuple[int, int]:
    """I10: runs that a callback ended though no target had called, and runs with two callbacks that counted."""
    reporting = {hit.run for hit in history.hits if any(status in {0, 200} for status in hit.callbacks)}
    ended = [row for row in history.dump.executions if row.status == "CALLBACK_SUCCESS"]
    taken = Counter(execution for execution, status in history.dump.callbacks if status == "RECEIVED")
    return sum(str(row.id) not in reporting for row in ended), sum(number > 1 for number in taken.values())


def stuck(history: History) -> list[Execution]:
    """I12: runs that belong to an instance which is no more."""
    holders = {row.id for row in history.dump.instances if row.status == "ALIVE" and row.lease_left > 0}
    return [row for row in history.dump.executions if row.status == "RUNNING" and row.owner not in holders]


def acknowledged_lost(history: History) -> list[str]:
    """I6: schedules that were acknowledged and are not there."""
    removed = {each.schedule.name for each in history.operations if each.kind == "stop"}
    kept = [each.schedule.name for each in history.operations if each.kind == "create" and each.outcome == "ok"]
    return [name for name in kept if name not in history.dump.schedules and name not in removed]
