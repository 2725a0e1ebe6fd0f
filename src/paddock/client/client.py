"""The client: every operation of the service as a plain function that returns a future.

    async with paddock.connect("127.0.0.1:2181") as client:
        await client.create("/color", b"blue")
        data, stat = await client.get("/color")

A call queues its request at once and returns a future, so many requests can be in flight without a
task for each. Use `asyncio.timeout` for deadlines. A cancelled call is not sent, or its reply is
ignored, and it sets no watch.

Without a connection a call waits for the next one, until the session may be over (OVERDUE): then it
raises ConnectionLostError. A call that is made later than that does so after a tenth of the session
timeout, one second at most, unless a server comes meanwhile. `wait_connected` waits as long as it
takes. A reply that comes in pieces is waited for up to 5/3 of the session timeout: after one
timeout the session is OVERDUE, and two thirds later the server is left.

A `watch` is a function that is called once, with an `Event`, when what was read has changed; True
stands for the client's default watcher. With a `version` a call fails unless the node has that
version; -1 stands for any. InvalidArgumentError means that nothing was sent.

In an exact session, as Paddock has it (`is_exact`), a lost connection leaves no outcome unknown.
ConnectionLostError then means that the session may be over, or it is one of the errors that say
what is known: ReplyLostError, NotAppliedError.
"""

from __future__ import annotations

import asyncio
import copy
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, Self, TypeAlias, TypeVar

from paddock.client.metrics import ClientMetrics
from paddock.client.multiread import MultiRead
from paddock.client.observer import Follow, Observer, SessionObserver
from paddock.client.operations import compound
from paddock.client.operations.best_effort import changes_at_best
from paddock.client.operations.feeds import ChangeFeed, FeedChange
from paddock.client.operations.operations import Operations
from paddock.client.operations.streams import Change, watch_node, watch_tree
from paddock.client.operations.walk import TreeWalk, WalkedNode
from paddock.client.requests.arguments import (
    check_count,
    check_flag,
    check_mark,
    check_not_negative,
    check_protection,
    check_watcher,
    checked_acl,
)
from paddock.client.requests.encoder import ANY_VERSION, REQUEST_BYTES_MAX, Encoder
from paddock.client.results import Created
from paddock.client.session.dispatcher import WriteBatch
from paddock.client.session.handshake import SaslCredentials
from paddock.client.session.hosts import Host, HostRing, Randomness
from paddock.client.session.kerberos import KerberosCredentials
from paddock.client.session.session import Session
from paddock.client.session.state_publisher import StateListener
from paddock.client.states import SessionState
from paddock.client.transaction import Transaction
from paddock.client.watches.watches import Watcher
from paddock.protocol import opcodes, paths
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.protocol.jute import Reader
from paddock.protocol.records import Stat

T = TypeVar("T")

# A new node: data, ACL, whether it is ephemeral, sequential, a container; its TTL.
NewNode: TypeAlias = tuple[bytes | None, Sequence[ACL], bool, bool, bool, float | None]

_CLOSE_SECONDS: Final = 5.0


