"""Libraries that others would load though nothing of theirs is used here."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def absent(name: str) -> Iterator[None]:
    """As if it were not installed, for whoever tries to import it meanwhile. Harmless if it is loaded already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # what the import system takes for "not there"
    try:
        yield
    finally:
        del sys.modules[name]
