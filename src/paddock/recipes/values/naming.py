"""Naming: names that resolve to values and are watched, and numbers that nobody has twice.

    naming = Naming(client, "/naming")
    await naming.bind("printer", b"10.0.0.7:631")
    print(await naming.resolve("printer"))  # b'10.0.0.7:631'
    print(await naming.new_id())  # 1

Guaranteed is that a name is bound by one at a time, and that whoever binds it knows that it has,
also if the reply is lost (`paddock.recipes.values.value` says how). Numbers grow: whoever asks
after another one has got its number gets a larger one. A lost reply may leave out a number, and no
number is given twice.

* Suspension (the connection is lost): every call waits for the next connection and goes on.
* Expiry: SessionExpiredError. What was under way may have happened, and then has once. Names stay.
* Cancellation: what was under way may have happened, and then has once.
* Never promised: to know whether a name was bound whose reply was lost, if somebody unbinds it
  before we look; that raises ConnectionLostError. And numbers begin again if somebody deletes the
  node that counts them. There are 2147483647.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_acl, checked_bytes, checked_path
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NotReadOnlyError,
    RecipeError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.protocol.records import Stat
from paddock.recipes.common.retry import Signal, child, make_node, until_answered, wait_writable
from paddock.recipes.values.versioned_node import MARKER_PREFIX, Cell


class Naming:
    """A place for names, each of which stands for some bytes.

    A name has no slash. Its node is `names/<name>` below the base; `ids` counts the numbers.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        checked_path(base)
        checked_acl(acl)
        # The node below which everything is.
        self.base: str = base
        self._client = client
        self._acl = acl
        self._names = child(base, "names")
        self._ids = child(base, "ids")

    def __repr__(self) -> str:
        return f"<Naming {self.base}>"

    async def bind(self, name: str, data: bytes) -> None:
        """Have a name that is free stand for something; raises NodeExistsError if it is taken."""
        cell = self._cell(name)
        if not await cell.create(checked_bytes("data", data)):
            raise NodeExistsError("bind", cell.path, "the name is bound already")

    async def rebind(self, name: str, data: bytes) -> None:
        """Have a name stand for something, whether it is free or not."""
        checked_bytes("data", data)
        await self._cell(name).update(lambda _: data)

    async def unbind(self, name: str) -> None:
        """Have a name be free; that it is free already is fine.

        What somebody else binds it to once it was free stays.
        """
        path = self._cell(name).path
        # The binding that is meant: it may be gone when we look again.
        meant: int | None = None
        while True:
            stat = await until_answered(self._client, lambda: self._newest(path))
            if stat is None or meant not in (None, stat.czxid):
                return
            meant = stat.czxid
            if await self._delete(path):
                return

    async def resolve(self, name: str) -> bytes | None:
        """Give what a name stands for; None if it is free.

        `client.sync` before it makes sure that it is the newest.
        """
        return (await self._cell(name).read()).data

    async def names(self) -> list[str]:
        """Give all names that are bound, in alphabetical order."""

        async def names() -> list[str]:
            try:
                return await self._client.children(self._names)
            except NoNodeError:
                return []

        return sorted(await until_answered(self._client, names))

    def watch(self, name: str) -> AsyncIterator[bytes | None]:
        """Give what a name stands for, then what it stands for next; None while it is free.

        Changes in quick succession may come as one; the last one always comes. It goes on over lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return self._cell(name).changes()

    async def new_id(self) -> int:
        """Give a number from 1 on that nobody has, larger than all that were given before."""
        while True:
            try:
                stat = await until_answered(self._client, lambda: self._client.set(self._ids, b""))
            except NoNodeError:
                await make_node(self._client, self._ids)
                continue
            # Each write has a version of its own, whoever else writes at the same time.
            if stat.version < 1:
                raise RecipeError(f"{self._ids}: all numbers were given")
            return stat.version

    def _cell(self, name: str) -> Cell:
        given: object = name
        if not isinstance(given, str) or not given or "/" in given:
            raise InvalidArgumentError(f"name: {name!r} is no name, which is text without a slash")
        return Cell(self._client, child(self._names, name), self._acl)

    async def _newest(self, path: str) -> Stat | None:
        await self._client.sync(path)
        return await self._client.exists(path)

    async def _delete(self, path: str) -> bool:
        """Delete a binding, if nobody is in the middle of making it; tell whether it is gone."""
        try:
            await self._client.delete(path)
        except NoNodeError:
            pass
        except NotEmptyError:
            await until_answered(self._client, lambda: self._wait_for_markers(path))
            return False
        except ConnectionLostError:
            # Not sent again before we look: it may be gone, and the name be bound by another.
            await self._client.wait_connected()
            return False
        except NotReadOnlyError:
            await wait_writable(self._client)
            return False
        return True

    async def _wait_for_markers(self, path: str) -> None:
        """Wait for whoever has just bound it to see that it has."""
        signal = Signal()
        try:
            names = await self._client.children(path, watch=signal)
            if not all(name.startswith(MARKER_PREFIX) for name in names):
                raise NotEmptyError("unbind", path)
            if names:
                await signal.wait()
        except NoNodeError:
            pass
        finally:
            self._client.forget_watcher(signal)