class Client(Operations):
    """A client of the service, with a session of its own while it is open."""

    def __init__(
        self,
        hosts: Sequence[Host],
        chroot: str,
        session_timeout: float,
        random: Randomness,
        *,
        tls: ssl.SSLContext | None = None,
        read_only: bool = False,
        sasl: SaslCredentials | KerberosCredentials | None = None,
        default_watcher: Watcher | None = None,
        max_request_bytes: int = REQUEST_BYTES_MAX,
        exact: bool = False,
        observer: Observer | None = None,
    ) -> None:
        connection: dict[str, Any] = {
            "tls": tls,
            "read_only": read_only,
            "sasl": sasl,
            "exact": exact,
            "observer": observer,
        }
        self._make_another = partial(
            Client,
            hosts,
            chroot,
            session_timeout,
            random,
            **connection,
            max_request_bytes=max_request_bytes,
        )
        self._chroot = chroot
        # The connection string, for people to read.
        self._service = ",".join(map(str, hosts)) + chroot
        self._random = random
        encode = Encoder(chroot)
        session = Session(
            HostRing(hosts, random),
            session_timeout,
            random,
            own_path=encode.own,
            chroot=chroot,
            **connection,
        )
        session.watches.default = default_watcher
        super().__init__(session, encode, max_request_bytes)

    def __repr__(self) -> str:
        return f"<paddock.Client {self._service} {self.state} session 0x{self.session_id:x}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        await self.close()

    # The session.

    @property
    def state(self) -> SessionState:
        """The present state of the session."""
        return self._session.state

    @property
    def session_id(self) -> int:
        """The id of the session; its ephemeral nodes have it as `ephemeral_owner`."""
        return self._session.id

    @property
    def session_password(self) -> bytes:
        """The password of the session: with the id, it is enough to end the session."""
        return self._session.credentials.password

    @property
    def session_timeout(self) -> float:
        """The session timeout that the service granted, in seconds."""
        return self._session.timeout

    @property
    def is_exact(self) -> bool:
        """Whether the session is exact: no reply to a write is lost for good while it lives.

        See `exact` of `connect`.
        """
        return self._session.credentials.is_exact

    @property
    def session_valid_until(self) -> float:
        """The time, by the event loop's clock, before which the session cannot expire.

        That is the session timeout after the last request was sent that has a reply, pings
        included. Without a session it is minus infinity. Replies of a server in read-only mode do
        not count.
        """
        return self._session.valid_until

    @property
    def last_zxid(self) -> int:
        """The largest zxid that this client has seen.

            await client.sync()
            print(client.last_zxid >= (await client.get("/config")).stat.mzxid)  # True

        Writes after a `sync` have a larger one.
        """
        return self._session.dispatcher.seen_zxid

    @property
    def observer(self) -> SessionObserver | None:
        """What recipes tell of their waits, if the client was given an observer."""
        return self._session.observer

    def metrics(self) -> ClientMetrics:
        """Return the metrics of this client: connections, requests, latency, watches.

            metrics = client.metrics()
            print(metrics.state, metrics.reconnects, metrics.in_flight)  # CONNECTED 0 0
            print(metrics.round_trips.quantile(0.99) < 60)  # True

        They are always counted, and cost nothing for a single request.
        """
        return self._session.metrics()

    def states(self) -> AsyncIterator[SessionState]:
        """Yield the present state of the session, then every later one, until a final one.

            async for state in client.states():
                print(state)  # CONNECTED
                if state.is_connected:
                    break

        No state is skipped, however slowly they are read.
        """
        return self._session.states.stream()

    def add_listener(self, listener: StateListener) -> None:
        """Call a function with every later state, at once and in order.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        check_watcher("listener", listener)
        self._session.states.add(listener)

    def remove_listener(self, listener: StateListener) -> None:
        """Remove a listener, if it was added."""
        self._session.states.remove(listener)

    async def start(self) -> None:
        """Open the session, as entering the scope does; `close` it afterwards.

        Raises ConnectionLostError if no server grants a session within the session timeout, and
        UsageError if it was opened before: a client has one session.
        """
        observer = self.observer
        if observer is None:
            await self._session.start()
            return
        call = observer.call("connect", None)
        try:
            await self._session.start()
        except BaseException as error:
            call.end(error)
            raise
        call.end(None)

    async def close(self) -> None:
        """End the session, and with it its ephemeral nodes and watches.

        Requests in flight are completed first. Where no server answers, it takes five seconds, or
        the session timeout if that is shorter, and one more for the connection; the session then
        expires after its timeout. Closing twice is fine. Later calls raise SessionExpiredError.
        """
        await self._session.close(min(_CLOSE_SECONDS, self._session.timeout))
        # Their requests fail now, so they end.
        await self._sender.end_tasks()

    def another(self) -> Client:
        """Return a client like this one, with a session of its own that is not open yet.

            async with client.another() as other:
                print(other.session_id == client.session_id)  # False

        It has the same servers, settings and credentials, but no watches, listeners or default
        watcher. Use it to go on after a session has expired.
        """
        other = self._make_another()
        other._session.auth.learn(self._session.auth)
        return other

    def start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that may outlive its caller, such as a cleanup.

        The client owns it: it is cancelled when the client is closed, after the session has ended.
        What it raises goes to the event loop's exception handler if the task is not awaited, except
        for SessionExpiredError after `close`.
        """
        return self._sender.start_task(work)

    def together(self) -> AbstractContextManager[None]:
        """Return a scope whose requests are sent in one write, at its end. Await nothing in it.

            with client.together():
                creating = client.create("/color", b"blue")
                listing = client.children("/")
            print(await creating, await listing)  # /color [...]

        Requests of one pass of the event loop are few writes in any case. Use this where
        microseconds count.
        """
        return WriteBatch(self._session.dispatcher)

    def new_mark(self) -> str:
        """Return 32 random letters and digits that identify something."""
        return self._random.randbytes(16).hex()

    # Several operations in one request.

    def multi_read(self) -> MultiRead:
        """Begin a request of several reads, each with a result or an error of its own."""
        return MultiRead(self._encode, self._sender)

    def transaction(self) -> Transaction:
        """Begin a transaction: operations that are applied atomically, or not at all.

            async with client.transaction() as transaction:
                transaction.check("/config", version=0)
                transaction.create("/color", b"blue")
            print(transaction.results)  # [None, '/color']

        It is sent at the end of the scope. Raises TransactionFailedError if it is refused.
        """
        return Transaction(self._encode, self._sender)

    # Calls of one request or several.

    def create(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        acl: Sequence[ACL] = OPEN_TO_ALL,
        ephemeral: bool = False,
        sequential: bool = False,
        container: bool = False,
        ttl: float | None = None,
        make_parents: bool = False,
        exist_ok: bool = False,
        protected: bool | str = False,
    ) -> asyncio.Future[str]:
        """Create a node; return its path, which ends with a number if it is sequential.

            print(await client.create("/app/color", b"blue", make_parents=True))  # /app/color
            print(await client.create("/app/job-", sequential=True))  # /app/job-0000000001
            await client.create("/app/worker", ephemeral=True)

        A node is persistent; or ephemeral: it is deleted when the session ends; or a container: it
        is deleted after its last child; or it has a TTL in seconds: it is deleted when it has no
        children and was not changed for so long. `make_parents` creates missing nodes above it,
        open to all and without data, and the chroot as well. `exist_ok` accepts a node that exists,
        and leaves it as it is.

        Raises NodeExistsError, NoNodeError (no parent), NoChildrenForEphemeralsError, NoAuthError,
        InvalidACLError. After ConnectionLostError the outcome is unknown. A protected node has a
        mark in its name. In an ordinary session it is found by this after a lost reply; if it was
        deleted before we look, it is created once more.

        A create that is cancelled may have been sent; its node stays, or goes with the session if
        it is ephemeral. To find it, give a mark from `new_mark` as `protected`: the name begins
        with `_c_`, the mark and a hyphen.
        """
        node = (data, acl, ephemeral, sequential, container, ttl)
        if make_parents or exist_ok or protected:
            created = self._create_carefully(path, node, make_parents, exist_ok, protected)
            return self._sender.own(partial(_path_of, created), created)
        operation, body = self._encode.create(opcodes.CREATE, path, *node)
        return self._sender.send(operation, body, path, self._decode_path)

    def create_with_stat(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        acl: Sequence[ACL] = OPEN_TO_ALL,
        ephemeral: bool = False,
        sequential: bool = False,
        container: bool = False,
        ttl: float | None = None,
        make_parents: bool = False,
        exist_ok: bool = False,
        protected: bool | str = False,
    ) -> asyncio.Future[Created]:
        """Create a node, as `create` does; return its path and its stat.

            path, stat = await client.create_with_stat("/color", b"blue")
            print(path, stat.version)  # /color 0

        The zxid of its creation, `stat.czxid`, is larger than that of any earlier node.
        """
        node = (data, acl, ephemeral, sequential, container, ttl)
        if make_parents or exist_ok or protected:
            return self._create_carefully(path, node, make_parents, exist_ok, protected)
        return self._create(path, node)

    def ensure_path(self, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> asyncio.Future[None]:
        """Create a node and all missing nodes above it, without data; what exists stays as it is.

            await client.ensure_path("/app/workers")
            await client.ensure_path("/app/workers")
            print(await client.children("/app"))  # ['workers']

        Each node that it creates gets the ACL, the chroot and those above it included. It needs no
        permission to create what exists. It goes on after a lost connection, and when others delete
        what it has created; after ten times of that it raises NoNodeError. Raises NoAuthError,
        InvalidACLError, NoChildrenForEphemeralsError. After ConnectionLostError some of the nodes
        may have been created.
        """
        checked_acl(acl)
        with self._composed("ensure_path", path) as is_followed:
            looking = self.exists(path)
            ensuring = partial(compound.ensure_path, self, path, looking, self._root(), acl)
            return is_followed(self._sender.own(ensuring, looking))

    def set(
        self,
        path: str,
        data: bytes | None,
        *,
        version: int = ANY_VERSION,
        mark: bytes | None = None,
    ) -> asyncio.Future[Stat]:
        """Replace the data of a node, if it has this version; return its stat.

            data, stat = await client.get("/config")
            stat = await client.set("/config", data + b"+", version=stat.version)
            print(stat.version)  # 1

        Raises NoNodeError, BadVersionError, NoAuthError. After ConnectionLostError the outcome is
        unknown.

        With a mark it is seldom unknown, also in an ordinary session. A mark is a part of the data
        that is in no other write, such as 16 random bytes, and it needs a version. After a lost
        reply the client looks for it: either the write succeeded, or it is sent again. Only if the
        node has gone on to another version, or was deleted or created anew, the outcome stays
        unknown.
        """
        body = self._encode.set(path, data, version)
        if mark is None:
            return self._sender.send(opcodes.SET_DATA, body, path, Stat.read)
        check_mark(mark, data, version)
        write = partial(self._sender.send, opcodes.SET_DATA, body, path, Stat.read)
        with self._composed("set", path) as is_followed:
            first = write()
            seen_zxid = self._session.dispatcher.last_zxid
            careful = partial(
                compound.set_carefully, self, path, first, write, version, mark, seen_zxid
            )
            return is_followed(self._sender.own(careful, first))

    def delete_tree(self, path: str, *, batch: int = 1000) -> asyncio.Future[int]:
        """Delete a node and everything below it; return how many nodes were deleted.

            await client.create("/app/a/b", make_parents=True)
            print(await client.delete_tree("/app"))  # 3

        It is not atomic: nodes that others create there meanwhile are deleted as well. At most
        `batch` requests are in flight. A node that does not exist is fine. Of the root, everything
        goes but the root itself and /zookeeper.

        It goes on after a lost connection. In an ordinary session the count may be too low then,
        since deletes without a reply are not counted. After ConnectionLostError a part of the tree
        may be left.
        """
        check_count("batch", batch)
        is_root = self._encode.full(path) == paths.ROOT
        with self._composed("delete_tree", path) as is_followed:
            if is_root:
                work = partial(compound.delete_everything, self, batch)
            else:
                work = partial(compound.delete_tree, self, path, batch)
            return is_followed(self._sender.own(work))

    def walk(
        self,
        path: str = "/",
        *,
        depth: int | None = None,
        max_children: int | None = None,
        data: bool | Callable[[str, Stat], bool] = False,
        acl: bool = False,
        after: str | None = None,
    ) -> AsyncGenerator[WalkedNode, None]:
        """Yield a node and everything below it, parents first, children by name.

            await client.create("/app/b/c", make_parents=True)
            await client.create("/app/a", b"blue")
            async for node in client.walk("/app", data=True):
                print(node.path, node.depth, node.data)  # /app 0 b'', then /app/a 1 b'blue', ...

        Each node has its stat; its data if `data` is True, or a function of path and stat that
        returns True; and its ACL if `acl` is True. `depth` limits the levels below the path,
        `max_children` the children of each node. `after` resumes a walk behind a path of the tree,
        whether that node still exists or not. Set `node.descends` to False to leave out what is
        below a node.

        Several hundred requests may be in flight, none while a node is yielded, and memory is
        bounded. It is no snapshot: nodes that come or go meanwhile may be left out. A node without
        permission to read it has an `error`. Raises NoNodeError if the path itself does not exist.
        """
        limits = {"depth": depth, "max_children": max_children}
        return TreeWalk(self, path, **limits, data=data, acl=acl, after=after).nodes()

    def watch(self, path: str, *, recursive: bool = False) -> AsyncGenerator[Change, None]:
        """Yield the present state of a node, then every later one; with `recursive`, of its tree.

            async for change in client.watch("/config"):
                print(change.data)  # b'v1', then None
                if change.data is None:
                    break
                await client.delete("/config")

        A node that does not exist has neither data nor stat. Changes in quick succession may come
        as one; the last state of each node always comes. A state is read after its event, so it may
        be newer: `change.stat.mzxid` is the zxid of the data. The stream survives lost connections,
        and raises SessionExpiredError when the session is over. Nodes below without permission to
        read them are left out; of the node itself that raises NoAuthError.
        """
        self._encode.full(path)
        check_flag("recursive", recursive)
        return watch_tree(self, path) if recursive else watch_node(self, path)

    def changes(
        self,
        path: str = "/",
        *,
        since: int | None = None,
        best_effort: bool = False,
        progress: bool = False,
    ) -> AsyncGenerator[FeedChange, None]:
        """Yield every change of a node and of all below it, in order and each once.

            async for change in client.changes("/config", progress=True):
                print(change.kind, change.data)  # PROGRESS None, then DATA b'v2'
                if change.kind is paddock.FeedKind.DATA:
                    break
                await client.set("/config", b"v2")

        Creates, writes, deletes and changes of ACLs come with the data and the stat after them.
        The feed begins behind the zxid `since`, and without one with the first change after its
        first step. It goes on over lost connections and other servers, and takes at most one reply
        of 256 KiB ahead. Changes of nodes that the client may not READ are left out.

        To resume it elsewhere, begin `since` the zxid of the last change that was dealt with, if
        that `is_last` of its transaction. With `progress`, a change of the kind PROGRESS says up to
        which zxid there was nothing else.

        Raises HistoryGoneError if the service does not have the changes since then any more, and
        SessionExpiredError when the session is over. A service without change feeds, which Apache
        ZooKeeper is, raises UnimplementedError; with `best_effort` it gives what recursive watches
        can: states as they are found, not `is_exact`, with a GAP where something may be missing.
        """
        feed = ChangeFeed(self._session, self._encode, self._sender, path)
        if since is not None:
            check_not_negative("since", since)
        check_flag("best_effort", best_effort)
        check_flag("progress", progress)
        if best_effort:
            return changes_at_best(self, self._session, feed, path, since, progress)
        return feed.changes(since, progress)

    def _create(self, path: str, node: NewNode) -> asyncio.Future[Created]:
        operation, body = self._encode.create(opcodes.CREATE2, path, *node)
        return self._sender.send(operation, body, path, self._decode_created)

    def _create_carefully(
        self, path: str, node: NewNode, make_parents: bool, exist_ok: bool, protected: bool | str
    ) -> asyncio.Future[Created]:
        check_flag("make_parents", make_parents)
        check_flag("exist_ok", exist_ok)
        check_protection(protected)
        marked, mark = self._marked(path, protected) if protected else (path, "")
        with self._composed("create", path) as is_followed:
            # Queued at once, to keep the order of the calls.
            first = self._create(marked, node)
            careful = partial(
                compound.create_carefully,
                self,
                marked,
                first,
                lambda: self._create(marked, node),
                mark,
                with_parents=make_parents,
                exist_ok=exist_ok,
                root=self._root(),
            )
            return is_followed(self._sender.own(careful, first))

    def _composed(self, operation: str, path: str) -> AbstractContextManager[Follow]:
        """Return a scope that begins a call of several requests, for the observer if there is one.

        Its value is called with the future of the call, which it returns.
        """
        observer = self.observer
        return nullcontext(_unobserved) if observer is None else observer.composed(operation, path)

    def _root(self) -> compound.Root | None:
        """Return this client without its chroot, if it has one."""
        if not self._chroot:
            return None
        whole = copy.copy(self)
        whole._chroot, whole._encode = "", Encoder("")
        return compound.Root(whole, self._chroot)

    def _marked(self, path: str, protected: bool | str) -> tuple[str, str]:
        """Return a path with a mark in its name, and the prefix of that name."""
        self._encode.to_be_created(path, True)
        own = protected if isinstance(protected, str) else self.new_mark()
        mark = f"{compound.PROTECTION_PREFIX}{own}-"
        cut = path.rfind("/") + 1
        return f"{path[:cut]}{mark}{path[cut:]}", mark

    def _decode_path(self, reader: Reader) -> str:
        return self._encode.own(reader.string())

    def _decode_created(self, reader: Reader) -> Created:
        return Created(self._encode.own(reader.string()), Stat.read(reader))


def _unobserved(future: asyncio.Future[T]) -> asyncio.Future[T]:
    return future


async def _path_of(created: asyncio.Future[Created]) -> str:
    return (await created).path
