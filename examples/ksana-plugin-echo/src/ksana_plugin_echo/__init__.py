"""Jobs of the type `echo`: they say back what they are given. `{"type": "echo", "config": {"text": "hello"}}`"""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from ksana.domain.errors import InvalidInput
from ksana.domain.outcome import Outcome, Succeeded, TimedOut
from ksana.executors.base import ExecutionContext


class EchoExecutor:
    """What Ksana asks of an executor: a type, and these three methods (`ksana.executors.base.Executor`)."""

    type: ClassVar[str] = "echo"

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Called when a job is saved: the config with its defaults, or InvalidInput that names the wrong part."""
        if not isinstance(config.get("text"), str):
            raise InvalidInput("text", "must be a string")
        return {"text": config["text"], "seconds": float(config.get("seconds", 0))}

    async def execute(self, context: ExecutionContext) -> Outcome:
        """Called for each attempt. It keeps the deadline itself, raises nothing, and lets a cancellation pass."""
        config = context.job.spec.config
        try:
            async with asyncio.timeout(context.timeout.total_seconds()):
                await asyncio.sleep(config["seconds"])
        except TimeoutError:
            return TimedOut("it took too long to answer")
        context.tools.log(f"{config['text']}\n")
        return Succeeded({"text": config["text"], "attempt": context.execution.attempt})

    async def close(self) -> None:
        """Called once, at the end: connections would be closed here."""
