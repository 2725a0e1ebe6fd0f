"""zkCli's texts, to the letter: error messages, stats, events, ACLs, data."""

import time
from collections.abc import Iterator, Sequence
from typing import Final

from paddock import errors
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import (
    BadArgumentsError,
    BadVersionError,
    InvalidACLError,
    NewConfigNoQuorumError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NotReadOnlyError,
    PaddockError,
    QuotaExceededError,
    ReconfigInProgressError,
    ServiceError,
)
from paddock.protocol.acl import ACL, PERMISSION_LETTERS, letters
from paddock.protocol.records import Stat


class CommandError(Exception):
    """A command cannot be carried out; its text is the line for stderr."""


class UsageError(CommandError):
    """A command has the wrong arguments; the shell prints its usage."""


# What upstream says instead of naming the code, with the path behind it.
_SAYINGS: Final[dict[type[ServiceError], str]] = {
    NoNodeError: "Node does not exist: ",
    NoChildrenForEphemeralsError: "Ephemerals cannot have children: ",
    NodeExistsError: "Node already exists: ",
    NotEmptyError: "Node not empty: ",
    NotReadOnlyError: "Not a read-only call: ",
    InvalidACLError: "Acl is not valid : ",
    NoAuthError: "Insufficient permission : ",
    BadArgumentsError: "Arguments are not valid : ",
    BadVersionError: "version No is not valid : ",
    QuotaExceededError: "Quota has exceeded : ",
}
# Those of which upstream does not name the path.
_WHOLE_SAYINGS: Final[dict[type[ServiceError], str]] = {
    ReconfigInProgressError: (
        "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)"
    ),
    NewConfigNoQuorumError: (
        "No quorum of new config is connected and up-to-date with the leader of last commmitted"
        " config - try invoking reconfiguration after new servers are connected and synced"
    ),
}
# Names of codes that are not the name of our error without "Error".
_CODES: Final = {
    errors.SYSTEM_ERROR: "SystemError",
    errors.CONNECTION_LOSS: "ConnectionLoss",
    errors.MARSHALLING_ERROR: "MarshallingError",
    errors.API_ERROR: "APIError",
    errors.NOT_EMPTY: "Directory not empty",
    errors.SESSION_EXPIRED: "Session expired",
    errors.INVALID_CALLBACK: "Invalid callback",
    errors.AUTH_FAILED: "AuthFailed",
    errors.SESSION_MOVED: "Session moved",
    errors.NOT_READ_ONLY: "Not a read-only call",
    errors.EPHEMERAL_ON_LOCAL_SESSION: "Ephemeral node on local session",
    errors.NO_WATCHER: "No such watcher",
    errors.RECONFIG_DISABLED: "Reconfig is disabled",
    errors.SESSION_CLOSED_REQUIRE_SASL: "Session closed because client failed to authenticate",
    errors.QUOTA_EXCEEDED: "Quota has exceeded",
    errors.THROTTLED: "Op throttled due to high load",
}


def code_line(error: ServiceError) -> str:
    """Name the code of an error, and the path, as upstream's errors do by themselves."""
    name = type(error).__name__.removesuffix("Error")
    if error.code in _CODES or type(error).code != error.code:
        name = _CODES.get(error.code, f"Unknown error {error.code}")
    return f"KeeperErrorCode = {name}" + (f" for {error.path}" if error.path else "")


def line_about(error: PaddockError | CommandError) -> str:
    """Return the line about a failure, in the words of zkCli's commands."""
    if isinstance(error, CommandError):
        return str(error)
    if not isinstance(error, ServiceError):
        return " ".join(str(error).split())
    if type(error) not in _SAYINGS:
        return _WHOLE_SAYINGS.get(type(error)) or code_line(error)
    return f"{_SAYINGS[type(error)]}{error.path or ''}"


def check_path(path: str, *, sequential: bool = False) -> None:
    """Refuse what is no path, in upstream's words; the client would in its own."""
    whole = path + "1" if sequential else path
    if not whole:
        raise CommandError("Path length must be > 0")
    if whole[0] != "/":
        raise CommandError("Path must start with / character")
    if whole == "/":
        return
    if whole[-1] == "/":
        raise CommandError("Path must not end with / character")
    reason = _why_no_path(whole)
    if reason is not None:
        raise CommandError(f'Invalid path string "{whole}" caused by {reason}')


def _why_no_path(path: str) -> str | None:
    for position, character in enumerate(path[1:], start=1):
        if character == "\0":
            return f"null character not allowed @{position}"
        if path[position - 1 : position + 1] == "//":
            return f"empty node name specified @{position}"
        if character == "." and path[position + 1 : position + 2] in ("", "/"):
            begins = path.rindex("/", 0, position)
            if path[begins + 1 : position + 1] in (".", ".."):
                return f"relative paths not allowed @{position}"
        # Nothing outside of the basic plane, which upstream sees as two surrogates.
        code = ord(character)
        if not (0x1F < code < 0x7F or 0x9F < code < 0xD800 or 0xF8FF < code < 0xFFF0):
            return f"invalid character @{position}"
    return None


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


def stat_lines(stat: Stat) -> list[str]:
    """Return a stat, one field a line."""
    return [
        f"cZxid = {_hex(stat.czxid)}",
        f"ctime = {_date(stat.ctime)}",
        f"mZxid = {_hex(stat.mzxid)}",
        f"mtime = {_date(stat.mtime)}",
        f"pZxid = {_hex(stat.pzxid)}",
        f"cversion = {stat.cversion}",
        f"dataVersion = {stat.version}",
        f"aclVersion = {stat.aversion}",
        f"ephemeralOwner = {_hex(stat.ephemeral_owner)}",
        f"dataLength = {stat.data_length}",
        f"numChildren = {stat.num_children}",
    ]


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
