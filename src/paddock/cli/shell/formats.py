"""How upstream's shell prints what it was told: stats, events, ACLs, data."""

import time
from collections.abc import Iterator, Sequence
from typing import Final

from paddock.client.states import Event, EventType, SessionState
from paddock.protocol.acl import ACL, PERMISSION_LETTERS, letters
from paddock.protocol.records import Stat

_STATES: Final = {
    SessionState.DISCONNECTED: "Disconnected",
    SessionState.OVERDUE: "Disconnected",
    SessionState.CONNECTED: "SyncConnected",
    SessionState.AUTH_FAILED: "AuthFailed",
    SessionState.CONNECTED_READ_ONLY: "ConnectedReadOnly",
    SessionState.SASL_AUTHENTICATED: "SaslAuthenticated",
    SessionState.EXPIRED: "Expired",
    SessionState.CLOSED: "Closed",
}
_TYPES: Final = {
    EventType.NONE: "None",
    EventType.CREATED: "NodeCreated",
    EventType.DELETED: "NodeDeleted",
    EventType.CHANGED: "NodeDataChanged",
    EventType.CHILDREN_CHANGED: "NodeChildrenChanged",
    EventType.DATA_WATCH_REMOVED: "DataWatchRemoved",
    EventType.CHILD_WATCH_REMOVED: "ChildWatchRemoved",
    EventType.PERSISTENT_WATCH_REMOVED: "PersistentWatchRemoved",
}
_ESCAPES: Final = str.maketrans(
    {"\0": "%00", "\n": "%0A", "\r": "%0D", ",": "%2C", "}": "%7D", "%": "%25"}
)


def event_line(event: Event) -> str:
    """Format an event."""
    path = "null" if event.path is None else event.path
    return f"WatchedEvent state:{_STATES[event.state]} type:{_TYPES[event.type]} path:{path}"


def stat_lines(stat: Stat) -> Iterator[str]:
    """Yield a stat, one field a line."""
    yield f"cZxid = {_hex(stat.czxid)}"
    yield f"ctime = {_date(stat.ctime)}"
    yield f"mZxid = {_hex(stat.mzxid)}"
    yield f"mtime = {_date(stat.mtime)}"
    yield f"pZxid = {_hex(stat.pzxid)}"
    yield f"cversion = {stat.cversion}"
    yield f"dataVersion = {stat.version}"
    yield f"aclVersion = {stat.aversion}"
    yield f"ephemeralOwner = {_hex(stat.ephemeral_owner)}"
    yield f"dataLength = {stat.data_length}"
    yield f"numChildren = {stat.num_children}"


def acl_lines(acl: Sequence[ACL]) -> Iterator[str]:
    """Yield an ACL, two lines for each entry: identity and permissions."""
    for entry in acl:
        scheme, name = entry.identity.scheme, entry.identity.id
        yield f"'{scheme.translate(_ESCAPES)},'{name.translate(_ESCAPES)}"
        yield f": {letters(entry.permissions)}"


def permissions_of(text: str) -> tuple[int, list[str]]:
    """Return the permissions that letters stand for, and the letters that stand for none."""
    permissions = sum({PERMISSION_LETTERS.get(letter, 0) for letter in text})
    return permissions, [letter for letter in text if letter not in PERMISSION_LETTERS]


def text_of(data: bytes) -> str:
    """Decode data; invalid UTF-8 becomes replacement characters."""
    return data.decode("utf-8", "replace")


def bytes_of(text: str) -> bytes:
    """Encode what was typed, also bytes that were no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def listed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def hex_lines(data: bytes) -> Iterator[str]:
    """Yield a hexdump, 16 bytes a line; nothing for no data."""
    if not data:
        return
    rule = "+--------+-------------------------------------------------+----------------+"
    yield "         +-------------------------------------------------+"
    yield "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |"
    yield rule
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield f"|{start:08x}| {row.hex(' '):<47} |{text:<16}|"
    yield rule


def _hex(number: int) -> str:
    return f"0x{number & 0xFFFF_FFFF_FFFF_FFFF:x}"


def _date(milliseconds: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(milliseconds // 1000))
