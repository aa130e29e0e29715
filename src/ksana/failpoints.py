"""Places where a test can make a process die, stop, wait or fail: always compiled in, armed only by the environment.

`KSANA_FAILPOINT=name:hit:action` (several with commas) does `action` when the place `name` is passed for the `hit`th time;
`*` is any place, each passing counted. Actions: `kill` (as kill -9), `stop` (as SIGSTOP), `raise`, `sleep` (30 s), or
`count`, which does nothing but write each passing's name to the file `KSANA_FAILPOINT_LOG`: so a first run lists all N, and
N further runs kill at each of them. Not armed, passing one costs a comparison.
"""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

VARIABLE = "KSANA_FAILPOINT"
LOG_VARIABLE = "KSANA_FAILPOINT_LOG"
ANY = "*"
SLEEP_SECONDS = 30.0

PLACES = frozenset(
    {
        "commit.before",
        "commit.after",
        "send.before",
        "send.after",
        "spawn.before",
        "spawn.after",
        "callback.before",
        "callback.after",
        "lock.taken",
        "lock.released",
        "rename.before",
        "rename.after",
    }
)
ACTIONS = frozenset({"kill", "stop", "raise", "sleep", "count"})


class Failpoint(RuntimeError):
    """What `raise` raises, where the place has nothing more fitting."""


@dataclass(frozen=True, slots=True)
class Order:
    place: str
    hit: int
    action: str


class Armed:
    """The orders of one process, and how often each place has been passed."""

    def __init__(self, orders: list[Order], log: str | None) -> None:
        self._orders = orders
        self._log = log
        self._passed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def passing(self, place: str) -> str | None:
        """What is to be done now, if anything."""
        with self._lock:
            self._passed[place] += 1
            self._passed[ANY] += 1
            due = [each.action for each in self._orders if self._is_due(each, place)]
            if "count" in due and self._log is not None:
                self._write(place)
        return next((action for action in due if action != "count"), None)

    def _is_due(self, order: Order, place: str) -> bool:
        if order.place not in {place, ANY}:
            return False
        return order.action == "count" or self._passed[order.place] == order.hit

    def _write(self, place: str) -> None:
        file = os.open(self._log or os.devnull, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{place}\n".encode())
        finally:
            os.close(file)


_armed: Armed | None = None


def arm(environ: Mapping[str, str]) -> None:
    """What the environment asks for, from now on in this process. ValueError if it cannot be read."""
    global _armed  # noqa: PLW0603 - one process, one set of orders
    text = environ.get(VARIABLE, "")
    orders = [_order(part) for part in text.split(",") if part]
    _armed = Armed(orders, environ.get(LOG_VARIABLE)) if orders else None


def _order(text: str) -> Order:
    place, hit, action = [*text.split(":"), "", ""][:3]
    if place not in PLACES | {ANY} or action not in ACTIONS or not hit.isdigit():
        raise ValueError(f"{VARIABLE}={text}: not name:hit:action with a name of {sorted(PLACES)}")
    return Order(place, int(hit), action)


def reach(place: str, error: Callable[[], BaseException] = Failpoint) -> None:
    """This place is passed. Does what was asked for it, if anything; `error` is what `raise` raises here."""
    if _armed is None:
        return
    match _armed.passing(place):
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "sleep":
            time.sleep(SLEEP_SECONDS)
        case "raise":
            raise error()
