"""What looking after runtime state has found, for metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ksana.runtime.base import Kind


@dataclass(slots=True)
class Findings:
    counts: Mapping[Kind, int] = field(default_factory=dict)
    """How much is shown, as last counted."""
    repaired: int = 0
    """Things that were not as they should be, in all."""
    leaked: int = 0
    """Locks of tasks that do not run, in all; and at the last count."""
    leaked_now: int = 0
    strangers: int = 0
    """Locks of tasks that Ksana does not know."""
