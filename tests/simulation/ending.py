"""What must hold when a world has been quiet for a while: nothing lost, nothing stuck."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ksana.domain.ledger import Occurrence
from ksana.domain.states import ExecutionStatus
from tests.simulation.invariants import require
from tests.simulation.memory_cluster import alive

if TYPE_CHECKING:
    from tests.simulation.scenario import Planned
    from tests.simulation.world import World

LATENESS = timedelta(seconds=5)
"""Whatever is younger may still be on its way: jitter, a look, a transaction."""
OVERDUE = timedelta(seconds=20)


def check_end(world: "World") -> None:
    for planned in world.targets:
        check_ledger(world, planned)
    now = world.now()
    for row in world.tables.unended():
        stuck = row.status is ExecutionStatus.RUNNING and not alive(world.tables, row.owner or "")
        require("I12", not stuck, "{} still runs, though its owner {} is gone", row.id, row.owner)
        late = row.deadline_at is not None and row.deadline_at < now - OVERDUE
        require("I12", not late, "{} still waits, though its deadline {} has passed", row.id, row.deadline_at)


def check_ledger(world: "World", planned: "Planned") -> None:
    """Every instant that has passed has one row, or is in one range, and no other instant does."""
    rows = sorted(world.tables.ledger[planned.schedule_id].values(), key=lambda row: row.planned_for)
    recorded = [instant for row in rows for instant in _instants(row, planned)]
    name = world.tables.schedules[planned.schedule_id]
    require("I2", len(recorded) == len(set(recorded)), "{} has instants twice", name)
    known = set(recorded)
    lost = [instant for instant in planned.instants(world.now() - LATENESS) if instant not in known]
    require("I1", not lost, "{} lost {}", name, lost[:3])
    phantoms = known - set(planned.instants(max(recorded, default=world.now())))
    require("I2", not phantoms, "{} has rows for instants that were never planned, {}", name, sorted(phantoms)[:3])


def _instants(row: Occurrence, planned: "Planned") -> list[datetime]:
    step = planned.step or timedelta(seconds=1)
    made = [row.planned_for + n * step for n in range(row.count)]
    require("I2", made[-1] == (row.last_planned_for or row.planned_for), "{} does not add up", row)
    return made
