"""Functions for `python` jobs.

KSANA_EXECUTOR_PYTHON_MODULES=reports KSANA_EXECUTOR_PYTHON_PATH=$PWD/examples/functions make run
"""
# ruff: noqa: INP001 - a module by itself, found through executor.python_path

from datetime import date

from ksana.functions import Final, LightContext, NodeContext, function


@function("greet")
def greet(name: str, times: int = 1) -> dict[str, str]:
    """`{"function": "greet", "params": {"name": "Ada", "times": 2}}`"""
    return {"text": " ".join([f"Hello, {name}!"] * times)}


@function("sum-orders")
def sum_orders(context: NodeContext, day: date, orders: list[int]) -> dict[str, object]:
    """Goes on where an earlier attempt left off, and stops when it is asked to."""
    done = context.checkpoint or {"count": 0, "total": 0}
    for amount in orders[done["count"] :]:
        if context.cancelled:
            raise InterruptedError("asked to stop")
        if amount < 0:
            raise Final(f"an order of {amount}: trying again will not help")
        done = {"count": done["count"] + 1, "total": done["total"] + amount}
        context.save_checkpoint(done)
        context.log(f"{done['count']} of {len(orders)}")
    return {"day": day, "total": done["total"]}


@function("heartbeat", light=True)
async def heartbeat(context: LightContext) -> None:
    """Runs inside the server, without a process of its own: for what only waits, and never blocks."""
    context.log(f"attempt {context.attempt} of {context.job}")
