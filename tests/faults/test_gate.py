"""The gate: the small size of every scenario that has one, on the stores that it is for. What it violates is what fails."""

import pytest

from tests.faults.running import run
from tests.faults.scenarios import Scenario, scenarios
from tests.servers.absence import absent
from tests.servers.base import MissingError

SEED = 1
IN_FULL_ONLY = {("F4", "mysql"), ("F5", "postgresql")}
"""Left to `make faults`: what they take from every run of the tests would be more than they add."""
GATES = [
    pytest.param(
        wanted, store, id=f"{wanted.name}-{store}", marks=[] if store == "sqlite" else getattr(pytest.mark, store)
    )
    for wanted in scenarios().values()
    if wanted.gate
    for store in wanted.stores
    if (wanted.name, store) not in IN_FULL_ONLY
]


@pytest.mark.parametrize(("wanted", "store"), GATES)
def test_nothing_is_lost_or_done_twice(wanted: Scenario, store: str) -> None:
    try:
        result = run(wanted, store, seed=SEED, full=False)
    except MissingError as missing:
        absent("compiler" if store == "sqlite" else store, missing)
    assert not result.violations, result.figures
