"""What an overview makes of what the store tells."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ksana.domain.instance import Instance, InstanceStatus
from ksana.engine.overview import InstancesNow, QueueNow, Step, instances_now, percentile, queues_now, steps_of
from ksana.store.console_requests import HistoryCell, QueueFigures

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
LIVING = Instance("a", "a", "0", InstanceStatus.ALIVE, NOW, NOW, NOW + SECOND, queues=("default", "gpu"), places=4)


@pytest.mark.parametrize(
    ("counted", "percent", "expected"),
    [
        ([], 50, None),
        ([(7, 1)], 99, 7),
        ([(1, 1), (2, 1)], 50, 1),
        ([(0, 98), (5, 1), (9, 1)], 99, 5),
        ([(0, 99), (9, 2)], 99, 9),
    ],
)
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(
    counted: list[tuple[int, int]], percent: int, expected: int | None
) -> None:
    assert percentile(counted, percent) == expected


def test_queues_have_the_places_of_all_that_serve_them_or_none() -> None:
    other = replace(LIVING, id="b", queues=("default",), places=2)
    found = queues_now([QueueFigures("default", 1, 2), QueueFigures("nobody", 3, 0)], [LIVING, other])
    assert found == [QueueNow("default", 1, 2, 6), QueueNow("gpu", 0, 0, 4), QueueNow("nobody", 3, 0, 0)]


def test_an_instance_is_lost_for_an_hour_unless_it_left() -> None:
    silent = replace(LIVING, expires_at=NOW - SECOND, heartbeat_at=NOW - MINUTE)
    dead = replace(silent, status=InstanceStatus.DEAD)
    left = replace(silent, status=InstanceStatus.LEFT)
    long_gone = replace(dead, heartbeat_at=NOW - timedelta(hours=2))
    assert instances_now([LIVING, silent, dead, left, long_gone], NOW, "a") == InstancesNow(1, 2, "a")


def test_steps_without_an_end_are_there_too() -> None:
    cells = [HistoryCell(NOW, True, 3, 2), HistoryCell(NOW, False, None, 1), HistoryCell(NOW, True, 20, 1)]
    nothing = Step(NOW - MINUTE, 0, 0, None, None)
    assert steps_of(cells, NOW - MINUTE, NOW + SECOND, MINUTE) == [nothing, Step(NOW, 3, 1, 3, 20)]
