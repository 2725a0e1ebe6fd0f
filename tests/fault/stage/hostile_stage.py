"""The attackers of one case: who is connected to the server, what they send and read.

Everything here runs in one thread, and only counts what comes: an attacker that decoded its replies
would be slower than the server it attacks.
"""

from __future__ import annotations

import collections
import contextlib
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from tests.fault.stage.process import FaultServer
from tests.fault.stage.siege import Crowd, encoded, handshake, send_some
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import INT, Acl, Code, Op, Perm, Request
from tests.support.server import digest

#: More identities than anybody may have; there are as many as the server allows.
IDENTITIES = 400
#: As many as one address may have, by default.
CONNECTIONS = 60
#: How long the whole of an attack may take.
ATTACK_DEADLINE_S = 240.0
#: The size of a large transaction; with one more step of any size it has to fit into a frame.
MULTI_BYTES = 300_000


class Stage:
    """A server and everything that attacks it. Leaving the block disconnects all of them."""

    def __init__(self, server: FaultServer, scale: int, root: str) -> None:
        self.server = server
        self.scale = scale
        #: The node below which a case has its own, since others may use the same server.
        self.root = root
        self.sent_bytes = 0
        #: Those of the preparation, once there was one.
        self.prepared_bytes = 0
        #: How many identities a client may have, as far as that is known.
        self.identities = IDENTITIES
        #: Who was prepared for the attack.
        self.prepared: list[socket.socket] = []
        #: Whether a client that asked was disconnected.
        self.is_broken = False
        self._crowd = Crowd(server.address, per_address=60)
        # Who reads all that comes, without having asked.
        self._listeners: list[socket.socket] = []
        # What is on its way to each of them; one question may end in the middle of an event.
        self._frames: dict[socket.socket, _Frames] = collections.defaultdict(_Frames)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._crowd.__exit__(kind, error, trace)

    def path(self, name: object) -> str:
        return f"{self.root}/{name}"

    def join(
        self,
        count: int = 1,
        *,
        receive_bytes: int | None = None,
        timeout_ms: int = wire.SESSION_TIMEOUT_MS,
    ) -> list[socket.socket]:
        """Connect some more, each with a session."""
        self.sent_bytes += count * len(handshake())
        return [self._crowd.join_session(receive_bytes, timeout_ms) for _ in range(count)]

    def identified(self) -> socket.socket:
        """Connect one with as many identities as it may have."""
        while True:
            (one,) = self.join()
            packets = [credentials(number) for number in range(self.identities)]
            answered = self.ask([one], packets)
            if answered >= self.identities:
                return one
            # The last answer was that it is one too many, and the connection is closed.
            self.identities = answered - 1
            self.is_broken = False
            one.close()

    def last_identity(self) -> Acl:
        """The entry of an ACL for the last identity of those who have many."""
        return Acl(Perm.ALL, "digest", digest(b"u%d:p" % (self.identities - 1)))

    def guard(self, path: str, last: Acl, entries: int = 0) -> None:
        """Create a node with an ACL of so many entries, or as many as there may be, and a last."""
        with wire.connect(self.server.address) as client:
            while True:
                others = (Acl(Perm.READ, "digest", f"o{number}:x") for number in range(entries))
                request = rq.create(path, acl=[*others, last])
                self.sent_bytes += len(request.body)
                if client.call(request).err in (Code.OK, Code.NODE_EXISTS):
                    break
                assert entries, "no ACL at all is accepted"
                entries //= 2
            client.close()

    def listen(self, *sockets: socket.socket) -> None:
        """Have these read all that comes while others ask."""
        self._listeners.extend(sockets)

    def send(self, one: socket.socket, data: bytes) -> bool:
        """Send as much as goes at once to a server that may not read, for one who does not."""
        self.sent_bytes += len(data)
        return send_some(one, data)

    def ask(self, sockets: Iterable[socket.socket], requests: Sequence[Request]) -> int:
        """Have each ask all of it, pipelined, and read every reply; events are read as well.

        Returns how many replies the first of them got: fewer than it asked for, if it was
        disconnected.
        """
        data = encoded(requests)
        asking = list(sockets)
        talks = [_Talk(one, self._frames[one], data, len(requests)) for one in asking]
        self.sent_bytes += len(data) * len(talks)
        others = [_Talk(one, self._frames[one]) for one in self._listeners if one not in asking]
        self._converse(talks, others)
        self.is_broken = self.is_broken or any(one.replies < len(requests) for one in talks)
        return talks[0].replies

    def ask_word(self, word: str, count: int) -> None:
        """Have so many ask with a four-letter word at once, and read the answers."""
        self._ask_once(self.server.address, word.encode(), count)

    def ask_admin(self, path: str, count: int) -> None:
        """Have so many ask the admin server at once, and read the answers."""
        port = int(dict(self.server.options.extra)["admin.serverPort"] or 0)
        said = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        self._ask_once(("127.0.0.1", port), said.encode(), count)

    def _ask_once(self, address: wire.Address, said: bytes, count: int) -> None:
        """Connect so many, have each say this, and read until the server closes."""
        with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
            for _ in range(count):
                one = stack.enter_context(socket.create_connection(address, wire.DEADLINE_S))
                one.sendall(said)
                self.sent_bytes += len(said)
                selector.register(one, selectors.EVENT_READ, one)
            while selector.get_map():
                ready = selector.select(ATTACK_DEADLINE_S)
                assert ready, "no answer"
                for key, _ in ready:
                    with contextlib.suppress(ConnectionError):
                        if key.data.recv(1 << 20):
                            continue
                    selector.unregister(key.data)

    def create(self, paths: Iterable[str], data: bytes = b"") -> None:
        """Create nodes, many with one request."""
        (one,) = self.join()
        self.ask([one], multis(rq.create(path, data) for path in paths))

    def count_sessions(self) -> int:
        """Return how many sessions the server has."""
        said = wire.four_letter_word(self.server.address, "mntr")
        figures = dict(line.split("\t", 1) for line in said.splitlines())
        return int(figures["zk_global_sessions"])

    @staticmethod
    def _converse(talks: list[_Talk], others: list[_Talk]) -> None:
        limit = time.monotonic() + ATTACK_DEADLINE_S
        with selectors.DefaultSelector() as selector:
            for talk in (*talks, *others):
                talk.register(selector)
            while not all(talk.is_over for talk in talks):
                left = limit - time.monotonic()
                assert left > 0, f"not in {ATTACK_DEADLINE_S} seconds: the replies to an attack"
                for key, mask in selector.select(left):
                    key.data.go_on(selector, mask)


