"""Configuration that is pushed when it changes.

it is {'size': 10}
it is {'size': 20}
"""

import sys

import paddock
from paddock.recipes import Configuration


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client:
        async with Configuration(client, "/limits", dict, default={"size": 10}) as limits:
            async for value in limits.changes():
                print("it is", value)
                if value["size"] == 20:
                    break
                await limits.set({"size": 20})


paddock.run(main(*sys.argv[1:]))
