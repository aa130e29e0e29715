"""The functions that jobs may name: those of the modules in the settings, and no others (S30)."""

import importlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ksana.domain.errors import InvalidInput, InvalidSetting
from ksana.executors.python_signature import Signature
from ksana.functions import Function, registered
from ksana.settings.table import Settings


@dataclass(frozen=True, slots=True)
class PythonOptions:
    """Which functions there are, and how their processes are kept."""

    modules: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    """Where modules are looked for, after what is installed."""
    env: tuple[str, ...] = ()
    """Variables of the server that functions get, besides the usual."""
    idle: int = 4
    """Processes that are kept ready for the next attempt."""
    reuse: int = 500
    """Attempts after which a process is replaced: a bound for what its libraries leak."""


def python_options(settings: Settings) -> PythonOptions:
    """The options that these settings say."""
    executor = settings.executor
    return PythonOptions(executor.python_modules, executor.python_path, executor.child_env, executor.python_idle)


@dataclass(frozen=True, slots=True)
class Known:
    """A function that jobs may name."""

    function: Function
    signature: Signature


class Functions:
    """Functions by name."""

    def __init__(self, known: Mapping[str, Known]) -> None:
        self._known = known

    @classmethod
    def load(cls, modules: Iterable[str], path: Iterable[str]) -> "Functions":
        """Imports the modules. InvalidSetting if one cannot be, or has a function that no job could call."""
        sys.path += [directory for directory in path if directory not in sys.path]
        for module in modules:
            try:
                importlib.import_module(module)
            except Exception as error:
                told = f"{module} cannot be imported: {type(error).__name__}: {error}"
                raise InvalidSetting("executor.python_modules", told, source="settings") from error
        try:
            return cls({name: Known(found, Signature.of(found)) for name, found in registered().items()})
        except TypeError as error:
            raise InvalidSetting("executor.python_modules", str(error), source="settings") from error

    def get(self, name: object) -> Known:
        """InvalidInput, saying which there are, if there is none of that name."""
        found = self._known.get(name) if isinstance(name, str) else None
        if found is None:
            there = ", ".join(sorted(self._known)) or "none; the setting executor.python_modules names their modules"
            raise InvalidInput("function", f"no function of that name; there are: {there}")
        return found
