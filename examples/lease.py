"""A lease that is not renewed passes to the next contender, although its holder is alive.

the first one has it
the first one has lost it: True
the second one has it
"""

import sys

import paddock
from paddock.recipes import Lease


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as one, paddock.connect(hosts) as two:
        grant = await Lease(one, "/leases/report", seconds=0.5).acquire()
        print("the first one has it")
        async with Lease(two, "/leases/report", seconds=60):
            print("the first one has lost it:", not grant.is_held)
            print("the second one has it")


paddock.run(main(*sys.argv[1:]))
