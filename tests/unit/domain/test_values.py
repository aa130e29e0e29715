"""Values are compared and hashed by what they hold, and hold nothing else. That nobody sets a field, mypy sees to."""

from dataclasses import field, replace

import pytest

from ksana.domain.execution import Claim
from ksana.domain.values import immutable


@immutable
class Point:
    x: int
    y: int = 0
    name: str = field(default="", compare=False)


def test_those_that_hold_the_same_are_the_same() -> None:
    assert Point(1, 2, "here") == Point(1, 2, "there")
    assert {Point(1, 2): "found"}[Point(1, 2)] == "found"
    assert Point(1, 2) != Point(2, 1)


def test_another_is_made_of_one() -> None:
    assert replace(Point(1, 2), y=3) == Point(1, 3)


def test_it_has_no_room_for_anything_else() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]


def test_a_claim_is_the_same_whether_or_not_its_run_is_known() -> None:
    assert {Claim(1, 7, workflow_run_id=3), Claim(1, 7)} == {Claim(1, 7)}
