"""Instances are upgraded one by one, without a pause: the version before and this one work on one database meanwhile."""

import pytest

from tests.faults.running import run
from tests.faults.scenarios import scenarios
from tests.servers import absence
from tests.servers.base import MissingError
from tests.upgrade.older import older_source

SEED = 1


@pytest.mark.parametrize(
    "store",
    [
        pytest.param("postgresql", marks=pytest.mark.postgresql),
        pytest.param("mysql", marks=pytest.mark.mysql),
    ],
)
def test_two_versions_on_one_database_lose_nothing_and_do_nothing_twice(store: str) -> None:
    _require_history()
    result = run(scenarios()["F28"], store, seed=SEED, full=False)
    assert not result.violations, result.figures


def _require_history() -> None:
    """A clone without history is skipped; where everything is to be tested, it is a failure."""
    try:
        older_source()
    except MissingError as missing:
        if absence.required():
            pytest.fail(f"{missing} ({absence.VARIABLE} is set; looked for {missing.looked_for})", pytrace=False)
        pytest.skip(str(missing))
