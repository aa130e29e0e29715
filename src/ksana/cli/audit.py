"""`ksana audit`."""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ksana.cli.options import DEFAULTS, Options
from ksana.domain.errors import InvalidInput
from ksana.telemetry import configure_logging

if TYPE_CHECKING:
    from ksana.engine.audit import Report


def audit(
    *,
    since: Annotated[str | None, Parameter(name="--from", help="RFC 3339; a day ago if not given.")] = None,
    until: Annotated[str | None, Parameter(name="--to", help="RFC 3339; now if not given.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="Tell it as JSON.")] = False,
    options: Options = DEFAULTS,
) -> int:
    """Work out every planned instant anew and look for it in the ledger. Exit 1 if one is lost or was never planned."""
    from ksana.bootstrap import audit_store  # noqa: PLC0415 - as in `serve`
    from ksana.engine.clock import SystemClock  # noqa: PLC0415

    loaded, clock = options.load(), SystemClock()
    configure_logging(loaded.settings.logging.level, loaded.settings.logging.format)
    now = clock.now()
    begin = now - timedelta(days=1) if since is None else _instant(since, "--from")
    end = now if until is None else _instant(until, "--to")
    if end < begin:
        raise InvalidInput("--to", "is before --from")
    report = asyncio.run(audit_store(loaded, clock, begin, end))
    if report.since > begin:
        print(
            f"ksana: the ledger is kept since {report.since.isoformat()}: what was planned before is not judged",
            file=sys.stderr,
        )
    print(json.dumps(as_document(report)) if as_json else as_text(report))
    return 0 if report.tally.sound else 1


def _instant(text: str, flag: str) -> datetime:
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(flag, "must be a time such as 2026-01-31T12:00:00Z") from None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def as_document(report: "Report") -> dict[str, Any]:
    tally = report.tally
    return {
        "from": report.since.isoformat(),
        "to": report.until.isoformat(),
        "schedules": report.schedules,
        "planned": tally.planned,
        "ran": tally.ran,
        "skipped": dict(sorted(tally.skipped.items())),
        "missed": tally.missed,
        "waiting": tally.waiting,
        "dropped": tally.dropped,
        "lost": tally.lost,
        "unplanned": tally.unplanned,
        "findings": [
            {"schedule": each.key, "lost": each.lost, "unplanned": each.unplanned} for each in report.findings
        ],
    }


def as_text(report: "Report") -> str:
    told = as_document(report)
    lines = [f"{name:<10} {told[name]}" for name in ("from", "to", "schedules", "planned", "ran")]
    lines.append(f"{'skipped':<10} {sum(report.tally.skipped.values())}")
    lines += [f"  {reason:<24} {count}" for reason, count in sorted(report.tally.skipped.items())]
    lines += [f"{name:<10} {told[name]}" for name in ("missed", "waiting", "dropped", "lost", "unplanned")]
    lines += [
        f"  schedule {each.key}: {each.lost} lost, {each.unplanned} never planned" for each in report.findings[:100]
    ]
    return "\n".join(lines)
