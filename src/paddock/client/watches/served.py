"""The persistent watches that the server has for us, and how it combines watches of one path.

Up to ZooKeeper 3.8 a server has one watch for a connection at a path, of the mode that was asked
for last: a read with a watch ends a persistent one there, and a persistent one a recursive one.
From 3.9 on it keeps the modes apart. Our requests are right for both:

* Where there is a recursive watch, a persistent one is requested together with it, in one request
  that ends with the recursive one: a server with one mode keeps that, and sends no less.
* Where there is a persistent watch of either mode, a read requests none and relies on that one,
  unless the server is known to keep modes apart.
* A recursive watch has no CHILDREN_CHANGED, but it has the events of the children. On a server with
  one mode we derive the one from the other, for children that we may read. A server that keeps
  modes apart sends both, and is known by its events: they have a zxid. Events that set_watches
  fires may have none, and are complete. No event of a persistent watch comes among them: Apache's
  servers, alone or in an ensemble, run no request of a session beside a write, so the reply to a
  set_watches comes before the events of the watches that it has set.

Only dropping one mode and keeping the other takes different requests: `watch_requests` sends the
one of 3.9, and an error in reply means an older server. This knowledge ends with the connection:
the next server may be another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paddock.client.states import EventType
from paddock.protocol import paths

# The modes of persistent watches; a path may have both.
PERSISTENT: Final = 1
RECURSIVE: Final = 2


class ServedWatches:
    """What the server of the present connection has, as far as its replies tell."""

    def __init__(self) -> None:
        # Whether it keeps several modes at a path apart; None as long as we do not know.
        self.keeps_modes_apart: bool | None = None
        # The modes at a path. Of both, a server with one mode has the recursive one.
        self._modes: dict[bytes, int] = {}
        # Those that are requested there, in order.
        self._expected: dict[bytes, list[int]] = {}
        # Where watches of reads rely on a persistent one, though no other watcher may need it.
        self.relied_on: set[bytes] = set()
        # Replies due to requests that may fire watches while they set them again.
        self._replays = 0

    def begin(self, persistent: Iterable[bytes], recursive: Iterable[bytes]) -> None:
        """Begin with a new connection, on which these are set again."""
        self.keeps_modes_apart = None
        self._modes = dict.fromkeys(persistent, PERSISTENT)
        for path in recursive:
            self._modes[path] = self._modes.get(path, 0) | RECURSIVE
        # The watches of reads are set again, too.
        self.relied_on.clear()
        self._replays = 0

    # Requests, and their replies.

    def expect(self, path: bytes, modes: int) -> None:
        """Record that persistent watches are requested."""
        self._expected.setdefault(path, []).append(modes)

    def expect_no_more(self, path: bytes, modes: int) -> None:
        """Record that the request was answered, or is not waited for."""
        expected = self._expected[path]
        expected.remove(modes)
        if not expected:
            del self._expected[path]

    def expected(self, path: bytes) -> int:
        """Return the modes that are requested at a path."""
        modes = 0
        for one in self._expected.get(path, ()):
            modes |= one
        return modes

    def add(self, path: bytes, modes: int) -> None:
        """Record what one request has set."""
        if modes == PERSISTENT and not self.keeps_modes_apart:
            # It may have replaced a recursive one.
            self._modes[path] = PERSISTENT
        else:
            self._modes[path] = self.at(path) | modes

    def remove(self, path: bytes, mode: int) -> None:
        """Record that one mode is gone."""
        left = self._modes.pop(path, 0) & ~mode
        if left:
            self._modes[path] = left

    def forget(self, path: bytes) -> None:
        """Record that there is no persistent watch at a path."""
        self._modes.pop(path, None)
        self.relied_on.discard(path)

    def take_read(self, path: bytes) -> None:
        """Record that a read has set a watch of its own."""
        if not self.keeps_modes_apart:
            # It may have replaced a persistent one.
            self.forget(path)

    def at(self, path: bytes) -> int:
        """Return the modes at a path, 0 for none."""
        return self._modes.get(path, 0)

    def carries(self, path: bytes, is_child: bool, *, soon: bool = False) -> bool:
        """Return whether a persistent watch has the events of a read, or will soon."""
        modes = self.at(path) | self.expected(path) if soon else self.at(path)
        return bool(modes & PERSISTENT if is_child else modes)

    # Events.

    def expect_replay(self) -> None:
        """Record that watches of reads are being set again."""
        self._replays += 1

    def end_replay(self) -> None:
        """Record that watches were set again; what they fired has come before."""
        if self._replays:
            self._replays -= 1

    def hear(self, zxid: int | None) -> None:
        """Learn from an event."""
        if zxid is not None:
            self.keeps_modes_apart = True

    def parent_to_tell(self, kind: EventType, path: bytes, zxid: int | None) -> bytes | None:
        """Return the node whose children changed with an event, if the server does not say so."""
        if (
            not self._modes
            or zxid is not None
            or self._replays
            or path == paths.ROOT
            or kind not in (EventType.CREATED, EventType.DELETED)
        ):
            return None
        above = paths.parent(path)
        return above if self.at(above) & RECURSIVE else None
