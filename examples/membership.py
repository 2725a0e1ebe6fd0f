"""Workers join and leave a group, and another client follows its members.

present worker 1
joined worker 2
left worker 2
"""

import sys

import paddock
from paddock.recipes import Membership


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client:
        one, two = Membership(client, "/workers"), Membership(client, "/workers")
        await one.join("worker 1")
        events = one.events()
        for step in (two.join("worker 2"), two.leave(), one.leave()):
            print((event := await anext(events)).change, event.member.name)
            await step


paddock.run(main(*sys.argv[1:]))
