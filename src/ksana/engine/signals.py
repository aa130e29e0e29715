"""What happened that a service would otherwise find out only at its next look. Hints: none may be needed.

What happens in this process, the services here hear at once, and other instances where the store can carry it to them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ksana.domain.ledger import Schedule

Listener = Callable[[], None]
EVERYTHING = "*"
"""Some hints may have been missed."""


class Hint(StrEnum):
    """What other instances are told: where to look, and no more."""

    WORK = "work"
    SCHEDULES = "schedules"
    CANCELED = "canceled"
    PLANS = "plans"
    LEADER = "leader"  # nobody leads


def _to_nobody(_: str) -> None:
    """There are no others."""


ScheduleListener = Callable[[Sequence[Schedule]], None]


@dataclass(slots=True)
class Signals:
    """Told by whoever changes something, heard by the services that it concerns."""

    _schedules: list[ScheduleListener] = field(default_factory=list)
    _work: list[Listener] = field(default_factory=list)
    _canceled: list[Callable[[int], None]] = field(default_factory=list)
    _plans: list[Listener] = field(default_factory=list)
    _shown: list[Listener] = field(default_factory=list)
    _heard: dict[Hint, Listener] = field(default_factory=dict)
    tell_others: Callable[[str], None] = _to_nobody

    def on_hint(self, hint: Hint, listener: Listener) -> None:
        """What to do when another instance tells this."""
        self._heard[hint] = listener

    def hear(self, hint: str) -> None:
        """Another instance tells this."""
        for each, listener in self._heard.items():
            if hint in {each, EVERYTHING}:
                listener()

    def on_schedules_changed(self, listener: ScheduleListener) -> None:
        self._schedules.append(listener)

    def on_work(self, listener: Listener) -> None:
        self._work.append(listener)

    def on_canceled(self, listener: Callable[[int], None]) -> None:
        self._canceled.append(listener)

    def on_plans(self, listener: Listener) -> None:
        self._plans.append(listener)

    def on_shown(self, listener: Listener) -> None:
        self._shown.append(listener)

    def schedules_changed(self, schedules: Sequence[Schedule]) -> None:
        """These were made, changed, paused or resumed. (Of one that was deleted, the store's fence tells.)"""
        for listener in self._schedules:
            listener(schedules)
        self.tell_others(Hint.SCHEDULES)

    def work_coming(self) -> None:
        """The store is about to be asked for something that may be claimed: said in the same breath, so that it is claimed in the
        same transaction, or in one after it. Others are told when it is there, by `work_came`."""
        for listener in self._work:
            listener()

    def work_came(self) -> None:
        """It is there, and may be claimed by others, too."""
        self.tell_others(Hint.WORK)

    def work(self) -> None:
        """Something may be claimed now that could not be before."""
        self.work_coming()
        self.work_came()

    def canceled(self, execution_id: int) -> None:
        """Whoever works on it should stop."""
        for listener in self._canceled:
            listener(execution_id)
        self.tell_others(Hint.CANCELED)

    def plans(self) -> None:
        """Something about a plan has changed, and may be followed by something else."""
        for listener in self._plans:
            listener()
        self.shown()
        self.tell_others(Hint.PLANS)

    def shown(self) -> None:
        """Something about a plan has changed that is shown outside."""
        for listener in self._shown:
            listener()
