"""Light functions: async ones that run on the event loop of the server itself."""

import asyncio
import traceback
from collections.abc import Mapping
from typing import Any

import orjson

from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidInput
from ksana.domain.outcome import Evidence, Failed, Outcome, Succeeded, TimedOut
from ksana.executors.base import AttemptLost, ExecutionContext
from ksana.executors.python_functions import Known
from ksana.executors.python_run import facts
from ksana.functions import Final, LightContext


async def run_light(context: ExecutionContext, known: Known, params: Mapping[str, Any], evidence: Evidence) -> Outcome:
    """Awaits the function. Raises nothing but the cancellation, which passes through the function."""
    deadline = asyncio.timeout(context.timeout.total_seconds())
    try:
        arguments = known.signature.converted(params)
        if known.signature.context is not None:
            arguments[known.signature.context] = LightContext(**facts(context), link=context.tools)
        async with deadline:
            returned = await known.function.call(**arguments)
        return _returned(returned, evidence)
    except InvalidInput as error:
        return Failed(error.message, retryable=False, evidence=evidence)
    except AttemptLost:
        return Failed("no longer ours", retryable=False, evidence=evidence)
    except Final as error:
        return Failed(str(error) or "Final", retryable=False, evidence=evidence)
    except Exception as error:  # noqa: BLE001 - a function may raise anything
        if isinstance(error, TimeoutError) and deadline.expired():
            return TimedOut(f"still running after {format_duration(context.timeout)}", evidence=evidence)
        context.tools.log("".join(traceback.format_exception(error)), "stderr")
        return Failed(f"{type(error).__name__}: {error}", evidence=evidence)


def _returned(value: Any, evidence: Evidence) -> Outcome:
    try:
        return Succeeded(orjson.loads(orjson.dumps(value)), evidence)
    except TypeError as error:
        return Failed(f"what the function returned is not JSON: {error}", retryable=False, evidence=evidence)
