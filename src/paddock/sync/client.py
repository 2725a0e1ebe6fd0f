"""The blocking twin of `paddock.client`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from paddock.client.client import Client as AsyncClient
from paddock.client.multiread import MultiRead as AsyncMultiRead
from paddock.client.multiread import Reading
from paddock.client.operations.feeds import FeedChange
from paddock.client.operations.request_sender import Watch
from paddock.client.operations.streams import Change
from paddock.client.operations.walk import WalkedNode
from paddock.client.requests.encoder import ANY_VERSION
from paddock.client.results import Children, Created, NodeData
from paddock.client.session.state_publisher import StateListener
from paddock.client.states import SessionState
from paddock.client.transaction import Transaction as AsyncTransaction
from paddock.client.watches.watches import Watcher, WatchKind
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.protocol.records import Stat
from paddock.sync.bridge import Bridge, Owner, ScopedTwin
from paddock.sync.streams import Stream


class Transaction(ScopedTwin[AsyncTransaction]):
    """Operations that are gathered, to be carried out together."""

    @property
    def results(self) -> list[Any]:
        """What came of each operation, once it is committed: the path of a create, the stat of a
        set, None for the rest."""
        return self._inner.results

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
    ) -> Self:
        """Create a node, as `Client.create` does; its result is the path."""
        self._inner.create(
            path,
            data,
            acl=acl,
            ephemeral=ephemeral,
            sequential=sequential,
            container=container,
            ttl=ttl,
        )
        return self

    def set(self, path: str, data: bytes | None, *, version: int = ANY_VERSION) -> Self:
        """Replace the data of a node, if it has this version; its result is the stat."""
        self._inner.set(path, data, version=version)
        return self

    def delete(self, path: str, *, version: int = ANY_VERSION) -> Self:
        """Delete a node that has no children, if it has this version."""
        self._inner.delete(path, version=version)
        return self

    def check(self, path: str, *, version: int = ANY_VERSION) -> Self:
        """Have all of it fail unless the node is there and has this version."""
        self._inner.check(path, version=version)
        return self

    def commit(self, *, patient: bool = False) -> list[Any]:
        """Carry it out, once; return the result of each operation.

        Raises TransactionFailedError if it was refused.

        In an exact session a `patient` one does not fail when the session may be over: it waits
        until its outcome is known, or the session has ended.
        """
        return self._bridge.call(self._inner.commit, patient=patient)


class MultiRead(ScopedTwin[AsyncMultiRead]):
    """Reads that are gathered, to be carried out with one request."""

    def get(self, path: str) -> Reading[NodeData]:
        """Read the data and the stat of a node."""
        return self._inner.get(path)

    def children(self, path: str) -> Reading[list[str]]:
        """Read the names of a node's children."""
        return self._inner.children(path)

    def commit(self) -> None:
        """Carry them out. Repeated after a lost connection, since reading does no harm.

        Raises ConnectionLostError if no server answers in time; then none of them has a result.
        """
        self._bridge.call(self._inner.commit)


