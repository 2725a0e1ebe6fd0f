"""Three candidates: the first leads, and when it resigns, the next one leads.

alice, bob, carol
bob, carol, alice
"""

import sys

import paddock
from paddock.recipes import Election


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client:
        elections = [Election(client, "/vote", data=one) for one in (b"alice", b"bob", b"carol")]
        for election in elections:
            await election.start()
        for election in elections[:2]:
            await election.wait_leader()
            print(b", ".join(one.data for one in await election.candidates()).decode())
            await election.step_down()


paddock.run(main(*sys.argv[1:]))
