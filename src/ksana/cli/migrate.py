"""`ksana migrate`."""

from typing import Annotated

from cyclopts import Parameter

from ksana.cli.options import DEFAULTS, Options
from ksana.settings import Settings, endpoint
from ksana.telemetry import configure_logging


def migrate(
    *,
    check: Annotated[bool, Parameter(negative="", help="Only tell; exit 1 if there is something to do.")] = False,
    options: Options = DEFAULTS,
) -> int:
    """Bring the database's schema to this version."""
    from ksana.bootstrap import migrate_schema  # noqa: PLC0415 - as in `serve`

    loaded = options.load()
    configure_logging(loaded.settings.logging.level, loaded.settings.logging.format)
    if check:
        return _check(loaded.settings)
    before, now = migrate_schema(loaded)
    moved = f"already at {now}" if before == now else f"{before or 'nothing'} → {now}"
    print(f"schema of {endpoint(loaded.settings.database.url)}: {moved}")
    return 0


def _check(settings: Settings) -> int:
    from ksana.bootstrap import check_schema  # noqa: PLC0415

    found = check_schema(settings)
    print(f"schema of {endpoint(settings.database.url)}: {found.message}")
    return 0 if found.level == "ok" else 1
