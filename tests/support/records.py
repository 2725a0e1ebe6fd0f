"""ZooKeeper's requests, replies and events as bytes: a codec for tests only.

It is written from the protocol's description and imports nothing from Paddock, so that a mistake in
Paddock's own codec cannot hide in the tests. A reply keeps its body as bytes and decodes it when a
test asks for a field, insisting that nothing is left over.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

INT: Final = struct.Struct(">i")
LONG: Final = struct.Struct(">q")
REPLY_HEADER: Final = struct.Struct(">iqi")
STAT: Final = struct.Struct(">qqqqiiiqiiq")
MULTI_HEADER: Final = struct.Struct(">i?i")

#: A string on the wire. Bytes go out as they are, so that tests can send what is not UTF-8.
Text = str | bytes | None


class Op(IntEnum):
    """Every opcode of 3.9 that a client may send, and Paddock's own."""

    NOTIFICATION = 0
    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CREATE_SESSION = -10
    CLOSE_SESSION = -11
    CHANGES = 0x5061_6401


class Code(IntEnum):
    """Result codes, as far as a server sends them."""

    OK = 0
    SYSTEM_ERROR = -1
    RUNTIME_INCONSISTENCY = -2
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115
    NOT_READ_ONLY = -119
    NO_WATCHER = -121
    RECONFIG_DISABLED = -123
    SESSION_CLOSED_REQUIRE_SASL = -124
    QUOTA_EXCEEDED = -125


class EventType(IntEnum):
    """What happened to a watched node."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class Perm(IntEnum):
    """Permission bits of an ACL entry."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


class Mode(IntEnum):
    """Create flags."""

    PERSISTENT = 0
    EPHEMERAL = 1
    SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3
    CONTAINER = 4
    TTL = 5
    SEQUENTIAL_TTL = 6


@dataclass(frozen=True, slots=True)
class Acl:
    """One entry of an access control list."""

    perms: int
    scheme: Text
    id: Text


OPEN: Final = (Acl(Perm.ALL, "world", "anyone"),)
READ_ONLY: Final = (Acl(Perm.READ, "world", "anyone"),)
CREATOR_ALL: Final = (Acl(Perm.ALL, "auth", ""),)


@dataclass(frozen=True, slots=True)
class Stat:
    """A node's statistics, in wire order."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request: opcode, body, and the xid if it is one of the special ones."""

    op: int
    body: bytes = b""
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A notification.

    Its zxid is that of the change on 3.9 and Paddock, and always -1 on 3.8. Two events are equal
    whatever their zxids are; a test that is about them looks at the field.
    """

    type: int
    path: str
    state: int = 3
    zxid: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Result:
    """One operation's result in a multi: an error has type -1 and its code in both places."""

    type: int
    err: int = 0
    path: str | None = None
    stat: Stat | None = None
    data: bytes | None = None
    children: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConnectReply:
    """The server's half of the handshake; `length` counts the frame's payload."""

    protocol: int
    timeout_ms: int
    session_id: int
    password: bytes
    read_only: bool | None
    length: int


