"""The executor that calls a Python function, in a process of its own. The guide is `docs/guides/executors.md`."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidInput
from ksana.domain.outcome import Evidence, Failed, Outcome, Succeeded, TimedOut
from ksana.executors.base import AttemptLost, ExecutionContext
from ksana.executors.python_config import checked_config, filled_params
from ksana.executors.python_functions import Functions, PythonOptions
from ksana.executors.python_light import run_light
from ksana.executors.python_pool import Pool
from ksana.executors.python_process import WorkerDied
from ksana.executors.python_run import PythonRun, facts
from ksana.executors.shell_env import as_json, variables
from ksana.executors.shell_output import KEPT_BYTES
from ksana.executors.templates_filters import TemplateFailed
from ksana.telemetry import log


class PythonExecutor:
    """Calls one function an attempt. What it returns is the output; what it raises may be tried again, unless it is Final."""

    type: ClassVar[str] = "python"

    def __init__(self, options: PythonOptions | None = None) -> None:
        """Imports the modules, to know their functions. InvalidSetting if that fails."""
        self._options = options or PythonOptions()
        self._functions = Functions.load(self._options.modules, self._options.path)
        self._pool = Pool(self._options)
        self._closing: set[asyncio.Task[None]] = set()

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config of a job with its defaults filled in. InvalidInput names the part that is wrong, as in `params.day`."""
        return checked_config(config, self._functions)

    async def execute(self, context: ExecutionContext) -> Outcome:
        """Calls the function. Raises nothing; if it is cancelled, its processes are ended and the cancellation passes."""
        config = context.job.spec.config
        try:
            known = self._functions.get(config.get("function"))
            params = filled_params(config.get("params") or {}, variables(context))
        except InvalidInput as error:
            return Failed(error.message, retryable=False)
        except TemplateFailed as error:
            return Failed(str(error), retryable=False)
        evidence = Evidence(request={"function": known.function.name}, request_body=as_json(params)[:KEPT_BYTES])
        if known.function.light:
            return await run_light(context, known, params, evidence)
        order = {"function": known.function.name, "params": params, "context": facts(context)}
        run = PythonRun(self._pool, context.tools, order)
        try:
            return await self._run(context, run, evidence)
        finally:
            await self._closed(run)

    async def close(self) -> None:
        """Ends the processes that are ready, and waits for those that are being ended. Harmless if none ran."""
        await self._pool.close()
        await asyncio.gather(*self._closing)

    async def _run(self, context: ExecutionContext, run: PythonRun, evidence: Evidence) -> Outcome:
        try:
            async with asyncio.timeout(context.timeout.total_seconds()):
                refusal = await _begun(run)
                if refusal is not None:
                    return Failed(refusal, evidence=evidence)
                return _settled(await run.until_it_ends(), _with_output(evidence, run))
        except TimeoutError:
            await run.stop()
            told = f"still running after {format_duration(context.timeout)}"
            return TimedOut(told, evidence=_with_output(evidence, run))
        except WorkerDied as error:
            return Failed(f"the function's process died: {error}", evidence=_with_output(evidence, run))
        except AttemptLost:
            return Failed("no longer ours", retryable=False, evidence=_with_output(evidence, run))
        except Exception as error:  # noqa: BLE001 - whatever it is, the attempt must end with an outcome
            run_id = context.execution.id
            log().error("a function failed unexpectedly", action="python.unexpected", run_id=run_id, exc_info=error)
            return Failed("the function failed unexpectedly: see the log", evidence=evidence)

    async def _closed(self, run: PythonRun) -> None:
        """A task of its own, so that a second cancellation cuts the waiting short, but not the cleaning up."""
        task = asyncio.create_task(run.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        await asyncio.shield(task)


async def _begun(run: PythonRun) -> str | None:
    """Why there is no process for it; None if it has begun."""
    try:
        await run.begin()
    except WorkerDied as error:
        return f"the functions could not be loaded: {error}"
    except OSError as error:
        return f"no process could be started: {(error.strerror or 'unknown').lower()}"
    return None


def _settled(ended: Mapping[str, Any], evidence: Evidence) -> Outcome:
    if "error" in ended:
        return Failed(str(ended["error"]), retryable=not ended["final"], evidence=evidence)
    return Succeeded(ended["output"], evidence)


def _with_output(evidence: Evidence, run: PythonRun) -> Evidence:
    return Evidence(evidence.request, evidence.request_body, response_body=run.output.both.text())
