"""Import a stream of nodes into a service.

Nodes come a parent before its children, and are taken in windows. Each is looked at, unless it must
be missing because its parent was; then it is created, changed, or left alone. A dry run leaves out
the writes.

Every step is idempotent. So after a lost connection a window is looked at again and the rest of it
done, and an import that was interrupted goes on when it is run again. A node is created whole; only
an ACL that would keep us from creating what is below it comes at the end (`rights`).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from paddock.cli.output import Advance
from paddock.cli.transfer.node import (
    ROOT,
    Difference,
    Existing,
    ImportOptions,
    Node,
    Tally,
    TransferError,
    Verdict,
    is_below,
    joined,
)
from paddock.cli.transfer.rights import Rights
from paddock.client.client import Client
from paddock.client.operations.compound import make_path
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    InvalidArgumentError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RequestError,
)
from paddock.protocol.acl import ACL, OPEN, is_masked, without_secrets
from paddock.protocol.paths import parent_path
from paddock.protocol.records import Stat

# A window ends with so many nodes, or so many bytes of data.
_WINDOW: Final = 1000
_WINDOW_BYTES: Final = 4 << 20
# How many children are listed ahead of their turn, in all.
_CHILDREN_AHEAD_MAX: Final = 20_000
# How often in a row a window may lose its connection, or its nodes be changed under our hands.
_ATTEMPTS_MAX: Final = 10
_DELETES: Final = 100
_RESERVED: Final = "zookeeper"
# Errors of concurrent writes, or of an unknown outcome.
_TO_BE_LOOKED_AT: Final = (ConnectionLostError, NodeExistsError, NoNodeError, BadVersionError)


@dataclass(slots=True)
class _Item:
    """A node of a window, and what is known about the place where it belongs."""

    node: Node
    path: str
    place: int
    has_children: bool = False
    verdict: Verdict | None = None
    what: tuple[str, ...] = ()
    stat: Stat | None = None
    # What we have tried; then it may be us who made it what it is.
    tried: Verdict | None = None
    tried_what: tuple[str, ...] = ()
    final_acl: tuple[ACL, ...] | None = None
    # Whether its ACL is the temporary one of an interrupted import.
    is_unfinished: bool = False
    # The existing children, if they are needed and few.
    names: list[str] | None = None


@dataclass(slots=True)
class _Open:
    """A node whose children are still coming: those of the window, and the way down to them."""

    path: str
    # Children that are there and did not come yet. What is left at the end is not in the stream.
    more: set[str]
    final_acl: tuple[ACL, ...] | None


class Import:
    """One import into the tree at a path of a client without a chroot."""

    def __init__(
        self,
        client: Client,
        root: str,
        rights: Rights,
        options: ImportOptions,
        *,
        report: Callable[[Difference], None] = lambda _: None,
        advance: Advance = lambda _: None,
    ) -> None:
        self._client = client
        self._root = root
        self._rights = rights
        self._options = options
        self._report = report
        self._advance = advance
        self._open: list[_Open] = []
        # The last node that was not there before us: nothing below it was, either.
        self._new: str | None = None
        # Nodes whose children are there, with their ACLs.
        self._to_finish: list[tuple[str, tuple[ACL, ...]]] = []
        self._lists = options.deletes or options.looks_for_more
        self.tally = Tally()

    async def run(self, nodes: AsyncIterator[Node]) -> Tally:
        """Take all of the stream.

        Raises TransferError for a node that is there, is another one, and may not be replaced.
        """
        if not self._options.is_dry:
            await make_path(self._client, parent_path(self._root), None)
        window: list[_Item] = []
        size = place = 0
        async for node in nodes:
            item = _Item(node, joined(self._root, node.path), place)
            place += 1
            if window:
                window[-1].has_children = is_below(window[-1].path, item.path)
                if len(window) >= _WINDOW or size >= _WINDOW_BYTES:
                    await self._take(window)
                    window, size = [], 0
            window.append(item)
            size += len(node.data)
        if window:
            await self._take(window)
        await self._leave_all_but(None)
        await self._finish_acls()
        return self.tally

    async def _take(self, window: list[_Item]) -> None:
        """Import a window of nodes."""
        pending = [item for item in window if item.place >= self._options.same_before]
        for item in window[: len(window) - len(pending)]:
            item.verdict = Verdict.SAME
        attempts = 0
        while pending:
            await self._look(pending)
            left = [] if self._options.is_dry else await self._act(pending)
            attempts = attempts + 1 if len(left) == len(pending) else 0
            if attempts == _ATTEMPTS_MAX:
                raise left[0][1]
            pending = [item for item, _ in left]
        for item in window:
            await self._settle(item)
        await self._finish_acls()
        self._advance(len(window))

    async def _look(self, items: list[_Item]) -> None:
        """Find out what is there, and say what is to be done about it.

        Data are read only where they may be the same, so we never hold more of them than we bring.
        """
        looking: list[tuple[_Item, asyncio.Future[Any]]] = []
        for item in items:
            if item.verdict is not None:
                continue
            if item.tried is None and self._new is not None and is_below(self._new, item.path):
                item.verdict = Verdict.CREATE
            elif item.node.acl is None:
                looking.append((item, self._client.exists(item.path)))
            else:
                looking.append((item, self._client.get_acl(item.path)))
        await _settled(looking)
        reading = [
            (item, self._client.get(item.path))
            for item, answer in looking
            if self._judge(item, answer)
        ]
        await _settled(reading)
        for item, answer in reading:
            if not self._is_decided(item, answer) and answer.result().data != item.node.data:
                item.verdict, item.what = Verdict.CHANGE, ("data", *item.what)
        if self._lists:
            await self._list([item for item, _ in looking])

    def _judge(self, item: _Item, answer: asyncio.Future[Any]) -> bool:
        """Judge by everything but the data; tell whether these are still to be compared."""
        if self._is_decided(item, answer):
            return False
        wanted = item.node.acl
        found, item.stat = (None, answer.result()) if wanted is None else answer.result()
        assert item.stat is not None
        item.verdict, item.what = Verdict.SAME, ()
        if found is not None and wanted is not None:
            # A digest that we may not see is taken for the one it should be.
            shown = set(without_secrets(wanted) if is_masked(found) else wanted)
            item.is_unfinished = self._rights.is_unfinished(found, shown)
            if item.is_unfinished:
                item.verdict = Verdict.FINISH
            elif set(found) != shown:
                item.verdict, item.what = Verdict.CHANGE, ("acl",)
        if item.stat.data_length != len(item.node.data):
            item.verdict, item.what = Verdict.CHANGE, ("data", *item.what)
            return False
        return bool(item.node.data)

    def _is_decided(self, item: _Item, answer: asyncio.Future[Any]) -> bool:
        """Return whether a reply decides the verdict without a comparison."""
        error = answer.exception()
        if isinstance(error, NoNodeError) or (error is None and answer.result() is None):
            item.verdict = Verdict.CREATE
            if self._new is None or not is_below(self._new, item.path):
                self._new = item.path
            return True
        if isinstance(error, NoAuthError) and item.tried is not None:
            # Before, we could write it; what we wrote is what keeps us from reading it.
            item.verdict = Verdict.SAME
            return True
        if error is not None:
            raise error
        return False

    async def _list(self, items: list[_Item]) -> None:
        """List the children of those that have some, but for the largest, whose turn will come."""
        room = _CHILDREN_AHEAD_MAX
        asked: list[tuple[_Item, asyncio.Future[list[str]]]] = []
        for item in items:
            if item.stat is None or item.stat.num_children > room:
                continue
            room -= item.stat.num_children
            if item.stat.num_children:
                asked.append((item, self._client.children(item.path)))
            else:
                item.names = []
        await _settled(asked)
        for item, names in asked:
            item.names = [] if isinstance(names.exception(), NoNodeError) else names.result()

    async def _act(self, items: list[_Item]) -> list[tuple[_Item, BaseException]]:
        """Do what is to be done; give those of which it is not sure that it was done, and why."""
        asked: list[tuple[_Item, asyncio.Future[Any]]] = []
        refusal: TransferError | None = None
        for item in items:
            try:
                asked += [(item, one) for one in self._writes(item)]
            except TransferError as error:
                refusal = error
            except InvalidArgumentError as error:
                refusal = TransferError(f"{item.path}: {error}")
            if refusal is not None:
                # What was asked for before it is still waited for.
                break
        await _settled(asked)
        left: dict[int, tuple[_Item, BaseException]] = {}
        for item, answer in asked:
            if (problem := answer.exception()) is not None:
                if not isinstance(problem, _TO_BE_LOOKED_AT):
                    raise problem
                left[item.place] = (item, problem)
                item.verdict = None
        if refusal is not None:
            raise refusal
        return [*left.values()]

    def _writes(self, item: _Item) -> Iterable[asyncio.Future[Any]]:
        """Ask for whatever makes a node what it should be."""
        node = item.node
        if item.verdict is Verdict.CREATE:
            item.tried = Verdict.CREATE
            acl: Sequence[ACL] = OPEN if node.acl is None else node.acl
            if item.has_children and not self._rights.may_create(acl):
                item.final_acl = node.acl
                acl = self._rights.meanwhile(acl)
            return [self._client.create(item.path, node.data, acl=acl)]
        if item.verdict is Verdict.FINISH:
            item.final_acl = node.acl
        if item.verdict is not Verdict.CHANGE or self._options.existing is Existing.KEEP:
            return []
        if self._options.existing is Existing.REFUSE:
            raise TransferError(
                f"{item.path}: exists, and its {' and '.join(item.what)} differ;"
                " --overwrite replaces such nodes, --keep leaves them as they are"
            )
        if item.is_unfinished:
            item.final_acl = node.acl
        assert item.stat is not None
        if item.tried is None:
            item.tried, item.tried_what = Verdict.CHANGE, item.what
        writes: list[asyncio.Future[Any]] = []
        if "data" in item.what:
            writes.append(self._client.set(item.path, node.data, version=item.stat.version))
        if "acl" in item.what:
            assert node.acl is not None
            if item.has_children and not self._rights.may_create(node.acl):
                item.final_acl = node.acl
            else:
                writes.append(self._client.set_acl(item.path, node.acl, version=item.stat.aversion))
        return writes

    async def _finish_acls(self) -> None:
        """Set the ACLs of those whose children are all there."""
        attempts = 0
        while self._to_finish:
            asked = [(path, acl, self._client.set_acl(path, acl)) for path, acl in self._to_finish]
            await asyncio.gather(*(one for *_, one in asked), return_exceptions=True)
            self._to_finish = []
            for path, acl, answer in asked:
                error = answer.exception()
                if error is None or (isinstance(error, NoAuthError) and attempts):
                    # What we set the last time may be what keeps us from it now.
                    continue
                if not isinstance(error, ConnectionLostError) or attempts == _ATTEMPTS_MAX:
                    raise error
                self._to_finish.append((path, acl))
            attempts += 1
            if self._to_finish:
                # A read waits for the next connection, and fails when there may be none in time.
                await self._client.exists(self._root)

    async def _settle(self, item: _Item) -> None:
        """Count a node that is done with, and remember what is to be done when it is left."""
        await self._leave_all_but(item.path)
        if self._open:
            self._open[-1].more.discard(item.path.rpartition("/")[2])
        verdict, what = item.verdict, item.what
        if item.tried is not None and verdict in (Verdict.SAME, Verdict.FINISH):
            # The reply was lost, but the write is there.
            verdict, what = item.tried, item.tried_what
        tally = self.tally
        assert verdict is not None
        if verdict is not Verdict.SAME:
            if tally.first_different is None:
                tally.first_different = item.place
            self._report(Difference(verdict, item.path, what))
        if verdict is Verdict.CREATE:
            tally.created += 1
        elif verdict is not Verdict.CHANGE:
            tally.same += 1
        elif self._options.existing is Existing.KEEP:
            tally.kept += 1
        else:
            tally.changed += 1
        self._open.append(_Open(item.path, await self._more(item), item.final_acl))

    async def _more(self, item: _Item) -> set[str]:
        """Return existing children that may not be in the stream."""
        if not self._lists or item.stat is None:
            return set()
        if item.names is None:
            try:
                item.names = await self._client.children(item.path)
            except NoNodeError:
                return set()
        names, item.names = item.names, None
        return set(names) - ({_RESERVED} if item.path == ROOT else set())

    async def _leave_all_but(self, path: str | None) -> None:
        """Leave every node that has no more children in the stream, given the one that is next."""
        while self._open and (path is None or not is_below(self._open[-1].path, path)):
            left = self._open.pop()
            if left.final_acl is not None:
                self._to_finish.append((left.path, left.final_acl))
            names = sorted(left.more)
            for start in range(0, len(names), _DELETES):
                await self._remove(
                    [joined(left.path, f"/{name}") for name in names[start : start + _DELETES]]
                )

    async def _remove(self, paths: list[str]) -> None:
        """Report nodes that are not in the stream, and delete them if they are to be.

        Ephemeral nodes belong to live sessions, and an export has none: they stay.
        """
        stats = await asyncio.gather(*(self._client.exists(path) for path in paths))
        going = []
        for path, stat in zip(paths, stats, strict=True):
            if stat is None or stat.ephemeral_owner:
                continue
            count = 0
            # Servers before 3.6 do not count.
            with contextlib.suppress(RequestError):
                count = await self._client.count_descendants(path) if stat.num_children else 0
            self._report(Difference(Verdict.DELETE, path, below=count))
            going.append((path, 1 + count))
        if self._options.deletes and self._options.is_dry:
            self.tally.deleted += sum(count for _, count in going)
        elif self._options.deletes:
            deleted = await asyncio.gather(*(self._client.delete_tree(path) for path, _ in going))
            self.tally.deleted += sum(deleted)


async def _settled(asked: Sequence[tuple[_Item, asyncio.Future[Any]]]) -> None:
    """Wait for all of them, however they end."""
    await asyncio.gather(*(one for _, one in asked), return_exceptions=True)
