"""DBOS: layers and chains of steps in workflows, in one process. Needs dbos."""

import asyncio
import sys
import time

from dbos import DBOS

from bench.peers.telling import DATABASE, numbers, often, tell


@DBOS.step()
async def nothing(number: int) -> int:
    return number


@DBOS.workflow()
async def layered(layers: int, width: int) -> None:
    for _ in range(layers):
        await asyncio.gather(*(nothing(number) for number in range(width)))


@DBOS.workflow()
async def chained(length: int) -> None:
    for number in range(length):
        await nothing(number)


async def layers(count: int, width: int) -> int:
    await (await DBOS.start_workflow_async(layered, count, width)).get_result()
    return count * width


async def chains(count: int, length: int) -> int:
    started = [await DBOS.start_workflow_async(chained, length) for _ in range(count)]
    for each in started:
        await each.get_result()
    return count * length


async def main() -> None:
    DBOS(config={"name": "bench", "system_database_url": DATABASE, "log_level": "ERROR"})
    DBOS.launch()
    work = {"layers": layers, "chains": chains}[sys.argv[1]]
    first, second = numbers()
    times = often(first * second)
    for _ in range(times):
        await work(first, second)
    began = time.perf_counter()
    nodes = [await work(first, second) for _ in range(times)]
    tell(sum(nodes), time.perf_counter() - began)
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main())
