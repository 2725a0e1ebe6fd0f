"""The operations of the service that are one request each; composed calls stand on top of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from paddock.client.operations.request_sender import RequestSender, Watch
from paddock.client.operations.watch_requests import WatchRequests
from paddock.client.requests import decoding
from paddock.client.requests.arguments import check_credentials, check_flag, check_watcher
from paddock.client.requests.encoder import ANY_VERSION, Encoder, encoded
from paddock.client.results import Children, NodeData
from paddock.client.session.session import Session
from paddock.client.watches.watches import Watcher, WatchKind
from paddock.errors import InvalidArgumentError
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL
from paddock.protocol.jute import Reader
from paddock.protocol.records import Stat
from paddock.protocol.requests import AuthPacket

_CONFIG: Final = "/zookeeper/config"
_CONFIG_PATH: Final = _CONFIG.encode()


class Operations:
    """Sends single requests of one session."""

    def __init__(self, session: Session, encode: Encoder, max_request_bytes: int) -> None:
        self._session = session
        self._encode = encode
        self._sender = RequestSender(session, max_request_bytes)
        self._watch_requests = WatchRequests(session, encode, self._sender)

    def exists(self, path: str, *, watch: Watch = None) -> asyncio.Future[Stat | None]:
        """Return the stat of a node, or None if it does not exist.

            print(await client.exists("/nothing"))  # None
            stat = await client.exists("/config")
            print(stat.version, stat.data_length)  # 0 2

        The watch fires when the node is created, changed or deleted.
        """
        return self._sender.send_read(
            opcodes.EXISTS, path, self._encode.full(path), watch, decoding.stat
        )

    def get(self, path: str, *, watch: Watch = None) -> asyncio.Future[NodeData]:
        """Return the data and the stat of a node.

            data, stat = await client.get("/config")
            print(data, stat.version)  # b'v1' 0

        The watch fires when the node is changed or deleted. Raises NoNodeError, NoAuthError.
        """
        return self._sender.send_read(
            opcodes.GET_DATA, path, self._encode.full(path), watch, decoding.node_data
        )

    def children(self, path: str, *, watch: Watch = None) -> asyncio.Future[list[str]]:
        """Return the names of a node's children, in no particular order.

            await client.create("/config/color")
            print(await client.children("/config"))  # ['color']

        The watch fires when a child is created or deleted, and when the node itself is deleted.
        Raises NoNodeError, NoAuthError.
        """
        return self._sender.send_read(
            opcodes.GET_CHILDREN, path, self._encode.full(path), watch, decoding.names
        )

    def children_with_stat(self, path: str, *, watch: Watch = None) -> asyncio.Future[Children]:
        """Return the names of a node's children and its stat, read atomically.

            names, stat = await client.children_with_stat("/config")
            print(names, stat.num_children)  # [] 0

        The watch is that of `children`.
        """
        return self._sender.send_read(
            opcodes.GET_CHILDREN2, path, self._encode.full(path), watch, decoding.children
        )

    def get_acl(self, path: str) -> asyncio.Future[tuple[list[ACL], Stat]]:
        """Return the ACL of a node and its stat.

            acl, stat = await client.get_acl("/config")
            print(acl == [*paddock.OPEN_ACL], stat.aversion)  # True 0

        Digests are hidden without ADMIN permission. Raises NoNodeError, NoAuthError.
        """
        body = self._encode.path(path)
        return self._sender.send(
            opcodes.GET_ACL, body, path, decoding.acl_and_stat, is_repeatable=True
        )

    def count_descendants(self, path: str) -> asyncio.Future[int]:
        """Return the number of nodes below a node, at any depth.

        The server counts them. Raises NoNodeError.
        """
        body = self._encode.path(path)
        return self._sender.send(
            opcodes.GET_ALL_CHILDREN_NUMBER, body, path, decoding.number, is_repeatable=True
        )

    def ephemerals(self, path: str = "/") -> asyncio.Future[list[str]]:
        """Return the paths of this session's ephemeral nodes that begin with a path.

            await client.create("/worker", ephemeral=True)
            print(await client.ephemerals())  # ['/worker']

        It is a prefix of the text: `/work` finds `/worker`, too.
        """
        body = self._encode.path(path)
        return self._sender.send(
            opcodes.GET_EPHEMERALS, body, path, self._decode_paths, is_repeatable=True
        )

    def who_am_i(self) -> asyncio.Future[list[tuple[str, str]]]:
        """Return the schemes and users that the server has authenticated this session as.

            await client.add_auth("digest", b"alice:secret")
            print(await client.who_am_i())  # [..., ('digest', 'alice')]

        Servers before 3.7 raise UnimplementedError.
        """
        return self._sender.send(
            opcodes.WHO_AM_I, b"", None, decoding.identities, is_repeatable=True
        )

    def get_config(self, *, watch: Watch = None) -> asyncio.Future[NodeData]:
        """Return the configuration of the ensemble and the stat of its node.

        The node is outside any chroot; events name it /zookeeper/config. On a standalone server it
        is empty.
        """
        return self._sender.send_read(
            opcodes.GET_DATA, _CONFIG, _CONFIG_PATH, watch, decoding.node_data
        )

    def reconfig(
        self,
        *,
        joining: str | Sequence[str] | None = None,
        leaving: str | Sequence[str] | None = None,
        members: str | Sequence[str] | None = None,
        version: int = ANY_VERSION,
    ) -> asyncio.Future[NodeData]:
        """Change the ensemble; return the new configuration and the stat of its node.

        Give servers that join, `server.4=host:2888:3888;2181`, and the numbers of those that leave;
        or all members. Each is text with commas, or a list. `version` is that of the configuration,
        in hexadecimal on its last line.

        Raises ReconfigDisabledError, NoAuthError, ReconfigInProgressError, NewConfigNoQuorumError,
        BadVersionError, BadArgumentsError. After ConnectionLostError look at `get_config`.
        """
        body = self._encode.reconfig(joining, leaving, members, version)
        return self._sender.send(opcodes.RECONFIG, body, _CONFIG, decoding.node_data)

    def sync(self, path: str = "/") -> asyncio.Future[None]:
        """Wait until our server has applied every write that was acknowledged before.

            await client.sync()
            data, stat = await client.get("/config")

        A server of an ensemble may be behind the others, though never behind what this client has
        seen. Today's servers ignore the path.
        """
        body = self._encode.path(path)
        return self._sender.send(opcodes.SYNC, body, path, decoding.nothing, is_repeatable=True)

    def add_watch(
        self, path: str, watcher: Watcher, *, recursive: bool = False
    ) -> asyncio.Future[None]:
        """Add a persistent watch: the watcher is called on every change until it is removed.

            await client.add_watch("/config", print, recursive=True)
            await client.create("/config/color")

        A recursive watch covers the node and everything below it; it gets no CHILDREN_CHANGED,
        since it gets the events of the children. Watches of both modes and of reads may share a
        path: each gets its own events, once. Events during a lost connection are not delivered;
        `watch` reads what was missed. Servers before 3.6 raise UnimplementedError.
        """
        check_watcher("watcher", watcher)
        check_flag("recursive", recursive)
        return self._watch_requests.add(path, watcher, recursive=recursive)

    def remove_watches(
        self, path: str, kind: WatchKind = WatchKind.ANY, *, watcher: Watcher | None = None
    ) -> asyncio.Future[None]:
        """Remove this client's watches on a path: all, those of a kind, or those of one watcher.

        Other kinds and watchers keep theirs, also on servers that hold one watch per path and
        connection, as up to ZooKeeper 3.8. Without a connection it is done at once, since a new
        server is only sent the watches that are left. It is repeated after a lost connection.
        Raises NoWatcherError if there were none.
        """
        if not isinstance(kind, WatchKind):
            raise InvalidArgumentError(f"kind: expected a WatchKind, not {kind!r}")
        if watcher is not None:
            check_watcher("watcher", watcher)
        return self._watch_requests.remove(path, kind, watcher)

    def forget_watcher(self, watcher: Watcher) -> None:
        """Stop calling a watcher, whatever it watches.

        Its persistent watches are removed from the server unless other watchers need them.
        """
        self._watch_requests.forget(watcher)

    async def wait_connected(self) -> None:
        """Wait until a server is connected, however long that takes.

            await client.wait_connected()
            print(client.state.is_connected)  # True

        Calls do not wait for so long: when the session may be over, they fail. Raises
        SessionExpiredError if the session is over.
        """
        await self._session.wait_connected()

    def delete(self, path: str, *, version: int = ANY_VERSION) -> asyncio.Future[None]:
        """Delete a node without children, if it has this version.

        Raises NoNodeError, NotEmptyError, BadVersionError, NoAuthError. After ConnectionLostError
        the outcome is unknown; NoNodeError on the next attempt may be our own doing.
        """
        body = self._encode.version(path, version)
        return self._sender.send(opcodes.DELETE, body, path, decoding.nothing)

    def set_acl(
        self, path: str, acl: Sequence[ACL], *, version: int = ANY_VERSION
    ) -> asyncio.Future[Stat]:
        """Replace the ACL of a node, if the ACL has this version; return the stat.

            acl = [paddock.digest_acl("alice", "secret"), *paddock.READ_ONLY_ACL]
            stat = await client.set_acl("/config", acl, version=0)
            print(stat.aversion)  # 1

        The version is `stat.aversion`, which counts changes of the ACL only. Raises NoNodeError,
        BadVersionError, NoAuthError, InvalidACLError. After ConnectionLostError the outcome is
        unknown.
        """
        body = self._encode.set_acl(path, acl, version)
        return self._sender.send(opcodes.SET_ACL, body, path, Stat.read)

    def add_auth(self, scheme: str, credentials: bytes | None) -> asyncio.Future[None]:
        """Authenticate the session, in addition to earlier credentials.

            await client.add_auth("digest", b"alice:secret")
            await client.create("/private", acl=paddock.CREATOR_ALL_ACL)

        It is repeated after every reconnect. Servers compare digests only with ACLs: a wrong
        password is accepted, and grants nothing. Credentials that are refused end the session with
        AuthenticationError. None is for schemes without credentials, such as `ip`.
        """
        check_credentials(scheme, credentials)
        self._sender.check_size(opcodes.AUTH, encoded(AuthPacket(0, scheme, credentials)))
        return self._session.authenticate(scheme, credentials)

    def _decode_paths(self, reader: Reader) -> list[str]:
        return [self._encode.own(path) for path in reader.strings()]