def multis(steps: Iterable[Request], op: int = Op.MULTI) -> list[Request]:
    """Return transactions of all these steps, each about as large as a request may be."""
    made: list[Request] = []
    some: list[Request] = []
    size = 0
    for step in steps:
        some.append(step)
        size += 9 + len(step.body)
        if size > MULTI_BYTES:
            made.append(rq.multi(*some, op=op))
            some = []
            size = 0
    return [*made, rq.multi(*some, op=op)] if some else made


def credentials(number: int) -> Request:
    """The packet with which a client gets one more identity."""
    return rq.auth("digest", b"u%d:p" % number)


class _Frames:
    """What has come from the server on one connection, of which only the replies are counted."""

    def __init__(self) -> None:
        # The length of a frame and its xid, and how many bytes of it are still to come.
        self._head = b""
        self._rest = 0

    def take(self, data: bytes) -> int:
        """Take what has come, and return how many replies have become whole by it."""
        replies = 0
        at = 0
        while at < len(data):
            if len(self._head) < 8:
                step = min(8 - len(self._head), len(data) - at)
                self._head += data[at : at + step]
                at += step
                if len(self._head) < 8:
                    break
                (length,) = INT.unpack(self._head[:4])
                self._rest = length - 4
            step = min(self._rest, len(data) - at)
            self._rest -= step
            at += step
            if not self._rest:
                # An event is the answer to nothing.
                (xid,) = INT.unpack(self._head[4:])
                replies += xid != wire.NOTIFICATION_XID
                self._head = b""
        return replies


class _Talk:
    """What one connection still has to send, and how many replies it has got."""

    def __init__(
        self, one: socket.socket, frames: _Frames, data: bytes = b"", replies_wanted: int = 0
    ) -> None:
        self.replies = 0
        self.is_over = False
        self._socket = one
        self._frames = frames
        self._data = memoryview(data)
        self._wanted = replies_wanted

    def register(self, selector: selectors.BaseSelector) -> None:
        """Begin, unless there is nobody to talk to any more."""
        if self._socket.fileno() < 0:
            self.is_over = True
            return
        self._socket.setblocking(False)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._data else 0)
        selector.register(self._socket, events, self)

    def go_on(self, selector: selectors.BaseSelector, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                self._data = self._data[self._socket.send(self._data) :]
                if not self._data:
                    selector.modify(self._socket, selectors.EVENT_READ, self)
            if mask & selectors.EVENT_READ:
                data = self._socket.recv(1 << 20)
                if not data:
                    raise ConnectionResetError
                self.replies += self._frames.take(data)
                self.is_over = self._wanted <= self.replies
        except BlockingIOError:
            pass
        except ConnectionError:
            self.is_over = True
            selector.unregister(self._socket)
