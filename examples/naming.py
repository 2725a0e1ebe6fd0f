"""Names that resolve, and unique numbers.

the printer is at 10.0.0.7
the printer is at 10.0.0.8
jobs 1 and 2
"""

import sys

import paddock
from paddock.recipes import Naming


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client:
        naming = Naming(client, "/naming")
        await naming.unbind("printer")
        await naming.bind("printer", b"10.0.0.7")
        print("the printer is at", (await naming.resolve("printer") or b"?").decode())
        await naming.rebind("printer", b"10.0.0.8")
        print("the printer is at", (await naming.resolve("printer") or b"?").decode())
        print("jobs", await naming.new_id(), "and", await naming.new_id())


paddock.run(main(*sys.argv[1:]))
