"""A tree read from a service: every node, a parent before its children, these by their names.

Many requests are under way at once, though the nodes come out in order. What comes next stands in a
line: paths that were not read yet, and nodes that were. The first so many of the line are read
together; what is found below one of them is put into the line right behind it, and read with the
next lot, before its parent has even left. So a bushy tree is read as fast as a flat one, and what
is held is bounded, in nodes and in bytes.

A live tree is no snapshot. A node that goes while we read is left out, with everything below it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from paddock.cli.transfer import acl_text
from paddock.cli.transfer.errors import TransferError
from paddock.cli.transfer.node import ROOT, Node, below, joined, order_of
from paddock.client.client import Client
from paddock.errors import NoAuthError, NoNodeError
from paddock.protocol.acl import ACL
from paddock.protocol.records import Stat

# How many nodes are looked at together.
_WINDOW: Final = 500
# How many bytes of data are held, beyond those of the next node.
_DATA_BYTES_MAX: Final = 4 << 20
# How many children are put into the line together, beyond those of the next node.
_CHILDREN_MAX: Final = 1000
# What the service keeps for itself.
_RESERVED: Final = "/zookeeper"


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """What is read, and what is left out."""

    acls: bool = True
    # Ephemeral nodes are read as if they were persistent.
    keeps_ephemerals: bool = False
    skips_unreadable: bool = False


@dataclass(slots=True)
class LeftOut:
    """How many nodes were passed over, each with what is below it."""

    ephemeral: int = 0
    unreadable: int = 0
    vanished: int = 0


@dataclass(slots=True)
class _Found:
    """A node in the line that was looked at. It can leave once its data and children are known."""

    path: str
    stat: Stat
    acl: tuple[ACL, ...] | None
    data: bytes | None = None
    # Invariant: what is below it stands right behind it in the line.
    is_listed: bool = False


# A path that was not looked at, or what was found there.
_Place: TypeAlias = "str | _Found"


class Walk:
    """One way through the tree at a path of a client without a chroot."""

    def __init__(self, client: Client, root: str, options: WalkOptions) -> None:
        self._client = client
        self._root = root
        self._options = options
        # The next one last.
        self._line: list[_Place] = []
        # Of the data in the line.
        self._bytes = 0
        self.left_out = LeftOut()

    async def nodes(self, after: str | None = None) -> AsyncIterator[Node]:
        """Give every node of the tree, or all that come after a path of it.

        Raises NoNodeError if there is no such tree, and TransferError for what we may not read.
        """
        if after is None:
            self._line = [self._root]
        else:
            await self._line_up(after)
        while self._line:
            place = self._line[-1]
            if isinstance(place, str) or place.data is None or not place.is_listed:
                await self._read_on()
                continue
            self._line.pop()
            self._bytes -= len(place.data)
            yield Node(below(self._root, place.path), place.data, place.acl)

    async def _line_up(self, after: str) -> None:
        """Have the line be what comes behind a path: on each level the names that are larger."""
        here = self._root
        for name in [*order_of(after), ""]:
            try:
                names = await self._client.children(here)
            except (NoNodeError, NoAuthError) as error:
                self._pass_over(here, error)
                return
            self._line += self._stacked(here, [one for one in names if one > name])
            here = joined(here, f"/{name}")

    async def _read_on(self) -> None:
        """Find out more about those that come next, and all about the very next one."""
        ahead = self._line[-_WINDOW:][::-1]
        del self._line[-_WINDOW:]
        found = await self._look(ahead)
        children = await self._fetch(found)
        for one in reversed(found):
            if one.path in children:
                answer = children[one.path]
                if answer is None:
                    continue
                self._line += self._stacked(one.path, answer)
            self._line.append(one)

    async def _look(self, ahead: list[_Place]) -> list[_Found]:
        """Look at all of them; those that are not wanted fall out of the line."""
        ask = self._client.get_acl if self._options.acls else self._client.exists
        asked: dict[str, asyncio.Future[Any]] = {
            place: ask(place) for place in ahead if isinstance(place, str)
        }
        await _settled(asked.values())
        found: list[_Found] = []
        for place in ahead:
            if isinstance(place, str):
                one = self._found(place, asked[place])
                if one is not None:
                    found.append(one)
            else:
                found.append(place)
        return found

    def _found(self, path: str, answer: asyncio.Future[Any]) -> _Found | None:
        error = answer.exception()
        if isinstance(error, NoNodeError | NoAuthError):
            self._pass_over(path, error)
            return None
        acl, stat = answer.result() if self._options.acls else (None, answer.result())
        if stat is None:
            self._pass_over(path, NoNodeError("export", path))
            return None
        if stat.ephemeral_owner and not self._options.keeps_ephemerals:
            if path == self._root:
                raise TransferError(f"{path}: is ephemeral; --keep-ephemerals keeps it")
            self.left_out.ephemeral += 1
            return None
        if acl is not None and acl_text.is_hidden(acl):
            self._pass_over(path, _HiddenError())
            return None
        return _Found(path, stat, None if acl is None else tuple(acl))

    async def _fetch(self, found: list[_Found]) -> dict[str, list[str] | None]:
        """Get data and children, as much as there is room for, and always those of the first.

        Gives the names of the children of those that were listed; None stands for a node that is
        not wanted any more.
        """
        getting: dict[str, asyncio.Future[Any]] = {}
        listing: dict[str, asyncio.Future[Any]] = {}
        bytes_left, children_left = _DATA_BYTES_MAX - self._bytes, _CHILDREN_MAX
        for one in found:
            is_first = one is found[0]
            if one.data is None and one.stat.data_length == 0:
                one.data = b""
            if one.data is None:
                bytes_left -= one.stat.data_length
                if is_first or bytes_left >= 0:
                    getting[one.path] = self._client.get(one.path)
            if not one.is_listed and one.stat.num_children:
                children_left -= one.stat.num_children
                # What is below a node that turns out to be gone must not be in the line.
                is_known = one.data is not None or one.path in getting
                if is_known and (is_first or children_left >= 0):
                    listing[one.path] = self._client.children(one.path)
            elif not one.is_listed:
                one.is_listed = True
        await _settled([*getting.values(), *listing.values()])
        return self._taken(found, getting, listing)

    def _taken(
        self,
        found: list[_Found],
        getting: dict[str, asyncio.Future[Any]],
        listing: dict[str, asyncio.Future[Any]],
    ) -> dict[str, list[str] | None]:
        children: dict[str, list[str] | None] = {}
        for one in found:
            answers = [asked[one.path] for asked in (getting, listing) if one.path in asked]
            error = next((error for answer in answers if (error := answer.exception())), None)
            if isinstance(error, NoNodeError | NoAuthError):
                self._pass_over(one.path, error)
                children[one.path] = None
                continue
            if error is not None:
                raise error
            if one.path in getting:
                one.data = getting[one.path].result().data
                self._bytes += len(one.data or b"")
            if one.path in listing:
                children[one.path] = listing[one.path].result()
                one.is_listed = True
        return children

    def _stacked(self, above: str, names: Sequence[str]) -> Iterable[str]:
        """Give the paths of children as they stand in the line: the first one last."""
        paths = (joined(above, f"/{name}") for name in sorted(names, reverse=True))
        if above == ROOT:
            return (path for path in paths if path != _RESERVED)
        return paths

    def _pass_over(self, path: str, why: Exception) -> None:
        """Leave a node out, with what is below it, if that is allowed."""
        if isinstance(why, NoNodeError):
            if path == self._root:
                raise NoNodeError("export", path)
            self.left_out.vanished += 1
        elif self._options.skips_unreadable and path != self._root:
            self.left_out.unreadable += 1
        elif isinstance(why, NoAuthError):
            raise TransferError(f"{path}: we may not read it; {_WHAT_TO_DO}") from None
        else:
            raise TransferError(
                f"{path}: the digests of its ACL are hidden from us; {_WHAT_TO_DO},"
                " --no-acls leaves out ACLs"
            ) from None


_WHAT_TO_DO: Final = "--auth says who asks, --skip-unreadable leaves out such nodes"


class _HiddenError(Exception):
    """A server shows digests only to whoever may ADMIN the node."""


async def _settled(asked: Iterable[asyncio.Future[Any]]) -> None:
    """Wait for all of them, however they end."""
    await asyncio.gather(*asked, return_exceptions=True)
