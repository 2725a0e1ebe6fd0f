"""A tree read from a service as a stream of nodes, in the order of `Client.walk`.

Left out are ephemeral nodes, nodes that may not be read, and `/zookeeper`, each with everything
below it; the options say which of them, and which are an error instead. A recursive watch hears of
changes meanwhile, but not of ACLs, nor without a connection, nor from servers before 3.6. What
cannot be known is told, too.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from paddock.cli.transfer.node import Node, TransferError, below, joined
from paddock.client.client import Client
from paddock.client.operations.walk import TreeWalk, WalkedNode
from paddock.client.states import Event
from paddock.errors import NoNodeError, UnimplementedError
from paddock.protocol.acl import is_masked
from paddock.protocol.records import Stat

_RESERVED: Final = "/zookeeper"
_WHAT_TO_DO: Final = "--auth says who asks, --skip-unreadable leaves out such nodes"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is read, and what is left out."""

    acls: bool = True
    # Ephemeral nodes are read as if they were persistent.
    keeps_ephemerals: bool = False
    skips_unreadable: bool = False


@dataclass(slots=True)
class LeftOut:
    """The number of nodes that were left out, each with what is below it."""

    ephemeral: int = 0
    unreadable: int = 0
    vanished: int = 0


class TreeReader:
    """Reads the tree at a path of a client without a chroot."""

    def __init__(self, client: Client, root: str, options: ReadOptions) -> None:
        self._client = client
        self._root = root
        self._options = options
        self.left_out = LeftOut()

    async def nodes(self, after: str | None = None) -> AsyncIterator[Node]:
        """Yield every node of the tree, or those after a path of it.

        Raises NoNodeError if there is no such tree, and TransferError for what we may not read.
        """
        walk = TreeWalk(
            self._client,
            self._root,
            data=self._is_wanted,
            acl=self._options.acls,
            after=None if after is None else joined(self._root, after),
        )
        try:
            async with aclosing(walk.nodes()) as found:
                async for one in found:
                    one.descends = not one.is_gone and self._takes(one)
                    if one.descends:
                        assert one.data is not None
                        acl = None if one.acl is None else tuple(one.acl)
                        yield Node(below(self._root, one.path), one.data, acl)
        except NoNodeError:
            # It is the root: others that vanish are counted.
            raise NoNodeError("export", self._root) from None
        self.left_out.vanished = walk.vanished

    def _is_wanted(self, path: str, stat: Stat) -> bool:
        is_reserved = path == _RESERVED and self._root == "/"
        return not is_reserved and (self._options.keeps_ephemerals or not stat.ephemeral_owner)

    def _takes(self, found: WalkedNode) -> bool:
        """Return whether a node is read; count it, or raise TransferError, if it is not."""
        path = found.path
        if found.stat is not None and not self._is_wanted(path, found.stat):
            if path == self._root:
                raise TransferError(f"{path}: is ephemeral; --keep-ephemerals keeps it")
            self.left_out.ephemeral += bool(found.stat.ephemeral_owner)
        elif found.error is not None:
            self._pass_over(path, f"we may not read it; {_WHAT_TO_DO}")
        elif found.acl is not None and is_masked(found.acl):
            hidden = f"the digests of its ACL are hidden from us; {_WHAT_TO_DO}"
            self._pass_over(path, f"{hidden}, --no-acls leaves out ACLs")
        else:
            return True
        return False

    def _pass_over(self, path: str, why: str) -> None:
        if not self._options.skips_unreadable or path == self._root:
            raise TransferError(f"{path}: {why}")
        self.left_out.unreadable += 1


class Changes:
    """What was heard of a tree."""

    count = 0
    first = ""
    # Whether there may be more that we could not hear of.
    is_blind = False

    def hear(self, event: Event) -> None:
        if event.path is not None:
            self.first = self.first or event.path
            self.count += 1
        elif not event.state.is_connected:
            self.is_blind = True

    def say(self, root: str, *, was_interrupted: bool = False) -> str:
        """Return a warning, or an empty text."""
        if self.count:
            times = "once" if self.count == 1 else f"{self.count} times"
            return (
                f"{root} was changed {times} while it was read, first at {self.first}:"
                " what was read is of no single moment"
            )
        if self.is_blind or was_interrupted:
            return f"whether {root} was changed while it was read is not known"
        return ""


@asynccontextmanager
async def watched(client: Client, root: str) -> AsyncIterator[Changes]:
    """Listen for changes of a tree."""
    changes = Changes()
    try:
        await client.add_watch(root, changes.hear, recursive=True)
    except UnimplementedError:
        changes.is_blind = True
        # A server that does not know the request closes the connection.
        await client.exists(root)
    try:
        yield changes
    finally:
        client.forget_watcher(changes.hear)
