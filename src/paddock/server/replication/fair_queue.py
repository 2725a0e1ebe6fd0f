"""Writes that wait to be proposed: in order for each origin, fair between them.

As long as all that waits fits into one batch, by what the caller allows in bytes and in number, a
batch is all of it, in the order in which it came; or the first part of it, if the caller wants less
at a time. When more waits, origins take turns:

* The next small entries of each origin in turn, round after round, as many as fit: in a turn no
  more than all others can have, and no more than `_TURN_ENTRIES_MAX`. One that has sent much does
  not keep one that has sent little waiting. Some of one origin come in a row, because each change
  of it needs other memory: with one at a time, sets by fifty connections took a fifth longer.
* Behind them the large entries that are first of their origin, the oldest first, as many as fit
  in bytes and in number, and one in any case. So a small write waits for the large ones of one
  batch that is being applied and of one that is under way, however many there are.
* Entries of one origin never overtake each other.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from paddock.server.replication.proposals import Submitter
from paddock.state.entry import BATCH_BYTES_MAX, Entry

# A small entry is no larger than this.
_SMALL_BYTES: Final = 16 << 10
# How many entries of one origin come before those of the next, if there is room for so many.
_TURN_ENTRIES_MAX: Final = 16
# How many bytes of small entries come before a large one.
_BEFORE_LARGE_BYTES: Final = 256 << 10


class FairQueue:
    """Entries with their origins."""

    def __init__(self, entries_max: int = 1 << 30) -> None:
        # Bytes of all that wait, and how many they are.
        self.size: i64 = 0
        self.length: i64 = 0
        # How many entries a batch may have if more wait, and how many bytes of them.
        self.entries_max = entries_max
        self.bytes_max = BATCH_BYTES_MAX
        # What came since the last batch, in its order.
        self._entries: list[Entry] = []
        self._origins: list[Submitter] = []
        # What did not fit into a batch, by origin; who is next in turn comes first.
        self._backlog: dict[Submitter, deque[Entry]] = {}
        # The large entries among it that are first of their origin, the oldest first.
        self._large: dict[Submitter, None] = {}

    def put(self, entry: Entry, origin: Submitter) -> None:
        self._entries.append(entry)
        self._origins.append(origin)
        self.size += entry.size()
        self.length += 1

    def take(self, wanted: int = 1 << 30) -> tuple[list[Entry], list[Submitter]]:
        """Take the next batch: the entries, and the origin of each.

        If all that waits fits into it, it is only as many as are wanted.
        """
        is_short = self.length <= self.entries_max
        if not self._backlog and is_short and self.size <= self.bytes_max:
            if self.length > wanted:
                return self._take_oldest(wanted)
            entries, self._entries = self._entries, []
            origins, self._origins = self._origins, []
            self.size = 0
            self.length = 0
            return entries, origins
        self._sort()
        entries, origins = self._take_small()
        self._take_large(entries, origins)
        return entries, origins

    def _take_oldest(self, count: int) -> tuple[list[Entry], list[Submitter]]:
        entries, self._entries = self._entries[:count], self._entries[count:]
        origins, self._origins = self._origins[:count], self._origins[count:]
        self.size -= sum([entry.size() for entry in entries])
        self.length -= count
        return entries, origins

    def _sort(self) -> None:
        """Put what came to what its origin has waiting."""
        last: Submitter | None = None
        queue: deque[Entry] = deque()
        for entry, origin in zip(self._entries, self._origins, strict=True):
            # Many of one origin come in a row.
            if origin is not last:
                last = origin
                found = self._backlog.get(origin)
                if found is None:
                    found = deque()
                    self._backlog[origin] = found
                    self._note_first(origin, entry)
                queue = found
            queue.append(entry)
        self._entries = []
        self._origins = []

    def _take_small(self) -> tuple[list[Entry], list[Submitter]]:
        entries: list[Entry] = []
        origins: list[Submitter] = []
        room = min(_BEFORE_LARGE_BYTES, self.bytes_max) if self._large else self.bytes_max
        candidates = [one for one in self._backlog if one not in self._large]
        served: dict[Submitter, None] = {}
        while candidates and room > 0 and len(entries) < self.entries_max:
            share = (self.entries_max - len(entries)) // len(candidates)
            turn = max(1, min(share, _TURN_ENTRIES_MAX))
            turn_bytes = room // len(candidates)
            still: list[Submitter] = []
            for origin in candidates:
                taken, size = self._take_turn(origin, turn, turn_bytes)
                entries += taken
                origins += [origin] * len(taken)
                served[origin] = None
                room -= size
                if room <= 0 or len(entries) >= self.entries_max:
                    break
                if origin in self._backlog and origin not in self._large:
                    still.append(origin)
            candidates = still
        # Who had a turn now comes last in the next batch.
        for origin in served:
            queue = self._backlog.pop(origin, None)
            if queue is not None:
                self._backlog[origin] = queue
        return entries, origins

    def _take_turn(self, origin: Submitter, count: int, room: int) -> tuple[list[Entry], int]:
        """Take the next small entries of an origin, of which there is one at least.

        Returns one in any case, and no more than `count`; and their bytes.
        """
        queue = self._backlog[origin]
        taken: list[Entry] = []
        size = 0
        following = queue[0].size()
        while following <= _SMALL_BYTES and (not taken or (len(taken) < count and size < room)):
            taken.append(queue.popleft())
            size += following
            if not queue:
                del self._backlog[origin]
                break
            following = queue[0].size()
        if queue:
            self._note_first(origin, queue[0])
        self.size -= size
        self.length -= len(taken)
        return taken, size

    def _take_large(self, entries: list[Entry], origins: list[Submitter]) -> None:
        room = self.bytes_max - sum(entry.size() for entry in entries)
        is_first = True
        while self._large:
            origin = next(iter(self._large))
            size = self._backlog[origin][0].size()
            if not is_first and (size > room or len(entries) >= self.entries_max):
                break
            entries.append(self._take_first(origin))
            origins.append(origin)
            room -= size
            is_first = False

    def _take_first(self, origin: Submitter) -> Entry:
        queue = self._backlog[origin]
        entry = queue.popleft()
        self.size -= entry.size()
        self.length -= 1
        self._large.pop(origin, None)
        if queue:
            self._note_first(origin, queue[0])
        else:
            del self._backlog[origin]
        return entry

    def _note_first(self, origin: Submitter, entry: Entry) -> None:
        if entry.size() > _SMALL_BYTES:
            self._large[origin] = None
