"""Two instances of a service register; a client finds them, and uses them in turn.

search-1 at 10.0.0.1:8080
search-2 at 10.0.0.2:8080
search-1 at 10.0.0.1:8080
"""

import sys

import paddock
from paddock.recipes import Choice, ServiceInstance, ServiceProvider, ServiceRegistry


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with paddock.connect(hosts) as client, ServiceRegistry(client, "/services") as registry:
        for number in 1, 2:
            address = f"10.0.0.{number}"
            await registry.register(ServiceInstance("search", f"search-{number}", address, 8080))
        async with ServiceProvider(registry, "search", Choice.ROUND_ROBIN) as provider:
            for one in [provider.choose() for _ in range(3)]:
                print(f"{one.id} at {one.address}:{one.port}" if one else "nobody is there")


paddock.run(main(*sys.argv[1:]))
