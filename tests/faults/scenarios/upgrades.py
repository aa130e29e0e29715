"""Instances of two versions on one database. `tests/upgrade` has what they do, and runs its small size as a test of its own."""

from tests.faults.arena import Arena
from tests.faults.history import History, Verdict
from tests.faults.scenarios import scenario
from tests.upgrade.rolling import roll


@scenario("F28", "an instance of the version before is replaced by one of this", gate=False)
def rolling_upgrade(arena: Arena) -> tuple[History, Verdict]:
    """Nothing lost, nothing twice, no error on either side."""
    return roll(arena)
