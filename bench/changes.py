"""A lock that changes hands, and nodes that change so many times a second.

    python -m bench.changes PORT RATE

It says `changing` when the nodes are there, and goes on until it is terminated.
"""

import asyncio
import sys
from typing import Final

import paddock
from paddock.recipes import Lock

ROOT: Final = "/bench"
NODES: Final = 40
LOCKS: Final = 20
_STEP_S: Final = 0.05


async def main(port: str, rate: str) -> None:
    """Change nodes, and hand a lock over, until it is cancelled."""
    async with paddock.connect(f"127.0.0.1:{port}") as client:
        await client.create(ROOT, exist_ok=True)
        await client.create("/locks", exist_ok=True)
        paths = [f"{ROOT}/node-{number:02}" for number in range(NODES)]
        for path in paths:
            await client.create(path, exist_ok=True)
        for number in range(LOCKS):
            await Lock(client, f"/locks/held-{number:02}").acquire()
        print("changing", flush=True)
        step = 0
        while True:
            for _ in range(round(int(rate) * _STEP_S)):
                step += 1
                client.set(paths[step % NODES], b"%d" % step)
            async with Lock(client, "/locks/moving"):
                await asyncio.sleep(_STEP_S)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
