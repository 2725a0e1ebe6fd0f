"""A writer holds the catalogue alone, then downgrades to a reader, beside another reader.

another reader has to wait
both read b'first edition'
"""

import sys

import paddock
from paddock.recipes import ReadWriteLock


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client:
        one, two = (ReadWriteLock(client, "/locks/catalogue") for _ in range(2))
        await client.create("/catalogue", exist_ok=True)
        async with one.write as writing, one.read:
            await writing.guard().set("/catalogue", b"first edition").commit()
            print("another reader has to wait" if await two.read.try_acquire() is None else "")
            await writing.release()
            async with two.read:
                print("both read", (await client.get("/catalogue")).data)


paddock.run(main(*sys.argv[1:]))
