"""`ksana purge`."""

import asyncio
from typing import Annotated

from cyclopts import Parameter

from ksana.cli.options import DEFAULTS, Options
from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidInput
from ksana.telemetry import configure_logging


def purge(
    *,
    older_than: Annotated[
        str | None, Parameter(name="--older-than", help="As 30d or 12h; retention.max_age if not given.")
    ] = None,
    keep: Annotated[
        int | None, Parameter(name="--keep", help="Most runs to keep of each job; retention.max_runs if not given.")
    ] = None,
    options: Options = DEFAULTS,
) -> int:
    """Remove ended runs, ledger rows and events that have been kept long enough. An embedded database must not be served."""
    from ksana.bootstrap import purge_store  # noqa: PLC0415 - as in `serve`
    from ksana.engine.clock import SystemClock  # noqa: PLC0415
    from ksana.engine.upkeep import RetentionOptions  # noqa: PLC0415

    loaded = options.load()
    configure_logging(loaded.settings.logging.level, loaded.settings.logging.format)
    retention = loaded.settings.retention
    if keep is not None and keep < 0:
        raise InvalidInput("--keep", "must not be negative")
    age = retention.max_age if older_than is None else parse_duration(older_than, field="--older-than")
    wanted = RetentionOptions(max_age=age, max_runs=retention.max_runs if keep is None else keep)
    purged = asyncio.run(purge_store(loaded, SystemClock(), wanted))
    print(
        f"removed {purged.runs} runs, {purged.instants} ledger rows, {purged.events} events, {purged.instances} instances"
    )
    return 0
