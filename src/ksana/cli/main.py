"""The entry point: runs a command, and turns every expected error into one line and an exit code."""

import os
import sys
from collections.abc import Sequence

from ksana import __version__
from ksana.cli.ending import FAILED, INTERRUPTED, USAGE, Refusal, tell
from ksana.domain.errors import InvalidInput, KsanaError


def main() -> None:
    """`ksana …`: ends the process with the command's exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """The exit code: 0 done, 1 it could not be done, 2 the command line or a setting is wrong, 3 Ksana cannot be reached."""
    if list(arguments) == ["--version"]:  # before anything else is imported: scripts ask this often
        print(f"ksana {__version__}")
        return 0
    try:
        return _dispatch(arguments)
    except KsanaError as error:
        tell(error.message)
        return USAGE if isinstance(error, InvalidInput) else FAILED
    except Refusal as refusal:
        tell(refusal.message)
        return refusal.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; without this, Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _dispatch(arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError  # noqa: PLC0415 - it and rich take longer to import than all of `--version`

    from ksana.cli.app import app  # noqa: PLC0415

    try:
        result = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        tell(f"{str(error).strip()} See `ksana --help`.")
        return USAGE
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    main()
