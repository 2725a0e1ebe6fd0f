"""The blocking twin of `paddock.client.client`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from paddock.client.client import Client as AsyncClient
from paddock.client.operations.walk import WalkedNode
from paddock.client.requests.encoder import ANY_VERSION
from paddock.client.requests.request_sender import Watch
from paddock.client.results import Children, Created, NodeData
from paddock.client.session.state_publisher import StateListener
from paddock.client.states import SessionState
from paddock.client.watches.streams import Change
from paddock.client.watches.watches import Watcher, WatchKind
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.protocol.records import Stat
from paddock.sync.bridge import Owner
from paddock.sync.multiread import MultiRead
from paddock.sync.streams import Stream
from paddock.sync.transaction import Transaction


class Client(Owner[AsyncClient]):
    """A client of the service, with a session of its own while it is open."""

    def __enter__(self) -> Self:
        return self._open(self._inner.__aenter__)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def state(self) -> SessionState:
        """How things are with the service, at this moment."""
        return self._inner.state

    @property
    def session_id(self) -> int:
        """The number of the session, which its ephemeral nodes have as `ephemeral_owner`."""
        return self._inner.session_id

    @property
    def session_password(self) -> bytes:
        """What proves, with its number, that the session is ours: whoever has it can end it."""
        return self._inner.session_password

    @property
    def session_timeout(self) -> float:
        """The seconds that the service granted."""
        return self._inner.session_timeout

    @property
    def session_valid_until(self) -> float:
        """The time, by `time.monotonic()`, until which the session surely lives.

        That is the session timeout after the sending of the last request that was answered, pings
        included. Without a session it is minus infinity. A server in read-only mode cannot vouch
        for a session, so on one it stays as it was.
        """
        return self._inner.session_valid_until

    @property
    def last_zxid(self) -> int:
        """The number of the newest write that we surely know of, whoever has made it.

            client.sync()
            print(client.last_zxid >= (client.get("/config")).stat.mzxid)  # True

        After a `sync`, what is larger was written since.
        """
        return self._inner.last_zxid

    def states(self) -> Stream[SessionState]:
        """Give the present state of the session, then every newer one, until a final one.

            for state in client.states():
                print(state)  # CONNECTED
                if state.is_connected:
                    break

        None is left out, however slowly it is read.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.states))

    def add_listener(self, listener: StateListener) -> None:
        """Have something called with every state from the next one on, at once and in order.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: StateListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))

    def start(self) -> None:
        """Open the session, as entering the scope does; whoever calls this calls `close`, too.

        Raises ConnectionLostError if no server gives us a session within the session timeout, and
        UsageError if it was opened before: a client has one session.
        """
        self._open(self._inner.start)

    def close(self) -> None:
        """End the session, and with it its ephemeral nodes and watches.

        What was asked before is answered first, if that takes no longer than a few seconds. A
        service that cannot be reached finds out by itself when the session timeout is over. Closing
        twice is fine. What is asked from then on raises SessionExpiredError.
        """
        self._close()

    def new_mark(self) -> str:
        """Give 32 letters and digits that nobody else has, to know something again by."""
        return self._bridge.run(self._inner.new_mark)

    def exists(self, path: str, *, watch: Watch = None) -> Stat | None:
        """Give the stat of a node, or None if there is no such node.

            print(client.exists("/nothing"))  # None
            stat = client.exists("/config")
            print(stat.version, stat.data_length)  # 0 2

        The watch fires when the node is created, changed or deleted.
        """
        return self._bridge.call(
            self._inner.exists, path, watch=self._bridge.callbacks.relay(watch)
        )

    def get(self, path: str, *, watch: Watch = None) -> NodeData:
        """Give the data and the stat of a node.

            data, stat = client.get("/config")
            print(data, stat.version)  # b'v1' 0

        The watch fires when the node is changed or deleted. Raises NoNodeError, NoAuthError.
        """
        return self._bridge.call(self._inner.get, path, watch=self._bridge.callbacks.relay(watch))

    def children(self, path: str, *, watch: Watch = None) -> list[str]:
        """Give the names of a node's children, in no particular order.

            client.create("/config/color")
            print(client.children("/config"))  # ['color']

        The watch fires when a child comes or goes, and when the node itself is deleted. Raises
        NoNodeError, NoAuthError.
        """
        return self._bridge.call(
            self._inner.children, path, watch=self._bridge.callbacks.relay(watch)
        )

    def children_with_stat(self, path: str, *, watch: Watch = None) -> Children:
        """Give the names of a node's children, and its stat, as they were at one moment.

            names, stat = client.children_with_stat("/config")
            print(names, stat.num_children)  # [] 0

        The watch is the one of `children`.
        """
        return self._bridge.call(
            self._inner.children_with_stat, path, watch=self._bridge.callbacks.relay(watch)
        )

    def get_acl(self, path: str) -> tuple[list[ACL], Stat]:
        """Give who may do what with a node, and its stat.

            acl, stat = client.get_acl("/config")
            print(acl == [*paddock.OPEN_ACL], stat.aversion)  # True 0

        Digests are shown only to whoever may ADMIN the node. Raises NoNodeError, NoAuthError.
        """
        return self._bridge.call(self._inner.get_acl, path)

    def count_descendants(self, path: str) -> int:
        """Count all nodes below a node, at any depth.

        The server does the counting. Raises NoNodeError.
        """
        return self._bridge.call(self._inner.count_descendants, path)

    def ephemerals(self, path: str = "/") -> list[str]:
        """Give the paths of this session's ephemeral nodes at and below a path.

            client.create("/worker", ephemeral=True)
            print(client.ephemerals())  # ['/worker']

        Paths begin with the one given, as text: `/work` finds `/worker`, too.
        """
        return self._bridge.call(self._inner.ephemerals, path)

    def who_am_i(self) -> list[tuple[str, str]]:
        """Give the schemes and users that the server knows us by.

            client.add_auth("digest", b"alice:secret")
            print(client.who_am_i())  # [..., ('digest', 'alice')]

        Servers before 3.7 do not know the question: UnimplementedError.
        """
        return self._bridge.call(self._inner.who_am_i)

    def multi_read(self) -> MultiRead:
        """Begin a request of several reads, each with a result or an error of its own."""
        return MultiRead._of(self._bridge, self._bridge.run(self._inner.multi_read))

    def get_config(self, *, watch: Watch = None) -> NodeData:
        """Give the configuration of the ensemble, and the stat of the node that holds it.

        It is a node of the service, outside any chroot, and events name it /zookeeper/config. A
        standalone server has an empty one.
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
        """Change the ensemble; give the new configuration and the stat of its node.

        Servers that join, `server.4=host:2888:3888;2181`, and the numbers of those that leave; or
        all members that there are to be. Each is text with commas, or a list. `version` is that of
        the configuration, whose last line has it, in hexadecimal.

        Raises ReconfigDisabledError, NoAuthError, ReconfigInProgressError, NewConfigNoQuorumError,
        BadVersionError, BadArgumentsError. After ConnectionLostError look at `get_config`.
        """
        return self._bridge.call(
            self._inner.reconfig, joining=joining, leaving=leaving, members=members, version=version
        )

    def sync(self, path: str = "/") -> None:
        """Wait until the server we are attached to has everything that was written before, by
        anybody.

            client.sync()
            data, stat = client.get("/config")

        A server of an ensemble may be behind the others, though never behind what this client has
        seen. The path says nothing to today's servers.
        """
        self._bridge.call(self._inner.sync, path)

    def add_watch(self, path: str, watcher: Watcher, *, recursive: bool = False) -> None:
        """Have a watcher told of every change of a node, until it is removed.

            client.add_watch("/config", print, recursive=True)
            client.create("/config/color")

        A recursive watch hears of everything at and below the path, and not that children came or
        went, since it hears of the children themselves. Watches of both modes and of reads may
        stand on one path: each hears its own, once. What changed while the connection was lost is
        not told; `watch` finds out. Servers before 3.6 do not know it: UnimplementedError.
        """
        self._bridge.call(
            self._inner.add_watch, path, self._bridge.callbacks.relay(watcher), recursive=recursive
        )

    def remove_watches(
        self, path: str, kind: WatchKind = WatchKind.ANY, *, watcher: Watcher | None = None
    ) -> None:
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
        self._bridge.call(
            self._inner.remove_watches, path, kind, watcher=self._bridge.callbacks.relay(watcher)
        )

    def watch(self, path: str, *, recursive: bool = False) -> Stream[Change]:
        """Give the present state of a node, then every newer one; with `recursive`, of its tree.

            for change in client.watch("/config"):
                print(change.data)  # b'v1', then None
                if change.data is None:
                    break
                client.delete("/config")

        A node that is not there has neither data nor stat. Changes in quick succession may come as
        one; the last state of each node always comes. What is given was read, and may be newer than
        the event that led to it: `change.stat.mzxid` is the zxid of the data. The stream goes on
        over lost connections, and raises SessionExpiredError when the session is over. Below the
        node, what we may not read is left out; of the node itself that raises NoAuthError.
        """
        return Stream(
            self._bridge.portal, self._bridge.run(self._inner.watch, path, recursive=recursive)
        )

    def wait_connected(self) -> None:
        """Wait until a server can be reached; raises SessionExpiredError if the session is over."""
        self._bridge.call(self._inner.wait_connected)

    def forget_watcher(self, watcher: Watcher) -> None:
        """Tell a watcher of nothing any more, whatever it watches.

        The server is told of its lasting watches, if nobody else of this client needs them.
        """
        self._bridge.run(self._inner.forget_watcher, self._bridge.callbacks.relay(watcher))

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
    ) -> str:
        """Create a node; give its path, to which the service adds the number if it is sequential.

            print(client.create("/app/color", b"blue", make_parents=True))  # /app/color
            print(client.create("/app/job-", sequential=True))  # /app/job-0000000001
            client.create("/app/worker", ephemeral=True)

        A node is persistent, or ephemeral (it ends with the session), or a container (it goes when
        its last child has gone), or has a TTL in seconds (it goes when it has no children and was
        not changed for so long). `make_parents` makes the nodes above it, open to all and without
        data, if they are not there, and the chroot as well.

        Raises NodeExistsError, NoNodeError (there is no parent), NoChildrenForEphemeralsError,
        NoAuthError, InvalidACLError. ConnectionLostError says that nobody knows whether it was
        created. A protected node has a mark of ours in its name, by which it is found again if the
        reply was lost; if somebody has deleted it before we look, it is created once more.

        A create that is given up may have been sent. Nobody looks for its node then, protected or
        not: an ephemeral one goes with the session, any other one stays. Whoever wants to look for
        it gives a mark of their own, from `new_mark`, in the place of True: the name begins with
        `_c_`, the mark and a hyphen.
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
        protected: bool | str = False,
    ) -> Created:
        """Create a node, as `create` does; give its path and its stat.

            path, stat = client.create_with_stat("/color", b"blue")
            print(path, stat.version)  # /color 0

        The zxid of its creation, `stat.czxid`, is larger than that of any node before it.
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
            protected=protected,
        )

    def set(
        self,
        path: str,
        data: bytes | None,
        *,
        version: int = ANY_VERSION,
        mark: bytes | None = None,
    ) -> Stat:
        """Replace the data of a node, if it has this version; give its stat.

            data, stat = client.get("/config")
            stat = client.set("/config", data + b"+", version=stat.version)
            print(stat.version)  # 1

        Raises NoNodeError, BadVersionError, NoAuthError. ConnectionLostError says that nobody knows
        whether it happened.

        With a mark that is seldom so. A mark is a part of the data that is in no other write, of
        nobody, such as 16 random bytes, and it needs a version. When the reply is lost, the client
        looks for it after the next connect: it was us, and here is the stat; or it has not
        happened, and is sent again. Only if the node went on to another version meanwhile, or was
        deleted or made anew, nobody can know any more.
        """
        return self._bridge.call(self._inner.set, path, data, version=version, mark=mark)

    def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """Delete a node that has no children, if it has this version.

        Raises NoNodeError, NotEmptyError, BadVersionError, NoAuthError. ConnectionLostError says
        that nobody knows whether it was deleted; then NoNodeError the next time may be our own
        doing.
        """
        self._bridge.call(self._inner.delete, path, version=version)

    def delete_tree(self, path: str, *, batch: int = 1000) -> int:
        """Delete a node with everything below it; give how many nodes the service said went.

            client.create("/app/a/b", make_parents=True)
            print(client.delete_tree("/app"))  # 3

        Not as one: others may see a part of it gone, and what they create there meanwhile goes too.
        `batch` is how many requests are under way at once. That it is not there is fine. Of the
        root of a service everything goes but the root itself and /zookeeper.

        It goes on after a lost connection; then the count may be too low, since of the deletes
        whose replies were lost nobody knows whether they were ours. ConnectionLostError says that a
        part of it may be left.
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
        """Walk a tree: yield a node and everything below it, parents first, children by name.

            client.create("/app/b/c", make_parents=True)
            client.create("/app/a", b"blue")
            for node in client.walk("/app", data=True):
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

    def set_acl(self, path: str, acl: Sequence[ACL], *, version: int = ANY_VERSION) -> Stat:
        """Replace the ACL of a node, if its ACL has this version; give its stat.

            acl = [paddock.digest_acl("alice", "secret"), *paddock.READ_ONLY_ACL]
            stat = client.set_acl("/config", acl, version=0)
            print(stat.aversion)  # 1

        The version is `stat.aversion`, which counts the changes of the ACL alone. Raises
        NoNodeError, BadVersionError, NoAuthError, InvalidACLError; and ConnectionLostError, when
        nobody knows.
        """
        return self._bridge.call(self._inner.set_acl, path, acl, version=version)

    def add_auth(self, scheme: str, credentials: bytes | None) -> None:
        """Say who we are, in addition to what was said before.

            client.add_auth("digest", b"alice:secret")
            client.create("/private", acl=paddock.CREATOR_ALL_ACL)

        It is said again after every reconnect. No server compares a digest with anything but ACLs,
        so a wrong password is accepted, and of no use. Credentials that are refused end the session
        with AuthenticationError. None is for schemes that need none, such as `ip`.
        """
        self._bridge.call(self._inner.add_auth, scheme, credentials)

    def transaction(self) -> Transaction:
        """Begin a transaction: operations that happen together, or not at all.

            with client.transaction() as transaction:
                transaction.check("/config", version=0)
                transaction.create("/color", b"blue")
            print(transaction.results)  # [None, '/color']

        Nothing is sent before its end. Raises TransactionFailedError then if it was refused.
        """
        return Transaction._of(self._bridge, self._bridge.run(self._inner.transaction))
