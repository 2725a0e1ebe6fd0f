"""What change feeds read: the last changes of the state, encoded once, in a ring.

`paddock.protocol.changes` has the rules of feeds. While there is none, nothing is recorded here,
and the state machine pays nothing. The rules of the ring:

* A change is encoded when its entry was applied, before the next one is, and copied from then on,
  for however many feeds. The ring drops its oldest ones when it has more than its bytes. `floor` is
  the zxid of the last transaction that it does not have as a whole.
* Feeds of the same path have a topic: the records of the ring at and below that path. So a pull
  costs what it finds, and not what others have written, and a change costs the topics above it.
  They are found as recursive watches are, and a topic is a watcher for that.
* A topic begins empty, with what is recorded from now on. If a pull begins before that, the older
  records of the ring are looked through once, and filed.
* Feeds that wait are woken by a change that they may see; and if half of the ring has been filled
  since they came to wait, so that their clients learn of a later zxid before the ring forgets it.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i64

from paddock.protocol import changes
from paddock.protocol.acl import READ
from paddock.protocol.jute import write_buffer
from paddock.state.access import Identities, NodeACL
from paddock.state.operations import Change
from paddock.state.recursive_watches import RecursiveWatches
from paddock.state.watcher import RECURSIVE, Watcher

RING_BYTES: Final = 32 << 20
# What a record takes beside its path and its encoding.
_RECORD_BYTES: Final = 200
# How many records one pull looks at: those that a client may not see cost as well.
LOOKED_MAX: Final = 20_000
# A line is copied when it has dropped this many, and as many as it still has.
_DROPPED_MIN: Final = 1024


class Recorded:
    """A change, and who may see it."""

    __slots__ = ("acl", "path", "topics", "wire", "zxid")

    def __init__(self, zxid: i64, path: bytes, acl: NodeACL, wire: bytes) -> None:
        self.zxid: i64 = zxid
        self.path = path
        # As it was then: an ACL is replaced, and never changed.
        self.acl = acl
        self.wire = wire
        # Where it is filed.
        self.topics: list[Topic] = []

    def size(self) -> i64:
        return len(self.wire) + len(self.path) + _RECORD_BYTES


class Line:
    """Records in the order of their zxids, of which the oldest are dropped."""

    def __init__(self) -> None:
        # Those before the head are dropped.
        self.items: list[Recorded] = []
        self.head: i64 = 0

    def __len__(self) -> int:
        return len(self.items) - int(self.head)

    def after(self, zxid: i64) -> i64:
        """Return the place of the first record behind a zxid."""
        items = self.items
        low: i64 = self.head
        high: i64 = len(items)
        while low < high:
            middle = (low + high) // 2
            if items[middle].zxid <= zxid:
                low = middle + 1
            else:
                high = middle
        return low

    def drop(self) -> Recorded:
        """Take away the oldest record."""
        items, head = self.items, self.head
        one = items[head]
        items[head] = _DROPPED
        head += 1
        if head > _DROPPED_MIN and head * 2 > len(items):
            self.items = items[head:]
            head = 0
        self.head = head
        return one

    def prepend(self, older: list[Recorded]) -> None:
        self.items = older + self.items[self.head :]
        self.head = 0


class Topic(Watcher):
    """The records at and below a path, for the feeds of that path."""

    def __init__(self, path: bytes, floor: i64) -> None:
        super().__init__()
        self.path = path
        # Invariant: it has all records of the ring that are its own and behind this zxid.
        self.floor: i64 = floor
        self.line = Line()
        self.feeds: dict[Feed, None] = {}
        # Those that wait to be woken.
        self.waiting: dict[Feed, None] = {}

    def covers(self, path: bytes) -> bool:
        """Return whether a path is this one or below it."""
        own = self.path
        if not path.startswith(own):
            return False
        return len(path) == len(own) or len(own) == 1 or path[len(own)] == 47


class Feed:
    """A feed of one connection."""

    def __init__(self, watcher: Watcher, number: int, topic: Topic) -> None:
        self.watcher = watcher
        # The client's number for it.
        self.number = number
        self.topic = topic
        # How much the ring had recorded when it came to wait.
        self.mark: i64 = 0


class Page:
    """What a pull has found."""

    def __init__(self, wires: list[bytes], until: int, has_more: bool) -> None:
        self.wires = wires
        self.until = until
        self.has_more = has_more


class ChangeRing:
    """The last changes of a state, and the feeds that read them."""

    def __init__(self, bytes_max: int = RING_BYTES, looked_max: int = LOOKED_MAX) -> None:
        self._bytes_max: i64 = bytes_max
        self._looked_max: i64 = looked_max
        # Whether changes are recorded.
        self.is_on = False
        # The zxid behind which the ring has every change.
        self.floor: i64 = 0
        # The bytes of all records, and of all that there ever were.
        self.size: i64 = 0
        self.recorded: i64 = 0
        # At how many recorded bytes the feeds that wait are looked at.
        self._look_at: i64 = 0
        self._line = Line()
        self._topics: dict[bytes, Topic] = {}
        self._index = RecursiveWatches()
        self._waiting: dict[Feed, None] = {}

    def waiting_count(self) -> int:
        """Return how many feeds wait to be woken."""
        return len(self._waiting)

    def start(self, zxid: int) -> None:
        """Record what comes behind a zxid, that of the present state."""
        self.is_on = True
        self.floor = zxid

    def stop(self) -> None:
        """Forget everything; there is no feed."""
        assert not self._topics
        self.is_on = False
        self._line = Line()
        self.size = 0

    def reset(self, zxid: int) -> None:
        """Begin again behind a zxid, because some change could not be recorded."""
        self._line = Line()
        self.size = 0
        self.floor = zxid
        for topic in self._topics.values():
            topic.line = Line()
            topic.floor = zxid
        for feed in list(self._waiting):
            # It may have been theirs.
            self.wake(feed, zxid)

    # Feeds.

    def open(self, watcher: Watcher, number: int, path: bytes, zxid: int) -> Feed:
        """Add a feed, at the zxid of the present state."""
        topic = self._topics.get(path)
        if topic is None:
            topic = Topic(path, zxid)
            self._topics[path] = topic
            self._index.add(path, topic)
        feed = Feed(watcher, number, topic)
        topic.feeds[feed] = None
        return feed

    def close(self, feed: Feed) -> None:
        """Remove a feed."""
        topic = feed.topic
        del topic.feeds[feed]
        topic.waiting.pop(feed, None)
        self._waiting.pop(feed, None)
        if not topic.feeds:
            del self._topics[topic.path]
            self._index.remove(topic.path, topic)
            # Records name it until they are dropped.
            topic.line = Line()

    def wait(self, feed: Feed) -> None:
        """Have a feed woken when there is something for it."""
        feed.mark = self.recorded
        feed.topic.waiting[feed] = None
        self._waiting[feed] = None

    def wake(self, feed: Feed, zxid: int) -> None:
        """Send a feed its wake-up; it does not wait any more."""
        feed.topic.waiting.pop(feed, None)
        self._waiting.pop(feed, None)
        feed.watcher.notify(changes.wake_up(feed.number, zxid))

    def read(self, feed: Feed, since: int, zxid: int, identities: Identities, limit: i64) -> Page:
        """Return what a feed shows behind `since`, which is not below the floor.

        `zxid` is that of the present state.
        """
        topic = feed.topic
        if since < topic.floor:
            self._extend(topic, since)
        items = topic.line.items
        wires: list[bytes] = []
        # The transaction that is looked at, the one before it, and what was found up to that.
        current: i64 = since
        before: i64 = since
        whole: i64 = 0
        size: i64 = 0
        at = topic.line.after(since)
        look_end = at + self._looked_max
        while at < len(items):
            one = items[at]
            if one.zxid != current:
                before, whole, current = current, len(wires), one.zxid
                if at >= look_end:
                    return Page(wires, int(before), True)
            if may_see(one.acl, identities):
                size += len(one.wire)
                if size > limit and whole:
                    return Page(wires[:whole], int(before), True)
                wires.append(one.wire)
            at += 1
        return Page(wires, max(since, zxid), False)

    def _extend(self, topic: Topic, since: int) -> None:
        """File the records of the ring from `since` on that a topic does not have."""
        items = self._line.items
        older: list[Recorded] = []
        at = self._line.after(since)
        while at < len(items) and items[at].zxid <= topic.floor:
            one = items[at]
            if topic.covers(one.path):
                one.topics.append(topic)
                older.append(one)
            at += 1
        if older:
            topic.line.prepend(older)
        topic.floor = since

    # Changes.

    def record(self, found: list[Change]) -> None:
        """Record the changes of an entry, before the next one is applied."""
        line = self._line.items
        zxid = 0
        for change in found:
            zxid = change.zxid
            one = Recorded(zxid, change.path, change.node.acl, encode_change(change))
            line.append(one)
            size = one.size()
            self.size += size
            self.recorded += size
            self._file(one)
        if self.size > self._bytes_max:
            self._trim(zxid)
        if self.recorded >= self._look_at:
            self._look_at = self.recorded + self._bytes_max // 4
            self._wake_stale(zxid)

    def _file(self, one: Recorded) -> None:
        path = one.path
        here = self._topics.get(path)
        concerned: dict[Watcher, int] | None = None if here is None else {here: RECURSIVE}
        for watcher in self._index.join_above(path, concerned) or ():
            assert isinstance(watcher, Topic)
            one.topics.append(watcher)
            watcher.line.items.append(one)
            if watcher.waiting:
                for feed in list(watcher.waiting):
                    if may_see(one.acl, feed.watcher.identities):
                        self.wake(feed, int(one.zxid))

    def _trim(self, newest: i64) -> None:
        """Drop the oldest records, as many as it takes, but none of the newest transaction.

        What may be left of the transaction at the floor is never looked at.
        """
        line = self._line
        while self.size > self._bytes_max and line.items[line.head].zxid != newest:
            one = line.drop()
            self.floor = one.zxid
            self.size -= one.size()
            for topic in one.topics:
                if topic.feeds and len(topic.line):
                    topic.line.drop()

    def _wake_stale(self, zxid: int) -> None:
        oldest = self.recorded - self._bytes_max // 2
        for feed in list(self._waiting):
            if feed.mark < oldest:
                self.wake(feed, zxid)


def may_see(acl: NodeACL, identities: Identities) -> bool:
    """Return whether a change of a node with this ACL is shown to a client."""
    return acl.anyone & READ != 0 or acl.permits(READ, identities)


def encode_change(change: Change) -> bytes:
    """Return a change as a reply has it; only right after its entry was applied."""
    writer = BytesWriter()
    write_i32_be(writer, change.kind)
    write_i64_be(writer, change.zxid)
    write_buffer(writer, change.path)
    if change.kind != Change.DELETED:
        change.node.write_data_and_stat(writer)
    return writer.getvalue()


# Stands where a record was dropped.
_DROPPED: Final = Recorded(0, b"", NodeACL((), b""), b"")
