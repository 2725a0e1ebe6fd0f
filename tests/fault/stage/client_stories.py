"""What the stories of a client have in common: their table, and what is there when they begin."""

from __future__ import annotations

import asyncio

from paddock.client.client import Client
from tests.fault.stage.cutting import Story


class Stories(dict[str, Story]):
    """Stories by name."""

    def tell(self, play: Story) -> Story:
        """Take a story in, by the name of its function."""
        self[play.__name__.replace("_", " ")] = play
        return play


async def prepare(bystander: Client) -> None:
    # Together: they are carried out in their order.
    made = [bystander.create("/node", b"old"), bystander.create("/leaf", b"old")]
    paths = ["/node/child", "/box", "/tree", "/tree/1", "/tree/2"]
    paths += ["/tree/1/a", "/tree/1/b", "/tree/2/a", "/tree/2/b"]
    await asyncio.gather(*made, *(bystander.create(path) for path in paths))
