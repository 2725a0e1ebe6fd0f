"""Three workers begin together and end together.

came came came began began began left left left"""

import asyncio
import sys

import paddock
from paddock.recipes import DoubleBarrier


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async def work() -> None:
        steps.append("came")
        async with DoubleBarrier(client, "/step", 3):
            steps.append("began")
        steps.append("left")

    steps: list[str] = []
    async with paddock.connect(hosts) as client:
        await asyncio.gather(work(), work(), work())
    print(*steps)


paddock.run(main(*sys.argv[1:]))
