"""The client: every operation of the service as a plain function that returns a future.

    async with paddock.connect("127.0.0.1:2181") as client:
        await client.create("/color", b"blue")
        data, stat = await client.get("/color")

A call queues its request at once and returns a future, so many can be under way without a task for
each. Whoever wants a deadline uses `asyncio.timeout`; a call that was given up is not sent, or its
answer is not looked at, and it sets no watch.

Where a call takes a `watch`, that is a function that is called once, with an `Event`, when what was
read has changed; True stands for the client's default watcher. Where one takes a `version`, it is
refused unless the node has that one; -1 stands for any. Everywhere, InvalidArgumentError says that
an argument cannot be used, and nothing was sent.
"""

from __future__ import annotations

import asyncio
import copy
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar

from paddock.client.multiread import MultiRead
from paddock.client.operations.walk import TreeWalk, WalkedNode
from paddock.client.requests import compound, decoding, trees
from paddock.client.requests.arguments import (
    check_count,
    check_credentials,
    check_flag,
    check_mark,
    check_protection,
    check_settings,
    check_watch_kind,
    check_watcher,
)
from paddock.client.requests.dispatcher import Gathering
from paddock.client.requests.encoder import ANY_VERSION, Encoder
from paddock.client.requests.frames import REQUEST_BYTES_MAX, encoded
from paddock.client.requests.request_sender import Caller, Watch
from paddock.client.results import Children, Created, NodeData
from paddock.client.session.hosts import Host, HostRing, Randomness
from paddock.client.session.sasl import SaslCredentials
from paddock.client.session.session import Session
from paddock.client.session.state_publisher import StateListener
from paddock.client.states import SessionState
from paddock.client.transaction import Transaction
from paddock.client.watches.streams import Change, watch_node, watch_tree
from paddock.client.watches.watches import Watcher, WatchKind
from paddock.client.watches.watching import Watching
from paddock.protocol import opcodes, paths
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.protocol.jute import Reader
from paddock.protocol.records import Stat
from paddock.protocol.requests import AuthPacket

T = TypeVar("T")

# A node to be created: its data and ACL; whether it is ephemeral, sequential, a container; its TTL.
NewNode: TypeAlias = tuple[bytes | None, Sequence[ACL], bool, bool, bool, float | None]

_CONFIG: Final = "/zookeeper/config"
_CONFIG_PATH: Final = _CONFIG.encode()
_CLOSE_SECONDS: Final = 5.0


