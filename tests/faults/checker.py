"""Judges a history: every instant that was due is executed, recorded as missed, or LOST; every run is due, asked for, or a PHANTOM.

Works on values alone, so that its own tests can plant each kind of mistake and see it found.
"""

import statistics
from collections.abc import Sequence

from tests.faults import invariants, liveness
from tests.faults.history import History, Verdict
from tests.faults.matching import Exact, Fire, Limits, due, match_blindly, match_exactly

SHOWN = 5
"""Examples of a violation."""
TAKEOVER_SLACK = 1.0
"""Seconds for the target to see what the other instance began."""


def check(history: History, limits: Limits | None = None) -> Verdict:
    limits = limits or Limits()
    verdict = Verdict()
    targets = due(history, limits)
    exact = match_exactly(history, targets)
    _targets(verdict, history, exact, limits)
    _runs(verdict, history, exact)
    _rows(verdict, history)
    _life(verdict, history, limits)
    verdict.targets = [(*fire, _fate(fire, exact)) for fire in sorted(targets.required)]
    return verdict


def _fate(fire: Fire, exact: Exact) -> str:
    return "LOST" if fire in exact.lost else "missed" if fire in exact.missed else "executed"


def _targets(verdict: Verdict, history: History, exact: Exact, limits: Limits) -> None:
    number = len(exact.executed) + len(exact.missed) + len(exact.lost)
    verdict.figures |= {"n": number, "lost": len(exact.lost), "missed": len(exact.missed)}
    _forbid(verdict, "I1: lost", sorted(exact.lost))
    blind = match_blindly(history, exact.executed, limits)
    verdict.figures["not_in_their_time"] = len(blind)
    _forbid(verdict, "I1: no run in its time, whatever the headers say", sorted(blind))


def _runs(verdict: Verdict, history: History, exact: Exact) -> None:
    twice = invariants.duplicated(history)
    excess = invariants.excess_attempts(history)
    plain, zombies = invariants.overlaps(history)
    verdict.figures |= {
        "hits": len(history.hits),
        "phantoms": len(exact.phantoms),
        "duplicated": len(twice),
        "excess_attempts": sum(excess.values()),
        "overlaps": plain,
        "zombie_overlaps": zombies,
    }
    _forbid(verdict, "I2: fired twice", sorted(twice))
    _forbid(verdict, "I2: phantom", [(hit.schedule, hit.planned, hit.run) for hit in exact.phantoms])
    _forbid(verdict, "I3: attempts that nothing explains", sorted(excess.items()))
    verdict.require(plain == 0, f"I5: {plain} attempts beyond the limit of their schedule")


def _rows(verdict: Verdict, history: History) -> None:
    stale, stuck, gone = (
        invariants.stale_writes(history),
        invariants.stuck(history),
        invariants.acknowledged_lost(history),
    )
    forged, double = invariants.callbacks(history)
    verdict.figures |= {
        "stale_writes": len(stale),
        "acknowledged_lost": len(gone),
        "forged": forged,
        "double_callbacks": double,
        "stuck": len(stuck),
        "orphans": len(history.orphans),
    }
    _forbid(verdict, "I4: stale writes", stale)
    _forbid(verdict, "I6: acknowledged, and not there", gone)
    verdict.require(forged == double == 0, f"I10: {forged} runs ended by a callback that nobody made, {double} by two")
    _forbid(verdict, "I12: runs of instances that are no more", [(row.id, row.schedule) for row in stuck])
    _forbid(verdict, "I12: processes that outlived their instance", history.orphans)


def _life(verdict: Verdict, history: History, limits: Limits) -> None:
    taken, back, late = liveness.takeovers(history), liveness.recoveries(history, limits), liveness.latenesses(history)
    verdict.figures |= {
        "takeovers": len(taken),
        "takeover_p50": _middle(taken),
        "takeover_max": max(taken, default=None),
        "recovery_p50": _middle(back),
        "recovery_max": max(back, default=None),
        "late_p50": _middle(late),
        "late_p99": late[int(len(late) * 0.99)] if late else None,
        "late_max": late[-1] if late else None,
        "machine_stall": round(history.stall, 3),
        "machine_slowness": round(history.slowness, 1),
        "faults": len(history.bands),
        "shares": {name: round(share, 3) for name, share in liveness.shares(history).items()},
    }
    most = limits.takeover + TAKEOVER_SLACK * history.slowness + 3 * history.stall
    slow = [round(seconds, 1) for seconds in taken if seconds > most]
    _forbid(verdict, f"I11: taken over later than {limits.takeover:g} s", slow)


def _middle(figures: Sequence[float]) -> float | None:
    return statistics.median(figures) if figures else None


def _forbid(verdict: Verdict, what: str, found: Sequence[object]) -> None:
    verdict.require(not found, f"{what}: {len(found)}, as {list(found[:SHOWN])}")
