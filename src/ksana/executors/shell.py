"""The executor that runs a command of this machine. Its rules are S5, S6 and S27; the guide is `docs/guides/executors.md`."""

import asyncio
import signal
from collections.abc import Mapping
from typing import Any, ClassVar

from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidInput
from ksana.domain.outcome import Evidence, Failed, Outcome, Succeeded, TimedOut
from ksana.executors.base import AttemptLost, ExecutionContext
from ksana.executors.shell_config import ShellTarget, checked_config
from ksana.executors.shell_files import ARTIFACT, Unusable, parsed
from ksana.executors.shell_options import ShellOptions
from ksana.executors.shell_run import ShellRun
from ksana.executors.templates_filters import TemplateFailed
from ksana.telemetry import log


class ShellExecutor:
    """Runs one command an attempt. Exit code 0 succeeds; every other, and every signal, may be tried again."""

    type: ClassVar[str] = "shell"

    def __init__(self, options: ShellOptions | None = None) -> None:
        self._options = options or ShellOptions()
        self._closing: set[asyncio.Task[None]] = set()

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config of a job with its defaults filled in. InvalidInput names the part that is wrong, as in `cmd`."""
        return checked_config(config, self._options)

    async def execute(self, context: ExecutionContext) -> Outcome:
        """Runs the command. Raises nothing; if it is cancelled, all its processes are ended and the cancellation passes."""
        try:
            # Once more: what the server allows may have changed since the job was saved.
            target = ShellTarget.of(checked_config(context.job.spec.config, self._options))
            run = ShellRun(context, target, self._options)
        except InvalidInput as error:
            return Failed(error.message, retryable=False)
        except TemplateFailed as error:
            return Failed(str(error), retryable=False)
        except OSError as error:
            return Failed(f"the command could not be started: {(error.strerror or 'unknown').lower()}")
        try:
            return await self._run(context, run)
        finally:
            await self._closed(run)

    async def close(self) -> None:
        """Waits for commands that are being ended. Harmless if none ran."""
        await asyncio.gather(*self._closing)

    async def _run(self, context: ExecutionContext, run: ShellRun) -> Outcome:
        try:
            async with asyncio.timeout(context.timeout.total_seconds()):
                await run.start()
                await run.until_it_ends()
            return settled(run)
        except TimeoutError:
            await run.stop()
            return TimedOut(f"still running after {format_duration(context.timeout)}", evidence=evidence(run))
        except AttemptLost:
            return Failed("no longer ours", retryable=False, evidence=evidence(run))
        except OSError as error:
            return Failed(f"the command could not be started: {(error.strerror or 'unknown').lower()}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the attempt must end with an outcome
            run_id = context.execution.id
            log().error("a command failed unexpectedly", action="shell.unexpected", run_id=run_id, exc_info=error)
            return Failed("the command failed unexpectedly: see the log", evidence=evidence(run))

    async def _closed(self, run: ShellRun) -> None:
        """A task of its own, so that a second cancellation cuts the waiting short, but not the cleaning up."""
        task = asyncio.create_task(run.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        await asyncio.shield(task)


def settled(run: ShellRun) -> Outcome:
    """The outcome of a command that ended by itself."""
    code = run.exit_code() or 0
    if code != 0:
        last = run.output.last_error()
        return Failed(_ending(code) + (f": {last}" if last else ""), evidence=evidence(run))
    try:
        written = run.files.read(ARTIFACT)
        if written is not None:
            return Succeeded(parsed(ARTIFACT, written), evidence(run))
    except Unusable as error:
        return Failed(f"the command ended well, but {error}", retryable=False, evidence=evidence(run))
    return Succeeded({"exitCode": 0, "stdout": run.output.stdout.text()}, evidence(run))


def evidence(run: ShellRun) -> Evidence:
    """The command, the names of its variables but not their values, how it ended, and the end of what it wrote."""
    code = run.exit_code()
    return Evidence(
        request={"cmd": run.target.cmd, "env": sorted(run.target.env), "cwd": run.target.cwd},
        response_headers={} if code is None else {"exit-code": str(code)},
        response_body=run.output.both.text(),
    )


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"killed by signal {-code}"
