"""The model is held to the contract of the real stores: the same tests, on one more back end.

Every test of these modules runs here, those that are still to be written too, unless it opens an SQL database by itself or is
about something that the model does not have.
"""

import inspect
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import pytest

from tests.clock import FakeClock
from tests.contract.store import test_claiming, test_cluster, test_ends, test_ledger, test_settling
from tests.contract.store.world import World
from tests.simulation.memory_store import MemoryStore
from tests.simulation.memory_tables import Tables

BEYOND = {
    # Changes and deletions of definitions
    "test_a_raised_limit_counts_at_once",
    "test_a_lowered_limit_counts_at_once",
    "test_a_schedule_that_moved_since_the_decision_does_not_fire",
    "test_a_stale_decision_beside_a_fresh_one_in_a_batch_is_the_one_that_is_lost",
    "test_a_cursor_set_back_gives_no_instant_a_second_row_and_holds_up_nobody",
    "test_the_instants_of_a_disabled_job_are_skipped_until_it_is_enabled",
    "test_due_schedules_come_earliest_first_and_only_those_that_fire",
    "test_a_changed_schedule_keeps_account_of_what_passed_while_it_was_paused",
    # Events and the audit
    "test_a_full_job_that_skips_has_a_skipped_execution_and_says_why",
    "test_an_instance_joins_beats_and_leaves",
    "test_what_a_dead_instance_ran_is_run_again_under_a_new_epoch",
    "test_canceling_what_has_ended_changes_nothing",
    "test_a_report_by_ids_needs_the_right_job",
    # What a database cannot hold
    "test_bodies_that_no_database_can_hold_are_kept_as_far_as_they_can_be",
    "test_an_error_that_is_too_long_is_cut_at_its_end",
}
SQL_ONLY = {"url", "store", "back_end"}


def cases(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, test in vars(module).items():
        if not name.startswith("test_") or name in BEYOND:
            continue
        if not SQL_ONLY & inspect.signature(test).parameters.keys():
            yield name, test


for each in (test_claiming, test_cluster, test_ends, test_ledger, test_settling):
    globals().update(cases(each))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def world(clock: FakeClock) -> World:
    began, since = clock.now(), clock.monotonic()

    def database_time() -> datetime:
        """As that of a server: nobody here can set it."""
        return began + timedelta(seconds=clock.monotonic() - since)

    return World(MemoryStore(Tables(database_time), clock).as_store(), clock)