class Client(Owner[AsyncClient]):
    """A client of the service, with a session of its own while it is open."""

    def __enter__(self) -> Self:
        return self._open(self._inner.__aenter__)

    @property
    def state(self) -> SessionState:
        """The present state of the session."""
        return self._inner.state

    @property
    def session_id(self) -> int:
        """The id of the session; its ephemeral nodes have it as `ephemeral_owner`."""
        return self._inner.session_id

    @property
    def session_password(self) -> bytes:
        """The password of the session: with the id, it is enough to end the session."""
        return self._inner.session_password

    @property
    def session_timeout(self) -> float:
        """The session timeout that the service granted, in seconds."""
        return self._inner.session_timeout

    @property
    def is_exact(self) -> bool:
        """Whether the session is exact: no reply to a write is lost for good while it lives.

        See `exact` of `connect`.
        """
        return self._inner.is_exact

    @property
    def session_valid_until(self) -> float:
        """The time, by `time.monotonic()`, before which the session cannot expire.

        That is the session timeout after the last request was sent that has a reply, pings
        included. Without a session it is minus infinity. Replies of a server in read-only mode do
        not count.
        """
        return self._inner.session_valid_until

    @property
    def last_zxid(self) -> int:
        """The largest zxid that this client has seen.

            client.sync()
            print(client.last_zxid >= (client.get("/config")).stat.mzxid)  # True

        Writes after a `sync` have a larger one.
        """
        return self._inner.last_zxid

    def states(self) -> Stream[SessionState]:
        """Yield the present state of the session, then every later one, until a final one.

            for state in client.states():
                print(state)  # CONNECTED
                if state.is_connected:
                    break

        No state is skipped, however slowly they are read.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.states))

    def add_listener(self, listener: StateListener) -> None:
        """Call a function with every later state, at once and in order.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: StateListener) -> None:
        """Remove a listener, if it was added."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))

    def start(self) -> None:
        """Open the session, as entering the scope does; `close` it afterwards.

        Raises ConnectionLostError if no server grants a session within the session timeout, and
        UsageError if it was opened before: a client has one session.
        """
        self._open(self._inner.start)

    def close(self) -> None:
        """End the session, and with it its ephemeral nodes and watches.

        Requests in flight are completed first. Where no server answers, it takes five seconds, or
        the session timeout if that is shorter, and one more for the connection; the session then
        expires after its timeout. Closing twice is fine. Later calls raise SessionExpiredError.
        """
        self._close()

    def another(self) -> Client:
        """Return a client like this one, with a session of its own that is not open yet.

            with client.another() as other:
                print(other.session_id == client.session_id)  # False

        It has the same servers, settings and credentials, but no watches, listeners or default
        watcher. Use it to go on after a session has expired.
        """
        bridge = Bridge()
        return Client(bridge, bridge.own(self._inner.another))

    def new_mark(self) -> str:
        """Return 32 random letters and digits that identify something."""
        return self._bridge.run(self._inner.new_mark)

    def multi_read(self) -> MultiRead:
        """Begin a request of several reads, each with a result or an error of its own."""
        return MultiRead._of(self._bridge, self._bridge.run(self._inner.multi_read))

    def transaction(self) -> Transaction:
        """Begin a transaction: operations that are applied atomically, or not at all.

            with client.transaction() as transaction:
                transaction.check("/config", version=0)
                transaction.create("/color", b"blue")
            print(transaction.results)  # [None, '/color']

        It is sent at the end of the scope. Raises TransactionFailedError if it is refused.
        """
        return Transaction._of(self._bridge, self._bridge.run(self._inner.transaction))

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
    ) -> str:
        """Create a node; return its path, which ends with a number if it is sequential.

            print(client.create("/app/color", b"blue", make_parents=True))  # /app/color
            print(client.create("/app/job-", sequential=True))  # /app/job-0000000001
            client.create("/app/worker", ephemeral=True)

        A node is persistent; or ephemeral: it is deleted when the session ends; or a container: it
        is deleted after its last child; or it has a TTL in seconds: it is deleted when it has no
        children and was not changed for so long. `make_parents` creates missing nodes above it,
        open to all and without data, and the chroot as well. `exist_ok` accepts a node that exists,
        and leaves it as it is.

        Raises NodeExistsError, NoNodeError (no parent), NoChildrenForEphemeralsError, NoAuthError,
        InvalidACLError. After ConnectionLostError the outcome is unknown. A protected node has a
        mark in its name. In an ordinary session it is found by this after a lost reply; if it was
        deleted before we look, it is created once more.

        A create that is given up may have been sent; its node stays, or goes with the session if
        it is ephemeral. To find it, give a mark from `new_mark` as `protected`: the name begins
        with `_c_`, the mark and a hyphen.
        """
        return self._bridge.call(
            self._inner.create,
            path,
            data,
            acl=acl,
            ephemeral=ephemeral,
            sequential=sequential,
            container=container,
            ttl=ttl,
            make_parents=make_parents,
            exist_ok=exist_ok,
            protected=protected,
        )

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
    ) -> Created:
        """Create a node, as `create` does; return its path and its stat.

            path, stat = client.create_with_stat("/color", b"blue")
            print(path, stat.version)  # /color 0

        The zxid of its creation, `stat.czxid`, is larger than that of any earlier node.
        """
        return self._bridge.call(
            self._inner.create_with_stat,
            path,
            data,
            acl=acl,
            ephemeral=ephemeral,
            sequential=sequential,
            container=container,
            ttl=ttl,
            make_parents=make_parents,
            exist_ok=exist_ok,
            protected=protected,
        )

    def ensure_path(self, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        """Create a node and all missing nodes above it, without data; what exists stays as it is.

            client.ensure_path("/app/workers")
            client.ensure_path("/app/workers")
            print(client.children("/app"))  # ['workers']

        Each node that it creates gets the ACL, the chroot and those above it included. It needs no
        permission to create what exists. It goes on after a lost connection, and when others delete
        what it has created; after ten times of that it raises NoNodeError. Raises NoAuthError,
        InvalidACLError, NoChildrenForEphemeralsError. After ConnectionLostError some of the nodes
        may have been created.
        """
        self._bridge.call(self._inner.ensure_path, path, acl=acl)

    def set(
        self,
        path: str,
        data: bytes | None,
        *,
        version: int = ANY_VERSION,
        mark: bytes | None = None,
    ) -> Stat:
        """Replace the data of a node, if it has this version; return its stat.

            data, stat = client.get("/config")
            stat = client.set("/config", data + b"+", version=stat.version)
            print(stat.version)  # 1

        Raises NoNodeError, BadVersionError, NoAuthError. After ConnectionLostError the outcome is
        unknown.

        With a mark it is seldom unknown, also in an ordinary session. A mark is a part of the data
        that is in no other write, such as 16 random bytes, and it needs a version. After a lost
        reply the client looks for it: either the write succeeded, or it is sent again. Only if the
        node has gone on to another version, or was deleted or created anew, the outcome stays
        unknown.
        """
        return self._bridge.call(self._inner.set, path, data, version=version, mark=mark)

    def delete_tree(self, path: str, *, batch: int = 1000) -> int:
        """Delete a node and everything below it; return how many nodes were deleted.

            client.create("/app/a/b", make_parents=True)
            print(client.delete_tree("/app"))  # 3

        It is not atomic: nodes that others create there meanwhile are deleted as well. At most
        `batch` requests are in flight. A node that does not exist is fine. Of the root, everything
        goes but the root itself and /zookeeper.

        It goes on after a lost connection. In an ordinary session the count may be too low then,
        since deletes without a reply are not counted. After ConnectionLostError a part of the tree
        may be left.
        """
        return self._bridge.call(self._inner.delete_tree, path, batch=batch)

    def walk(
        self,
        path: str = "/",
        *,
        depth: int | None = None,
        max_children: int | None = None,
        data: bool | Callable[[str, Stat], bool] = False,
        acl: bool = False,
        after: str | None = None,
    ) -> Stream[WalkedNode]:
        """Yield a node and everything below it, parents first, children by name.

            client.create("/app/b/c", make_parents=True)
            client.create("/app/a", b"blue")
            for node in client.walk("/app", data=True):
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
        return Stream(
            self._bridge.portal,
            self._bridge.run(
                self._inner.walk,
                path,
                depth=depth,
                max_children=max_children,
                data=data,
                acl=acl,
                after=after,
            ),
        )

    def watch(self, path: str, *, recursive: bool = False) -> Stream[Change]:
        """Yield the present state of a node, then every later one; with `recursive`, of its tree.

            for change in client.watch("/config"):
                print(change.data)  # b'v1', then None
                if change.data is None:
                    break
                client.delete("/config")

        A node that does not exist has neither data nor stat. Changes in quick succession may come
        as one; the last state of each node always comes. A state is read after its event, so it may
        be newer: `change.stat.mzxid` is the zxid of the data. The stream survives lost connections,
        and raises SessionExpiredError when the session is over. Nodes below without permission to
        read them are left out; of the node itself that raises NoAuthError.
        """
        return Stream(
            self._bridge.portal, self._bridge.run(self._inner.watch, path, recursive=recursive)
        )

    def changes(
        self,
        path: str = "/",
        *,
        since: int | None = None,
        best_effort: bool = False,
        progress: bool = False,
    ) -> Stream[FeedChange]:
        """Yield every change of a node and of all below it, in order and each once.

            for change in client.changes("/config", progress=True):
                print(change.kind, change.data)  # PROGRESS None, then DATA b'v2'
                if change.kind is paddock.FeedKind.DATA:
                    break
                client.set("/config", b"v2")

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
        return Stream(
            self._bridge.portal,
            self._bridge.run(
                self._inner.changes, path, since=since, best_effort=best_effort, progress=progress
            ),
        )

    def exists(self, path: str, *, watch: Watch = None) -> Stat | None:
        """Return the stat of a node, or None if it does not exist.

            print(client.exists("/nothing"))  # None
            stat = client.exists("/config")
            print(stat.version, stat.data_length)  # 0 2

        The watch fires when the node is created, changed or deleted.
        """
        return self._bridge.call(
            self._inner.exists, path, watch=self._bridge.callbacks.relay(watch)
        )

    def get(self, path: str, *, watch: Watch = None) -> NodeData:
        """Return the data and the stat of a node.

            data, stat = client.get("/config")
            print(data, stat.version)  # b'v1' 0

        The watch fires when the node is changed or deleted. Raises NoNodeError, NoAuthError.
        """
        return self._bridge.call(self._inner.get, path, watch=self._bridge.callbacks.relay(watch))

    def children(self, path: str, *, watch: Watch = None) -> list[str]:
        """Return the names of a node's children, in no particular order.

            client.create("/config/color")
            print(client.children("/config"))  # ['color']

        The watch fires when a child is created or deleted, and when the node itself is deleted.
        Raises NoNodeError, NoAuthError.
        """
        return self._bridge.call(
            self._inner.children, path, watch=self._bridge.callbacks.relay(watch)
        )

    def children_with_stat(self, path: str, *, watch: Watch = None) -> Children:
        """Return the names of a node's children and its stat, read atomically.

            names, stat = client.children_with_stat("/config")
            print(names, stat.num_children)  # [] 0

        The watch is that of `children`.
        """
        return self._bridge.call(
            self._inner.children_with_stat, path, watch=self._bridge.callbacks.relay(watch)
        )

    def get_acl(self, path: str) -> tuple[list[ACL], Stat]:
        """Return the ACL of a node and its stat.

            acl, stat = client.get_acl("/config")
            print(acl == [*paddock.OPEN_ACL], stat.aversion)  # True 0

        Digests are hidden without ADMIN permission. Raises NoNodeError, NoAuthError.
        """
        return self._bridge.call(self._inner.get_acl, path)

    def count_descendants(self, path: str) -> int:
        """Return the number of nodes below a node, at any depth.

        The server counts them. Raises NoNodeError.
        """
        return self._bridge.call(self._inner.count_descendants, path)

    def ephemerals(self, path: str = "/") -> list[str]:
        """Return the paths of this session's ephemeral nodes that begin with a path.

            client.create("/worker", ephemeral=True)
            print(client.ephemerals())  # ['/worker']

        It is a prefix of the text: `/work` finds `/worker`, too.
        """
        return self._bridge.call(self._inner.ephemerals, path)

    def who_am_i(self) -> list[tuple[str, str]]:
        """Return the schemes and users that the server has authenticated this session as.

            client.add_auth("digest", b"alice:secret")
            print(client.who_am_i())  # [..., ('digest', 'alice')]

        Servers before 3.7 raise UnimplementedError.
        """
        return self._bridge.call(self._inner.who_am_i)

    def get_config(self, *, watch: Watch = None) -> NodeData:
        """Return the configuration of the ensemble and the stat of its node.

        The node is outside any chroot; events name it /zookeeper/config. On a standalone server it
        is empty.
        """
        return self._bridge.call(self._inner.get_config, watch=self._bridge.callbacks.relay(watch))

    def reconfig(
        self,
        *,
        joining: str | Sequence[str] | None = None,
        leaving: str | Sequence[str] | None = None,
        members: str | Sequence[str] | None = None,
        version: int = ANY_VERSION,
    ) -> NodeData:
        """Change the ensemble; return the new configuration and the stat of its node.

        Give servers that join, `server.4=host:2888:3888;2181`, and the numbers of those that leave;
        or all members. Each is text with commas, or a list. `version` is that of the configuration,
        in hexadecimal on its last line.

        Raises ReconfigDisabledError, NoAuthError, ReconfigInProgressError, NewConfigNoQuorumError,
        BadVersionError, BadArgumentsError. After ConnectionLostError look at `get_config`.
        """
        return self._bridge.call(
            self._inner.reconfig, joining=joining, leaving=leaving, members=members, version=version
        )

    def sync(self, path: str = "/") -> None:
        """Wait until our server has applied every write that was acknowledged before.

            client.sync()
            data, stat = client.get("/config")

        A server of an ensemble may be behind the others, though never behind what this client has
        seen. Today's servers ignore the path.
        """
        self._bridge.call(self._inner.sync, path)

    def add_watch(self, path: str, watcher: Watcher, *, recursive: bool = False) -> None:
        """Add a persistent watch: the watcher is called on every change until it is removed.

            client.add_watch("/config", print, recursive=True)
            client.create("/config/color")

        A recursive watch covers the node and everything below it; it gets no CHILDREN_CHANGED,
        since it gets the events of the children. Watches of both modes and of reads may share a
        path: each gets its own events, once. Events during a lost connection are not delivered;
        `watch` reads what was missed. Servers before 3.6 raise UnimplementedError.
        """
        self._bridge.call(
            self._inner.add_watch, path, self._bridge.callbacks.relay(watcher), recursive=recursive
        )

    def remove_watches(
        self, path: str, kind: WatchKind = WatchKind.ANY, *, watcher: Watcher | None = None
    ) -> None:
        """Remove this client's watches on a path: all, those of a kind, or those of one watcher.

        Other kinds and watchers keep theirs, also on servers that hold one watch per path and
        connection, as up to ZooKeeper 3.8. Without a connection it is done at once, since a new
        server is only sent the watches that are left. It is repeated after a lost connection.
        Raises NoWatcherError if there were none.
        """
        self._bridge.call(
            self._inner.remove_watches, path, kind, watcher=self._bridge.callbacks.relay(watcher)
        )

    def forget_watcher(self, watcher: Watcher) -> None:
        """Stop calling a watcher, whatever it watches.

        Its persistent watches are removed from the server unless other watchers need them.
        """
        self._bridge.run(self._inner.forget_watcher, self._bridge.callbacks.relay(watcher))

    def wait_connected(self) -> None:
        """Wait until a server is connected, however long that takes.

            client.wait_connected()
            print(client.state.is_connected)  # True

        Calls do not wait for so long: when the session may be over, they fail. Raises
        SessionExpiredError if the session is over.
        """
        self._bridge.call(self._inner.wait_connected)

    def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """Delete a node without children, if it has this version.

        Raises NoNodeError, NotEmptyError, BadVersionError, NoAuthError. After ConnectionLostError
        the outcome is unknown; NoNodeError on the next attempt may be our own doing.
        """
        self._bridge.call(self._inner.delete, path, version=version)

    def set_acl(self, path: str, acl: Sequence[ACL], *, version: int = ANY_VERSION) -> Stat:
        """Replace the ACL of a node, if the ACL has this version; return the stat.

            acl = [paddock.digest_acl("alice", "secret"), *paddock.READ_ONLY_ACL]
            stat = client.set_acl("/config", acl, version=0)
            print(stat.aversion)  # 1

        The version is `stat.aversion`, which counts changes of the ACL only. Raises NoNodeError,
        BadVersionError, NoAuthError, InvalidACLError. After ConnectionLostError the outcome is
        unknown.
        """
        return self._bridge.call(self._inner.set_acl, path, acl, version=version)

    def add_auth(self, scheme: str, credentials: bytes | None) -> None:
        """Authenticate the session, in addition to earlier credentials.

            client.add_auth("digest", b"alice:secret")
            client.create("/private", acl=paddock.CREATOR_ALL_ACL)

        It is repeated after every reconnect. Servers compare digests only with ACLs: a wrong
        password is accepted, and grants nothing. Credentials that are refused end the session with
        AuthenticationError. None is for schemes without credentials, such as `ip`.
        """
        self._bridge.call(self._inner.add_auth, scheme, credentials)
