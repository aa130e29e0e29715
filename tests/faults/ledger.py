"""What the ledger of a schedule must be: every instant in it, once, in a row of its own or in a range; nothing else; and each that
was fired seen by the target, once."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.faults.history import History, Occurrence

SHOWN = 3


def rows_of(history: History, name: str) -> list[Occurrence]:
    return sorted((row for row in history.dump.occurrences if row.schedule == name), key=lambda row: row.first)


def fired(rows: Sequence[Occurrence]) -> list[float]:
    return [row.first for row in rows if row.outcome == "FIRED"]


def faults_of(history: History, name: str, instants: Sequence[float]) -> list[str]:
    """What is wrong with it, if these are its instants."""
    rows = rows_of(history, name)
    return [*_coverage(name, rows, instants), *_seen(history, name, fired(rows))]


def _coverage(name: str, rows: Sequence[Occurrence], instants: Sequence[float]) -> Iterator[str]:
    """Range after range covers them without a gap, and without one twice."""
    place = 0
    for row in rows:
        part = instants[place : place + row.count]
        if not part or (part[0], part[-1], len(part)) != (row.first, row.last, row.count):
            due = f"{len(part)} from {part[0]:.0f} to {part[-1]:.0f}" if part else "nothing"
            yield f"{name}: {row.outcome} {row.count} from {row.first:.0f} to {row.last:.0f}, due is {due}"
            return
        place += row.count
    if place != len(instants):
        yield f"{name}: {len(instants) - place} instants from {instants[place]:.0f} on are not in the ledger"


def _seen(history: History, name: str, planned: Sequence[float]) -> Iterator[str]:
    """By runs of the schedule alone: a person may have asked for others."""
    manual = {str(row.id) for row in history.dump.executions if row.triggered_by != "schedule"}
    hits = Counter(hit.planned for hit in history.hits if hit.schedule == name and hit.run not in manual)
    lost = [at for at in planned if not hits[at]]
    twice = [at for at, times in hits.items() if times > 1]
    phantoms = sorted(at or 0 for at in hits.keys() - set(planned))
    for what, found in (("fired and not seen", lost), ("seen twice", twice), ("seen and not fired", phantoms)):
        if found:
            yield f"{name}: {what}: {len(found)}, as {found[:SHOWN]}"
