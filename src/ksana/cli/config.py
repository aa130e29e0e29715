"""`ksana config show`."""

import json as encoder
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from ksana.cli.ending import tell
from ksana.cli.options import DEFAULTS, SERVE_DEFAULTS, Options, ServeOptions
from ksana.settings.loading import Shown


def show(
    *,
    serving: ServeOptions = SERVE_DEFAULTS,
    json: Annotated[bool, Parameter(negative="", help="As JSON, for programs.")] = False,
    options: Options = DEFAULTS,
) -> int:
    """Print every setting and where it came from. Passwords are masked."""
    loaded = options.load(**asdict(serving))
    for note in loaded.notes:
        tell(note)
    if json:
        print(encoder.dumps({row.path: {"value": row.value, "source": row.source} for row in loaded.shown()}, indent=2))
    else:
        _print_table(loaded.shown())
    return 0


def _print_table(rows: Sequence[Shown]) -> None:
    from rich.console import Console  # noqa: PLC0415 - not needed for --json
    from rich.table import Table  # noqa: PLC0415

    if not sys.stdout.isatty():
        width = max(len(row.path) for row in rows)
        print("\n".join(f"{row.path:<{width}}  {row.value or '-'}  ({row.source})" for row in rows))
        return
    table = Table("setting", "value", "from", box=None, highlight=False)
    for row in rows:
        table.add_row(row.path, row.value or "-", row.source, style=None if row.source == "default" else "bold")
    Console(markup=False).print(table)
