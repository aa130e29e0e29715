"""The database's time, kept by the machine's monotonic clock: a clock that is wrong or jumps on one machine does no harm."""

from datetime import UTC, datetime, timedelta

import pytest

from ksana.engine.clock import DOUBT, STALE, Timekeeper

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SURE = 0.001


class Machine:
    """Two clocks that are moved apart."""

    def __init__(self) -> None:
        self.wall = NOON
        self.elapsed = 100.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.elapsed

    def pass_(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.elapsed += seconds


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def keeper(machine: Machine) -> Timekeeper:
    return Timekeeper(machine)


def test_before_it_was_told_anything_it_is_the_machines(machine: Machine, keeper: Timekeeper) -> None:
    assert keeper.now() == NOON
    machine.pass_(5)
    assert keeper.now() == NOON + timedelta(seconds=5)
    assert keeper.monotonic() == machine.monotonic()


def test_it_is_what_it_was_told_and_goes_on_from_there(machine: Machine, keeper: Timekeeper) -> None:
    keeper.told(NOON + HOUR, machine.elapsed, SURE)
    assert keeper.now() == NOON + HOUR
    machine.pass_(7)
    assert keeper.now() == NOON + HOUR + timedelta(seconds=7)


def test_what_was_read_a_while_ago_counts_from_then(machine: Machine, keeper: Timekeeper) -> None:
    read_at = machine.elapsed
    machine.pass_(2)
    keeper.told(NOON, read_at, SURE)
    assert keeper.now() == NOON + timedelta(seconds=2)


@pytest.mark.parametrize("jump", [HOUR, -HOUR, timedelta(days=365)])
def test_a_machine_whose_clock_jumps_does_not_matter(machine: Machine, keeper: Timekeeper, jump: timedelta) -> None:
    keeper.told(NOON, machine.elapsed, SURE)
    machine.wall += jump
    assert keeper.now() == NOON


def test_a_reading_that_was_long_under_way_is_not_believed(machine: Machine, keeper: Timekeeper) -> None:
    keeper.told(NOON, machine.elapsed, SURE)
    keeper.told(NOON + timedelta(seconds=3), machine.elapsed, DOUBT * 2)
    assert keeper.now() == NOON


def test_unless_there_is_nothing_better(machine: Machine, keeper: Timekeeper) -> None:
    keeper.told(NOON + HOUR, machine.elapsed, DOUBT * 20)
    assert keeper.now() == NOON + HOUR, "the first"
    machine.pass_(STALE)
    keeper.told(NOON, machine.elapsed, DOUBT * 20)
    assert keeper.now() == NOON, "the last was long ago"


def test_it_follows_a_database_whose_clock_was_set_right(machine: Machine, keeper: Timekeeper) -> None:
    keeper.told(NOON, machine.elapsed, SURE)
    machine.pass_(5)
    keeper.told(NOON - HOUR, machine.elapsed, SURE)
    assert keeper.now() == NOON - HOUR


def test_a_machine_that_nearly_agrees_keeps_its_own_time(machine: Machine, keeper: Timekeeper) -> None:
    keeper.told(NOON + timedelta(milliseconds=40), machine.elapsed, SURE)
    assert keeper.now() == NOON


def test_a_few_milliseconds_do_not_make_it_jump(machine: Machine, keeper: Timekeeper) -> None:
    machine.wall += HOUR
    keeper.told(NOON, machine.elapsed, SURE)
    keeper.told(NOON + timedelta(milliseconds=9), machine.elapsed, SURE)
    assert keeper.now() == NOON
    keeper.told(NOON + timedelta(milliseconds=11), machine.elapsed, SURE)
    assert keeper.now() == NOON + timedelta(milliseconds=11)


def test_a_doubtful_reading_is_not_believed_after_good_ones_that_changed_nothing(
    machine: Machine, keeper: Timekeeper
) -> None:
    for _ in range(20):
        keeper.told(keeper.now(), machine.elapsed, SURE)
        machine.pass_(STALE / 4)
    before = keeper.now()
    keeper.told(before + timedelta(seconds=5), machine.elapsed, DOUBT * 20)
    assert keeper.now() == before