class Reader:
    """Takes wire values off a body, front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def integer(self) -> int:
        (value,) = INT.unpack_from(self._data, self._at)
        self._at += 4
        assert isinstance(value, int)
        return value

    def long(self) -> int:
        (value,) = LONG.unpack_from(self._data, self._at)
        self._at += 8
        assert isinstance(value, int)
        return value

    def buffer(self) -> bytes | None:
        length = self.integer()
        if length < 0:
            assert length == -1, f"a length of {length}"
            return None
        data = self._data[self._at : self._at + length]
        assert len(data) == length, f"{length} bytes announced, {len(data)} there"
        self._at += length
        return data

    def string(self) -> str:
        data = self.buffer()
        assert data is not None, "a null string"
        return data.decode()

    def strings(self) -> tuple[str, ...]:
        return tuple(self.string() for _ in range(self.integer()))

    def stat(self) -> Stat:
        stat = Stat(*STAT.unpack_from(self._data, self._at))
        self._at += STAT.size
        return stat

    def acls(self) -> tuple[Acl, ...]:
        return tuple(
            Acl(self.integer(), self.string(), self.string()) for _ in range(self.integer())
        )

    def multi_header(self) -> tuple[int, bool, int]:
        kind, done, err = MULTI_HEADER.unpack_from(self._data, self._at)
        self._at += MULTI_HEADER.size
        return kind, done, err

    def rest(self) -> bytes:
        data = self._data[self._at :]
        self._at = len(self._data)
        return data

    def end(self) -> None:
        assert self._at == len(self._data), f"left over: {self._data[self._at :]!r}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply. The properties decode the body and fail on an error reply or on bytes left over."""

    xid: int
    zxid: int
    err: int
    op: int
    body: bytes

    def _reader(self) -> Reader:
        assert self.err == 0, f"error {self.err} instead of a result"
        return Reader(self.body)

    @property
    def path(self) -> str:
        """The path of a create or a sync."""
        reader = self._reader()
        path = reader.string()
        if self.op in (Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL):
            reader.stat()
        reader.end()
        return path

    @property
    def stat(self) -> Stat:
        """The Stat of any reply that ends with one."""
        self._reader()
        return Stat(*STAT.unpack_from(self.body, len(self.body) - STAT.size))

    @property
    def data(self) -> bytes | None:
        """A node's data."""
        reader = self._reader()
        data = reader.buffer()
        reader.stat()
        reader.end()
        return data

    @property
    def strings(self) -> tuple[str, ...]:
        """Children or ephemerals, in the server's order."""
        reader = self._reader()
        strings = reader.strings()
        if self.op == Op.GET_CHILDREN2:
            reader.stat()
        reader.end()
        return strings

    @property
    def names(self) -> set[str]:
        """Children or ephemerals as a set, since their order is not specified."""
        names = set(self.strings)
        assert len(names) == len(self.strings), f"a name twice in {self.strings}"
        return names

    @property
    def acl(self) -> tuple[Acl, ...]:
        """A node's ACL."""
        reader = self._reader()
        acls = reader.acls()
        reader.stat()
        reader.end()
        return acls

    @property
    def number(self) -> int:
        """A reply that is one integer."""
        reader = self._reader()
        number = reader.integer()
        reader.end()
        return number

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """The (scheme, user) pairs of whoAmI."""
        reader = self._reader()
        pairs = {(reader.string(), reader.string()) for _ in range(reader.integer())}
        reader.end()
        return pairs

    @property
    def token(self) -> bytes | None:
        """The token of a SASL reply."""
        reader = self._reader()
        token = reader.buffer()
        reader.end()
        return token

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of a multi or a multiRead."""
        reader = self._reader()
        results: list[Result] = []
        while True:
            kind, done, err = reader.multi_header()
            if done:
                assert (kind, err) == (-1, -1)
                reader.end()
                return tuple(results)
            results.append(_result(reader, kind, err))


def _result(reader: Reader, kind: int, err: int) -> Result:
    match kind:
        case -1:
            code = reader.integer()
            assert code == err
            return Result(-1, err)
        case Op.CREATE:
            return Result(kind, err, path=reader.string())
        case Op.CREATE2 | Op.CREATE_CONTAINER | Op.CREATE_TTL:
            return Result(kind, err, path=reader.string(), stat=reader.stat())
        case Op.DELETE | Op.CHECK:
            return Result(kind, err)
        case Op.SET_DATA:
            return Result(kind, err, stat=reader.stat())
        case Op.GET_DATA:
            return Result(kind, err, data=reader.buffer(), stat=reader.stat())
        case Op.GET_CHILDREN:
            return Result(kind, err, children=tuple(sorted(reader.strings())))
        case _:
            raise AssertionError(f"a result of type {kind}")
