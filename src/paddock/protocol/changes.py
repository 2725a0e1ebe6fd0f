"""Change feeds on the wire: every change below a path, in order, from a zxid on.

A watch says that something has happened, and leaves it to the client to find out what. A feed says
what: each create, write, delete and ACL change, with the data and the stat, once. It is an
operation of our own, for clients whose service has said in the terms of the handshake that it can
(`CHANGES` in `paddock.protocol.exact`). The rules:

* A client pulls. The request says below which path, and since which zxid: the changes after it are
  wanted. The reply has changes in the order of the log, up to `REPLY_BYTES` of them. `until` says
  how far the server has looked: there the next pull begins, also if nothing was found. So the
  position of a feed is one number, the server keeps none for it, and a client that does not pull
  costs nothing.
* A transaction is not split. A reply ends where one does, and one that is larger than a reply
  should be comes alone. Its changes have the same zxid, and show their nodes as the transaction has
  left them: nobody has ever seen a state in between. Nor is a parent listed because a child came.
* If there is more, the reply says so. If not, the server remembers that this feed waits, and sends
  one frame when there is something for it, with the number of the feed: a wake-up. Then it forgets,
  and the client pulls again. A wake-up may come without a reason; a client that has lost its
  connection pulls without one.
* No reply waits for another. What has to be read from files is not waited for: the reply says that
  the feed waits, the wake-up comes when it was read, and the pull after it gets it.
* A feed that waits for long is woken now and then, to learn of a later `until`: so it can go on
  from there when its connection is lost, although what the server remembers is bounded.
* What the server does not have any more is told (`GONE`), with the oldest zxid to go on from. A
  client that is ahead of the server waits until that one has caught up.
* zxids are the same on all servers of a service, so a feed goes on at any of them.
* A change is shown to those who may READ its node, by the ACL that the node has after the change; a
  deleted node has its last one. That is what READ grants at that moment: exists, get and events
  need it as well. A change that is not shown leaves no trace but a greater `until`, and how many
  writes there are any client can see in the header of every reply. A node that a client may not
  READ any more just stops to appear: what it has seen of it before is no secret.
* Counts of quotas, which the server keeps in /zookeeper/quota without a zxid, are no changes.

    request   path, since (FROM_NOW: from the present state on; END: the feed is over), feed
    reply     state (WAITS, MORE, GONE), until (with GONE: the oldest), changes as one buffer
    change    kind, zxid, path; data and stat, except of a DELETED one
    wake-up   a reply's header with WAKE_UP_XID, the feed
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i32_be, write_i64_be

from paddock.errors import OK
from paddock.protocol.jute import BUFFER, INT, LONG, STRING, DeclaredRecord, DecodeError, Reader
from paddock.protocol.records import Stat

WAKE_UP_XID: Final = -16

# In place of a zxid to begin behind.
FROM_NOW: Final = -1
END: Final = -2

# What follows a reply: a wake-up, at once another pull, or nothing ever.
WAITS: Final = 0
MORE: Final = 1
GONE: Final = 2

# The kinds of changes, as the state machine has them.
CREATED: Final = 1
DELETED: Final = 2
DATA: Final = 3
ACL: Final = 4

# How much a reply has: little enough to be read in one go, and enough to cost little for each.
REPLY_BYTES: Final = 256 << 10

_HEADER_BYTES: Final = 16
_FEED_BYTES: Final = 4
# A kind and a zxid.
_ZXID: Final = 4
_CHANGE_BYTES: Final = 12


@dataclass(slots=True)
class ChangesRequest(DeclaredRecord):
    """A pull."""

    path: bytes = field(metadata=STRING)
    since: int = field(metadata=LONG)
    # The client's number for this feed, which a wake-up names.
    feed: int = field(metadata=INT)


@dataclass(slots=True)
class ChangesReply(DeclaredRecord):
    """What it has found, and what follows."""

    state: int = field(metadata=INT)
    until: int = field(metadata=LONG)
    changes: bytes | None = field(metadata=BUFFER)


class ChangeRecord:
    """A change as a reply has it. One of a deleted node has neither data nor stat."""

    __slots__ = ("data", "is_last", "kind", "path", "stat", "zxid")

    def __init__(
        self, kind: int, zxid: int, path: bytes, data: bytes | None, stat: Stat | None
    ) -> None:
        self.kind = kind
        self.zxid = zxid
        self.path = path
        self.data = data
        self.stat = stat
        # Whether none of the same transaction follows.
        self.is_last = True


def read_change(reader: Reader) -> ChangeRecord:
    """Take the next change of a reply. Raises DecodeError."""
    kind, zxid, path = reader.int32(), reader.int64(), reader.string()
    if kind < CREATED or kind > ACL:
        raise DecodeError(f"a change of the unknown kind {kind}")
    if kind == DELETED:
        change = ChangeRecord(kind, zxid, path, None, None)
    else:
        data = reader.buffer()
        change = ChangeRecord(kind, zxid, path, data, Stat.read(reader))
    follows = reader.position
    if follows + _CHANGE_BYTES <= reader.end:
        change.is_last = read_i64_be(reader.data, follows + _ZXID) != zxid
    return change


def wake_up(feed: int, zxid: int) -> bytes:
    """Return the frame that wakes a feed up."""
    writer = BytesWriter()
    write_i32_be(writer, _HEADER_BYTES + _FEED_BYTES)
    write_i32_be(writer, WAKE_UP_XID)
    write_i64_be(writer, zxid)
    write_i32_be(writer, OK)
    write_i32_be(writer, feed)
    return writer.getvalue()
