"""`ksana doctor`."""

import asyncio

from ksana.cli.options import DEFAULTS, Options
from ksana.telemetry import configure_logging


def doctor(*, options: Options = DEFAULTS) -> int:
    """Check the database and how it is set up. Changes nothing; exit 1 if a check fails."""
    from ksana.bootstrap import examine  # noqa: PLC0415 - as in `serve`
    from ksana.engine.clock import SystemClock  # noqa: PLC0415

    loaded = options.load()
    configure_logging(loaded.settings.logging.level, loaded.settings.logging.format)
    findings = asyncio.run(examine(loaded, SystemClock()))
    for finding in findings:
        print(f"{finding.level:<4}  {finding.name:<12}  {' '.join(finding.message.split())}")
    return 1 if any(finding.level == "fail" for finding in findings) else 0
