"""How unkind a world is: each has its own, so that some are almost quiet and in others nothing works for long."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Mood:
    refused: float = 0.01
    """How often a request is not applied."""
    unheard: float = 0.01
    """How often it is applied, and its answer is lost."""
    slow: float = 0.02
    """How often it, or its answer, takes long."""
    faults: float = 0.008
    """How often something happens to a process, or is asked of one, in a step."""
    carries_hints: bool = True
    """Whether this database can wake other instances."""

    @classmethod
    def chosen_by(cls, random: Random) -> "Mood":
        return cls(
            refused=random.choice((0.0, 0.01, 0.05)),
            unheard=random.choice((0.0, 0.01, 0.05)),
            slow=random.choice((0.0, 0.02, 0.1)),
            faults=random.choice((0.003, 0.008, 0.02)),
            carries_hints=random.random() < 0.8,
        )
