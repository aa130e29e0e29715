"""Values that are made for every run: immutable by the type checker's word, not by a check each time one is made."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """As `@dataclass(frozen=True, slots=True)`: equal and hashed by its fields, unless it says itself how it is hashed, and nobody
    may set one (mypy refuses it).

    A frozen dataclass sets each field past its own guard, so that one of 22 fields takes three times as long to make. A run
    makes about twenty values, together more than a tenth of its time in the event loop.
    """
    return dataclass(slots=True, unsafe_hash=vars(cls).get("__hash__") is None)(cls)
