"""One client updates a value, and another follows it.

it is red
it is redder
"""

import sys

import paddock
from paddock.recipes import SharedValue


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client, paddock.connect(hosts) as other:
        color = SharedValue(client, "/app/color")
        await color.set(b"red")
        async for data in SharedValue(other, "/app/color").changes():
            print("it is", data.decode() if data is not None else "gone")
            if data == b"redder":
                break
            await color.update(lambda now: (now or b"") + b"der")


paddock.run(main(*sys.argv[1:]))
