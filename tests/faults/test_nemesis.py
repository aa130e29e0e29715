"""The plan of faults: the same for the same seed, of every kind, and never against all at once."""

import random

import pytest

from tests.faults.nemesis import CARDS, DATABASE, Strike, plan

SECONDS = 60.0


@pytest.mark.parametrize("seed", range(30))
def test_a_seed_is_a_plan_with_every_kind(seed: int) -> None:
    strikes = plan(random.Random(seed), SECONDS, 3)
    assert strikes == plan(random.Random(seed), SECONDS, 3)
    assert {strike.kind for strike in strikes} == set(CARDS)
    assert all(strike.at + strike.seconds <= SECONDS + 0.01 for strike in strikes)
    assert all(_others_down(strikes, strike) < 2 for strike in strikes if strike.victim != DATABASE)


def _others_down(strikes: list[Strike], strike: Strike) -> int:
    """How many other instances are down as this one is struck."""
    return sum(
        other.victim not in {DATABASE, strike.victim} and other.at <= strike.at < other.at + other.seconds
        for other in strikes
    )
