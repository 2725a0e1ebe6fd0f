"""The nodes of a benchmark, below one folder, and their removal.

If we are killed, nearly everything goes by itself: the nodes that are read and written are
ephemeral, and the folders are containers. Only what a create has made stays. Nothing is removed
where the data of the folder are not our mark.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import click

from paddock.cli.output import CannotBeDone, line_about
from paddock.client.client import Client
from paddock.client.time_limits import limited
from paddock.errors import (
    NodeExistsError,
    NoNodeError,
    PaddockError,
    RequestError,
    UnimplementedError,
)

CHILDREN: Final = 100

# After this time we say what is left, and go.
_REMOVAL_S: Final = 120.0


class _Refused(CannotBeDone):
    """The folder cannot be made there."""


class Site:
    """Where everything is."""

    def __init__(self, path: str, mark: bytes) -> None:
        self.path = path
        self._mark = mark
        # What is read and written, what has children, and what is watched.
        self.node = f"{path}/node"
        self.parent = f"{path}/parent"
        self.watched = f"{path}/watched"
        # Where nodes are created, and where contenders for a lock are.
        self.created = f"{path}/created"
        self.lock = f"{path}/lock"

    async def make(self, client: Client) -> None:
        """Make the folder; raises _Refused, in words, if that is not possible."""
        try:
            await self._make_folder(client, self.path, self._mark)
        except NodeExistsError:
            raise _Refused(
                f"{self.path}: is there already, and a path of its own is needed"
            ) from None
        except NoNodeError:
            raise _Refused(f"{self.path}: there is no node above it to make it in") from None
        except RequestError as error:
            raise _Refused(line_about(error)) from None

    async def furnish(self, client: Client, data: bytes) -> None:
        """Make what is in it."""
        for folder in (self.parent, self.created):
            await self._make_folder(client, folder, b"")
        ephemerals = [
            client.create(self.node, data, ephemeral=True),
            client.create(self.watched, data, ephemeral=True),
            # A container that was used and is empty may be removed under our feet.
            client.create(f"{self.created}/kept", ephemeral=True),
            *(client.create(f"{self.parent}/{n:03}", ephemeral=True) for n in range(CHILDREN)),
        ]
        await asyncio.gather(*ephemerals)

    async def clear(self, client: Client) -> None:
        """Remove what was created, so that the next cell begins as this one did."""
        await client.delete_tree(self.created)
        await self._make_folder(client, self.created, b"")
        await client.create(f"{self.created}/kept", ephemeral=True)

    async def remove(self, client: Client) -> str | None:
        """Remove the folder if it is ours; if it may be left, say so in words.

        By a session of its own: that of the client may be what was lost.
        """
        try:
            async with limited(asyncio.timeout(_REMOVAL_S)), client.another() as other:
                if (await other.get(self.path)).data == self._mark:
                    await other.delete_tree(self.path)
        except NoNodeError:
            # Never made, or removed already.
            return None
        except PaddockError as error:
            return f"{self.path}: could not be removed, and may be left: {error}"
        except TimeoutError:
            return f"{self.path}: is left, its removal took too long"
        return None

    async def _make_folder(self, client: Client, path: str, data: bytes) -> None:
        try:
            await client.create(path, data, container=True)
        except UnimplementedError:
            # Servers before 3.5.1 have none.
            await client.create(path, data)


@asynccontextmanager
async def furnished(client: Client, site: Site, data: bytes) -> AsyncIterator[None]:
    """Create the folder in this scope and remove it at the end; report what is left."""
    try:
        await site.make(client)
        await site.furnish(client, data)
        yield
    except _Refused:
        raise
    except BaseException:
        left = await site.remove(client)
        if left is not None:
            # What is raised says why we end, which is another thing.
            click.echo(f"paddock: {left}", err=True)
        raise
    left = await site.remove(client)
    if left is not None:
        raise CannotBeDone(left)