class Client:
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
        sasl: SaslCredentials | None = None,
        default_watcher: Watcher | None = None,
        max_request_bytes: int = REQUEST_BYTES_MAX,
    ) -> None:
        check_settings(session_timeout, random, tls, read_only, sasl, max_request_bytes)
        if default_watcher is not None:
            check_watcher("default_watcher", default_watcher)
        self._make_another = partial(
            Client,
            hosts,
            chroot,
            session_timeout,
            random,
            tls=tls,
            read_only=read_only,
            sasl=sasl,
            max_request_bytes=max_request_bytes,
        )
        self._chroot = chroot
        # The connection string, for people to read.
        self._service = ",".join(map(str, hosts)) + chroot
        self._encode = Encoder(chroot)
        self._random = random
        self._session = Session(
            HostRing(hosts, random),
            session_timeout,
            random,
            own_path=self._encode.own,
            tls=tls,
            read_only=read_only,
            sasl=sasl,
        )
        self._session.watches.default = default_watcher
        self._ask = Caller(self._session, max_request_bytes)
        self._watching = Watching(self._session, self._encode, self._ask)

    def __repr__(self) -> str:
        return f"<paddock.Client {self._service} {self.state} session 0x{self.session_id:x}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def state(self) -> SessionState:
        """How things are with the service, at this moment."""
        return self._session.state

    @property
    def session_id(self) -> int:
        """The number of the session, which its ephemeral nodes have as `ephemeral_owner`."""
        return self._session.id

    @property
    def session_password(self) -> bytes:
        """What proves, with its number, that the session is ours: whoever has it can end it."""
        return self._session.password

    @property
    def session_timeout(self) -> float:
        """The seconds that the service granted."""
        return self._session.timeout

    @property
    def session_valid_until(self) -> float:
        """The time, by the event loop's clock, until which the session surely lives.

        That is the session timeout after the sending of the last request that was answered, pings
        included. Without a session it is minus infinity. A server in read-only mode cannot vouch
        for a session, so on one it stays as it was.
        """
        return self._session.valid_until

    @property
    def last_zxid(self) -> int:
        """The number of the newest write that we surely know of, whoever has made it.

            await client.sync()
            print(client.last_zxid >= (await client.get("/config")).stat.mzxid)  # True

        After a `sync`, what is larger was written since.
        """
        return self._session.exchange.seen_zxid

    def states(self) -> AsyncIterator[SessionState]:
        """Give the present state of the session, then every newer one, until a final one.

            async for state in client.states():
                print(state)  # CONNECTED
                if state.is_connected:
                    break

        None is left out, however slowly it is read.
        """
        return self._session.states.stream()

    def add_listener(self, listener: StateListener) -> None:
        """Have something called with every state from the next one on, at once and in order.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        check_watcher("listener", listener)
        self._session.states.add(listener)

    def remove_listener(self, listener: StateListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._session.states.remove(listener)

    async def start(self) -> None:
        """Open the session, as entering the scope does; whoever calls this calls `close`, too.

        Raises ConnectionLostError if no server gives us a session within the session timeout, and
        UsageError if it was opened before: a client has one session.
        """
        await self._session.start()

    async def close(self) -> None:
        """End the session, and with it its ephemeral nodes and watches.

        What was asked before is answered first, if that takes no longer than a few seconds. A
        service that cannot be reached finds out by itself when the session timeout is over. Closing
        twice is fine. What is asked from then on raises SessionExpiredError.
        """
        await self._session.close(min(_CLOSE_SECONDS, self._session.timeout))
        # Every request of theirs fails now, so they end, with an error that says why.
        await self._ask.wait_for_tasks()

    def another(self) -> Client:
        """Give a client like this one, with a session of its own that is still to be opened.

            async with client.another() as other:
                print(other.session_id == client.session_id)  # False

        It has the same servers, settings and credentials, and nothing else: no watches, no
        listeners, no default watcher. It is for what has to go on when a session has expired.
        """
        other = self._make_another()
        other._session.introductions.learn(self._session.introductions.known)
        return other

    def start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Have something done that may outlive its caller, such as tidying up after it.

        The client owns the task: it is cancelled when the client is closed, once the session has
        ended. What it raises goes to the event loop's exception handler, if nobody awaits it, but
        not that the session is over if that is because the client was closed.
        """
        return self._ask.start_task(work)

    def together(self) -> AbstractContextManager[None]:
        """Give a scope whose requests are written as one, at its end; nothing is awaited in it.

            with client.together():
                creating = client.create("/color", b"blue")
                listing = client.children("/")
            print(await creating, await listing)  # /color [...]

        Requests that are made in one pass of the event loop are few writes in any case. This is for
        those that belong together, where every microsecond counts.
        """
        return Gathering(self._session.exchange)

    def new_mark(self) -> str:
        """Give 32 letters and digits that nobody else has, to know something again by."""
        return self._random.randbytes(16).hex()

    # Reading.

    def exists(self, path: str, *, watch: Watch = None) -> asyncio.Future[Stat | None]:
        """Give the stat of a node, or None if there is no such node.

            print(await client.exists("/nothing"))  # None
            stat = await client.exists("/config")
            print(stat.version, stat.data_length)  # 0 2

        The watch fires when the node is created, changed or deleted.
        """
        return self._ask.read(opcodes.EXISTS, path, self._encode.full(path), watch, decoding.stat)

    def get(self, path: str, *, watch: Watch = None) -> asyncio.Future[NodeData]:
        """Give the data and the stat of a node.

            data, stat = await client.get("/config")
            print(data, stat.version)  # b'v1' 0

        The watch fires when the node is changed or deleted. Raises NoNodeError, NoAuthError.
        """
        return self._ask.read(
            opcodes.GET_DATA, path, self._encode.full(path), watch, decoding.node_data
        )

    def children(self, path: str, *, watch: Watch = None) -> asyncio.Future[list[str]]:
        """Give the names of a node's children, in no particular order.

            await client.create("/config/color")
            print(await client.children("/config"))  # ['color']

        The watch fires when a child comes or goes, and when the node itself is deleted. Raises
        NoNodeError, NoAuthError.
        """
        return self._ask.read(
            opcodes.GET_CHILDREN, path, self._encode.full(path), watch, decoding.names
        )

    def children_with_stat(self, path: str, *, watch: Watch = None) -> asyncio.Future[Children]:
        """Give the names of a node's children, and its stat, as they were at one moment.

            names, stat = await client.children_with_stat("/config")
            print(names, stat.num_children)  # [] 0

        The watch is the one of `children`.
        """
        full = self._encode.full(path)
        return self._ask.read(opcodes.GET_CHILDREN2, path, full, watch, decoding.children)

    def get_acl(self, path: str) -> asyncio.Future[tuple[list[ACL], Stat]]:
        """Give who may do what with a node, and its stat.

            acl, stat = await client.get_acl("/config")
            print(acl == [*paddock.OPEN_ACL], stat.aversion)  # True 0

        Digests are shown only to whoever may ADMIN the node. Raises NoNodeError, NoAuthError.
        """
        return self._ask.call(
            opcodes.GET_ACL,
            self._encode.path(path),
            path,
            decoding.acl_and_stat,
            is_repeatable=True,
        )

    def count_descendants(self, path: str) -> asyncio.Future[int]:
        """Count all nodes below a node, at any depth.

        The server does the counting. Raises NoNodeError.
        """
        body = self._encode.path(path)
        operation = opcodes.GET_ALL_CHILDREN_NUMBER
        return self._ask.call(operation, body, path, decoding.number, is_repeatable=True)

    def ephemerals(self, path: str = "/") -> asyncio.Future[list[str]]:
        """Give the paths of this session's ephemeral nodes at and below a path.

            await client.create("/worker", ephemeral=True)
            print(await client.ephemerals())  # ['/worker']

        Paths begin with the one given, as text: `/work` finds `/worker`, too.
        """
        body = self._encode.path(path)
        return self._ask.call(
            opcodes.GET_EPHEMERALS, body, path, self._decode_paths, is_repeatable=True
        )

    def who_am_i(self) -> asyncio.Future[list[tuple[str, str]]]:
        """Give the schemes and users that the server knows us by.

            await client.add_auth("digest", b"alice:secret")
            print(await client.who_am_i())  # [..., ('digest', 'alice')]

        Servers before 3.7 do not know the question: UnimplementedError.
        """
        return self._ask.call(opcodes.WHO_AM_I, b"", None, decoding.identities, is_repeatable=True)

    def multi_read(self) -> MultiRead:
        """Begin a request of several reads, each with a result or an error of its own."""
        return MultiRead(self._encode, self._commit_reads)

    def get_config(self, *, watch: Watch = None) -> asyncio.Future[NodeData]:
        """Give the configuration of the ensemble, and the stat of the node that holds it.

        It is a node of the service, outside any chroot, and events name it /zookeeper/config. A
        standalone server has an empty one.
        """
        return self._ask.read(opcodes.GET_DATA, _CONFIG, _CONFIG_PATH, watch, decoding.node_data)

    def reconfig(
        self,
        *,
        joining: str | Sequence[str] | None = None,
        leaving: str | Sequence[str] | None = None,
        members: str | Sequence[str] | None = None,
        version: int = ANY_VERSION,
    ) -> asyncio.Future[NodeData]:
        """Change the ensemble; give the new configuration and the stat of its node.

        Servers that join, `server.4=host:2888:3888;2181`, and the numbers of those that leave; or
        all members that there are to be. Each is text with commas, or a list. `version` is that of
        the configuration, whose last line has it, in hexadecimal.

        Raises ReconfigDisabledError, NoAuthError, ReconfigInProgressError, NewConfigNoQuorumError,
        BadVersionError, BadArgumentsError. After ConnectionLostError look at `get_config`.
        """
        body = self._encode.reconfig(joining, leaving, members, version)
        return self._ask.call(
            opcodes.RECONFIG, body, _CONFIG, decoding.node_data, is_repeatable=False
        )

    def sync(self, path: str = "/") -> asyncio.Future[None]:
        """Wait until the server we are attached to has everything that was written before, by
        anybody.

            await client.sync()
            data, stat = await client.get("/config")

        A server of an ensemble may be behind the others, though never behind what this client has
        seen. The path says nothing to today's servers.
        """
        body = self._encode.path(path)
        return self._ask.call(opcodes.SYNC, body, path, decoding.nothing, is_repeatable=True)

    def add_watch(
        self, path: str, watcher: Watcher, *, recursive: bool = False
    ) -> asyncio.Future[None]:
        """Have a watcher told of every change of a node, until it is removed.

            await client.add_watch("/config", print, recursive=True)
            await client.create("/config/color")

        A recursive watch hears of everything at and below the path, and not that children came or
        went, since it hears of the children themselves. Watches of both modes and of reads may
        stand on one path: each hears its own, once. What changed while the connection was lost is
        not told; `watch` finds out. Servers before 3.6 do not know it: UnimplementedError.
        """
        check_watcher("watcher", watcher)
        check_flag("recursive", recursive)
        return self._watching.add(path, watcher, recursive=recursive)

    def remove_watches(
        self, path: str, kind: WatchKind = WatchKind.ANY, *, watcher: Watcher | None = None
    ) -> asyncio.Future[None]:
        """Remove all watches of this client on a path, or those of a kind, or of one watcher.

        Those of other kinds and watchers stay, on every server, also on one that has only one watch
        for a connection at a path, as up to ZooKeeper 3.8. The server keeps no more than is needed;
        only a watch of a read beside a lasting one may stay there until its next event, of which
        nobody is told, if no event has shown yet that the server keeps them apart.
        While there is no connection it is done at once, since a new server is only told of the
        watches there are.
        Raises NoWatcherError if there were none when it was asked for. A lost connection is no
        matter: watches that are gone when it is asked again are what we wanted.
        """
        check_watch_kind(kind)
        if watcher is not None:
            check_watcher("watcher", watcher)
        return self._watching.remove(path, kind, watcher)

    def watch(self, path: str, *, recursive: bool = False) -> AsyncGenerator[Change, None]:
        """Give the present state of a node, then every newer one; with `recursive`, of its tree.

            async for change in client.watch("/config"):
                print(change.data)  # b'v1', then None
                if change.data is None:
                    break
                await client.delete("/config")

        A node that is not there has neither data nor stat. Changes in quick succession may come as
        one; the last state of each node always comes. What is given was read, and may be newer than
        the event that led to it: `change.stat.mzxid` is the zxid of the data. The stream goes on
        over lost connections, and raises SessionExpiredError when the session is over. Below the
        node, what we may not read is left out; of the node itself that raises NoAuthError.
        """
        self._encode.full(path)
        check_flag("recursive", recursive)
        return watch_tree(self, path) if recursive else watch_node(self, path)

    async def wait_connected(self) -> None:
        """Wait until a server can be reached; raises SessionExpiredError if the session is over."""
        await self._session.wait_connected()

    def forget_watcher(self, watcher: Watcher) -> None:
        """Tell a watcher of nothing any more, whatever it watches.

        The server is told of its lasting watches, if nobody else of this client needs them.
        """
        self._watching.forget(watcher)

    # Writing.

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
        protected: bool | str = False,
    ) -> asyncio.Future[str]:
        """Create a node; give its path, to which the service adds the number if it is sequential.

            print(await client.create("/app/color", b"blue", make_parents=True))  # /app/color
            print(await client.create("/app/job-", sequential=True))  # /app/job-0000000001
            await client.create("/app/worker", ephemeral=True)

        A node is persistent, or ephemeral (it ends with the session), or a container (it goes when
        its last child has gone), or has a TTL in seconds (it goes when it has no children and was
        not changed for so long). `make_parents` makes the nodes above it, open to all and without
        data, if they are not there, and the chroot as well.

        Raises NodeExistsError, NoNodeError (there is no parent), NoChildrenForEphemeralsError,
        NoAuthError, InvalidACLError. ConnectionLostError says that nobody knows whether it was
        created. A protected node has a mark of ours in its name, by which it is found again if the
        reply was lost; if somebody has deleted it before we look, it is created once more.

        A create that is cancelled may have been sent. Nobody looks for its node then, protected or
        not: an ephemeral one goes with the session, any other one stays. Whoever wants to look for
        it gives a mark of their own, from `new_mark`, in the place of True: the name begins with
        `_c_`, the mark and a hyphen.
        """
        node = (data, acl, ephemeral, sequential, container, ttl)
        if make_parents or protected:
            return self._create_path_carefully(path, node, make_parents, protected)
        operation, body = self._encode.create(opcodes.CREATE, path, *node)
        return self._ask.call(operation, body, path, self._decode_path, is_repeatable=False)

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
        protected: bool | str = False,
    ) -> asyncio.Future[Created]:
        """Create a node, as `create` does; give its path and its stat.

            path, stat = await client.create_with_stat("/color", b"blue")
            print(path, stat.version)  # /color 0

        The zxid of its creation, `stat.czxid`, is larger than that of any node before it.
        """
        node = (data, acl, ephemeral, sequential, container, ttl)
        if make_parents or protected:
            return self._create_carefully(path, node, make_parents, protected)
        return self._create(path, node)

    def set(
        self,
        path: str,
        data: bytes | None,
        *,
        version: int = ANY_VERSION,
        mark: bytes | None = None,
    ) -> asyncio.Future[Stat]:
        """Replace the data of a node, if it has this version; give its stat.

            data, stat = await client.get("/config")
            stat = await client.set("/config", data + b"+", version=stat.version)
            print(stat.version)  # 1

        Raises NoNodeError, BadVersionError, NoAuthError. ConnectionLostError says that nobody knows
        whether it happened.

        With a mark that is seldom so. A mark is a part of the data that is in no other write, of
        nobody, such as 16 random bytes, and it needs a version. When the reply is lost, the client
        looks for it after the next connect: it was us, and here is the stat; or it has not
        happened, and is sent again. Only if the node went on to another version meanwhile, or was
        deleted or made anew, nobody can know any more.
        """
        body = self._encode.set(path, data, version)
        if mark is not None:
            check_mark(mark, data, version)
        first = self._ask.call(opcodes.SET_DATA, body, path, Stat.read, is_repeatable=False)
        if mark is None:
            return first
        return self._set_carefully(path, body, first, version, mark)

    def delete(self, path: str, *, version: int = ANY_VERSION) -> asyncio.Future[None]:
        """Delete a node that has no children, if it has this version.

        Raises NoNodeError, NotEmptyError, BadVersionError, NoAuthError. ConnectionLostError says
        that nobody knows whether it was deleted; then NoNodeError the next time may be our own
        doing.
        """
        body = self._encode.version(path, version)
        return self._ask.call(opcodes.DELETE, body, path, decoding.nothing, is_repeatable=False)

    def delete_tree(self, path: str, *, batch: int = 1000) -> asyncio.Future[int]:
        """Delete a node with everything below it; give how many nodes the service said went.

            await client.create("/app/a/b", make_parents=True)
            print(await client.delete_tree("/app"))  # 3

        Not as one: others may see a part of it gone, and what they create there meanwhile goes too.
        `batch` is how many requests are under way at once. That it is not there is fine. Of the
        root of a service everything goes but the root itself and /zookeeper.

        It goes on after a lost connection; then the count may be too low, since of the deletes
        whose replies were lost nobody knows whether they were ours. ConnectionLostError says that a
        part of it may be left.
        """
        check_count("batch", batch)
        if self._encode.full(path) == paths.ROOT:
            return self._ask.own(trees.delete_everything(self, batch))
        return self._ask.own(trees.delete_tree(self, path, batch))

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
        """Walk a tree: yield a node and everything below it, parents first, children by name.

            await client.create("/app/b/c", make_parents=True)
            await client.create("/app/a", b"blue")
            async for node in client.walk("/app", data=True):
                print(node.path, node.depth, node.data)  # /app 0 b'', then /app/a 1 b'blue', ...

        Each node comes with its stat; with its data if `data` is True, or a function of path and
        stat that returns True; with its ACL if `acl` is True. `depth` limits the levels below the
        path, `max_children` the children of each node. `after` resumes a walk behind a path of the
        tree, whether that node still exists or not. Set `node.descends` to False to leave out what
        is below a node.

        Several hundred requests may be in flight, none while a node is yielded, and memory is
        bounded. It is no snapshot: nodes that come or go meanwhile may be left out. A node that may
        not be read comes with an `error`. Raises NoNodeError if the node itself does not exist.
        """
        limits = {"depth": depth, "max_children": max_children}
        return TreeWalk(self, path, **limits, data=data, acl=acl, after=after).nodes()

    def set_acl(
        self, path: str, acl: Sequence[ACL], *, version: int = ANY_VERSION
    ) -> asyncio.Future[Stat]:
        """Replace the ACL of a node, if its ACL has this version; give its stat.

            acl = [paddock.digest_acl("alice", "secret"), *paddock.READ_ONLY_ACL]
            stat = await client.set_acl("/config", acl, version=0)
            print(stat.aversion)  # 1

        The version is `stat.aversion`, which counts the changes of the ACL alone. Raises
        NoNodeError, BadVersionError, NoAuthError, InvalidACLError; and ConnectionLostError, when
        nobody knows.
        """
        body = self._encode.set_acl(path, acl, version)
        return self._ask.call(opcodes.SET_ACL, body, path, Stat.read, is_repeatable=False)

    def add_auth(self, scheme: str, credentials: bytes | None) -> asyncio.Future[None]:
        """Say who we are, in addition to what was said before.

            await client.add_auth("digest", b"alice:secret")
            await client.create("/private", acl=paddock.CREATOR_ALL_ACL)

        It is said again after every reconnect. No server compares a digest with anything but ACLs,
        so a wrong password is accepted, and of no use. Credentials that are refused end the session
        with AuthenticationError. None is for schemes that need none, such as `ip`.
        """
        check_credentials(scheme, credentials)
        self._ask.check_size(opcodes.AUTH, encoded(AuthPacket(0, scheme, credentials)))
        return self._session.authenticate(scheme, credentials)

    def transaction(self) -> Transaction:
        """Begin a transaction: operations that happen together, or not at all.

            async with client.transaction() as transaction:
                transaction.check("/config", version=0)
                transaction.create("/color", b"blue")
            print(transaction.results)  # [None, '/color']

        Nothing is sent before its end. Raises TransactionFailedError then if it was refused.
        """
        return Transaction(self._encode, self._commit)

    # How it is done.

    def _commit_reads(self, body: bytes, decode: Callable[[Reader], None]) -> asyncio.Future[None]:
        return self._ask.call(opcodes.MULTI_READ, body, None, decode, is_repeatable=True)

    def _commit(
        self, body: bytes, decode: Callable[[Reader], list[Any]]
    ) -> asyncio.Future[list[Any]]:
        return self._ask.call(opcodes.MULTI, body, None, decode, is_repeatable=False)

    def _create(self, path: str, node: NewNode) -> asyncio.Future[Created]:
        operation, body = self._encode.create(opcodes.CREATE2, path, *node)
        return self._ask.call(operation, body, path, self._decode_created, is_repeatable=False)

    def _create_carefully(
        self, path: str, node: NewNode, make_parents: bool, protected: bool | str
    ) -> asyncio.Future[Created]:
        check_flag("make_parents", make_parents)
        check_protection(protected)
        marked, mark = self._marked(path, protected) if protected else (path, "")
        # Queued at once, so that it stands in its place among the calls.
        first = self._create(marked, node)
        return self._ask.own(
            compound.create_carefully(
                self,
                marked,
                first,
                lambda: self._create(marked, node),
                mark,
                with_parents=make_parents,
                root=self._root(),
            ),
            first,
        )

    def _root(self) -> compound.Root | None:
        """Give what is needed to make our root, if it is a node like any other."""
        if not self._chroot:
            return None
        whole = copy.copy(self)
        whole._chroot, whole._encode = "", Encoder("")
        return compound.Root(whole, self._chroot)

    def _create_path_carefully(
        self, path: str, node: NewNode, make_parents: bool, protected: bool | str
    ) -> asyncio.Future[str]:
        created = self._create_carefully(path, node, make_parents, protected)
        return self._ask.own(_path_of(created), created)

    def _set_carefully(
        self, path: str, body: bytes, first: asyncio.Future[Stat], version: int, mark: bytes
    ) -> asyncio.Future[Stat]:
        def write() -> asyncio.Future[Stat]:
            return self._ask.call(opcodes.SET_DATA, body, path, Stat.read, is_repeatable=False)

        seen_zxid = self._session.exchange.last_zxid
        careful = compound.set_carefully(self, path, first, write, version, mark, seen_zxid)
        return self._ask.own(careful, first)

    def _marked(self, path: str, protected: bool | str) -> tuple[str, str]:
        """Give a path with a mark of ours in its name, and what the name begins with."""
        self._encode.to_be_created(path, True)
        own = protected if isinstance(protected, str) else self.new_mark()
        mark = f"{compound.PROTECTION_PREFIX}{own}-"
        cut = path.rfind("/") + 1
        return f"{path[:cut]}{mark}{path[cut:]}", mark

    def _decode_path(self, reader: Reader) -> str:
        return self._encode.own(reader.string())

    def _decode_created(self, reader: Reader) -> Created:
        return Created(self._encode.own(reader.string()), Stat.read(reader))

    def _decode_paths(self, reader: Reader) -> list[str]:
        return [self._encode.own(path) for path in reader.strings()]


async def _path_of(created: asyncio.Future[Created]) -> str:
    return (await created).path
