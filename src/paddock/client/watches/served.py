"""The lasting watches that the server has for us, and how it takes several watches of one path.

Up to ZooKeeper 3.8 a server has one watch for a connection at a path, of the mode that was asked
for last: a read with a watch ends a persistent one there, and a persistent one a recursive one.
From 3.9 on it keeps the modes apart. What we ask for is right with both, so nothing depends on
knowing which one it is:

* Where there is a recursive watch, a persistent one is asked for together with it, in one request
  that ends with the recursive one: a server with one mode is left with that, and tells of no less.
* Where there is a lasting watch, a read asks for none, and relies on that one, unless we know that
  the server keeps modes apart.
* A recursive watch does not tell that children changed, but it tells of the children. A server with
  one mode leaves it to us to see the one from the other, for children that we may read. A server
  that keeps modes apart tells both by itself, and is known by its events: they have a zxid. Those
  that set_watches fires may have none, and are complete. None of a lasting watch comes among them:
  Apache's servers, alone or in an ensemble, run no request of a session beside a write, so the
  answer to a set_watches comes before whatever the watches tell that it has set.

Only to drop one mode and keep the other the two need different requests: `watching` asks as for
3.9, and takes an error for the answer that it is no such server. What we know ends with the
connection: the next server may be another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paddock.client.states import EventType
from paddock.protocol import paths

# The modes of lasting watches; both may stand at a path.
PERSISTENT: Final = 1
RECURSIVE: Final = 2


class ServedWatches:
    """What the server of the present connection has, as far as its answers tell."""

    def __init__(self) -> None:
        # Whether it keeps several modes at a path apart; None as long as we do not know.
        self.keeps_modes_apart: bool | None = None
        # The modes that stand at a path. Of both, a server with one mode has the recursive one.
        self._modes: dict[bytes, int] = {}
        # Those that are asked for there, in their order.
        self._expected: dict[bytes, list[int]] = {}
        # Where watches of reads rely on a lasting one, though no other watcher may need it.
        self._relied_on: set[bytes] = set()
        # How many answers are due to requests that may fire watches while they set them again.
        self._replays = 0

    def begin(self, persistent: Iterable[bytes], recursive: Iterable[bytes]) -> None:
        """Take note of a new connection, on which these are set again."""
        self.keeps_modes_apart = None
        self._modes = dict.fromkeys(persistent, PERSISTENT)
        for path in recursive:
            self._modes[path] = self._modes.get(path, 0) | RECURSIVE
        # The watches of reads are set again, too.
        self._relied_on.clear()
        self._replays = 0

    def clear(self) -> None:
        self.begin((), ())

    # What is asked for, and what was answered.

    def expect(self, path: bytes, modes: int) -> None:
        """Take note that lasting watches are asked for."""
        self._expected.setdefault(path, []).append(modes)

    def expect_no_more(self, path: bytes, modes: int) -> None:
        """Take note that it was answered, or is not waited for."""
        expected = self._expected[path]
        expected.remove(modes)
        if not expected:
            del self._expected[path]

    def is_expected(self, path: bytes, mode: int) -> bool:
        return any(modes & mode for modes in self._expected.get(path, ()))

    def add(self, path: bytes, modes: int) -> None:
        """Take note of what was set, by one request."""
        if modes == PERSISTENT and not self.keeps_modes_apart:
            # It may have taken the place of a recursive one.
            self._modes[path] = PERSISTENT
        else:
            self._modes[path] = self.at(path) | modes

    def remove(self, path: bytes, mode: int) -> None:
        """Take note that one mode is gone."""
        left = self.at(path) & ~mode
        if left:
            self._modes[path] = left
        else:
            self._modes.pop(path, None)

    def forget(self, path: bytes) -> None:
        """Take note that there is no lasting watch at a path."""
        self._modes.pop(path, None)
        self._relied_on.discard(path)

    def take_read(self, path: bytes) -> None:
        """Take note that a read has set a watch of its own."""
        if not self.keeps_modes_apart:
            # It may have taken the place of a lasting one.
            self.forget(path)

    def at(self, path: bytes) -> int:
        """Return the modes that stand at a path, 0 if there are none."""
        return self._modes.get(path, 0)

    # Who relies on what.

    def carries(self, path: bytes, is_child: bool, *, soon: bool = False) -> bool:
        """Return whether a lasting watch brings what a read waits for, or will soon."""
        modes = self.at(path)
        if soon:
            for one in self._expected.get(path, ()):
                modes |= one
        return bool(modes & PERSISTENT if is_child else modes)

    def rely_on(self, path: bytes) -> None:
        """Take note that watches of reads need the lasting one at a path."""
        self._relied_on.add(path)

    def rely_no_more(self, path: bytes) -> None:
        self._relied_on.discard(path)

    def is_relied_on(self, path: bytes) -> bool:
        return path in self._relied_on

    # What its events tell.

    def expect_replay(self) -> None:
        """Take note that watches of reads are being set again."""
        self._replays += 1

    def end_replay(self) -> None:
        """Take note that watches were set again; whatever they fired has come before."""
        if self._replays:
            self._replays -= 1

    def hear(self, zxid: int | None) -> None:
        """Learn from an event."""
        if zxid is not None:
            self.keeps_modes_apart = True

    def parent_to_tell(self, kind: EventType, path: bytes, zxid: int | None) -> bytes | None:
        """Return the node whose children changed with an event, if the server does not say so."""
        if not self._modes or zxid is not None or self._replays or path == paths.ROOT:
            return None
        if kind not in (EventType.CREATED, EventType.DELETED):
            return None
        above = paths.parent(path)
        return above if self.at(above) & RECURSIVE else None
