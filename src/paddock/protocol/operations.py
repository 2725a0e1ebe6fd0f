"""The table of operations: one row for each. Every other list of operations is derived from it.

A row says what an operation is, not how it is done: requests from memory are answered in
`state.queries`, writes are applied in `state.machine`.

>>> BY_NUMBER[opcodes.GET_DATA].name
'get'
>>> opcodes.GET_DATA in READS
True
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, Self

from librt.strings import BytesWriter

from paddock.protocol import opcodes
from paddock.protocol.acl import ADMIN, CREATE, DELETE, READ, WRITE
from paddock.protocol.changes import ChangesReply, ChangesRequest
from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse, Stat
from paddock.protocol.replies import (
    Create2Response,
    CreateResponse,
    GetACLResponse,
    GetChildren2Response,
    GetDataResponse,
    IntResponse,
    StringsResponse,
    WhoAmIResponse,
)
from paddock.protocol.requests import (
    AddWatchRequest,
    AuthPacket,
    CreateRequest,
    CreateTTLRequest,
    OldSetWatchesRequest,
    PathRequest,
    ReconfigRequest,
    SaslToken,
    SetACLRequest,
    SetDataRequest,
    SetWatchesRequest,
    VersionRequest,
    WatchedRequest,
    WatchesRequest,
)


class Record(Protocol):
    """The body of a request or a reply."""

    @classmethod
    def read(cls, reader: Reader) -> Self: ...
    def write(self, writer: BytesWriter) -> None: ...


# How an operation is carried out: through the log, because it may change the state or takes a
# zxid; from memory, in its session's order; or by the connection itself.
LOG: Final = "log"
MEMORY: Final = "memory"
CONNECTION: Final = "connection"


class Operation(NamedTuple):
    """One row of the table."""

    number: int
    name: str
    # LOG, MEMORY or CONNECTION.
    route: str
    # None for an empty body, and for the list of steps of a multi or multi_read.
    request: type[Record] | None
    reply: type[Record] | None
    # The operation that may hold it as a step: MULTI, MULTI_READ, or none.
    step_of: int = 0
    # The permission on the node, or on its parent; any one of several is enough.
    permission: int = 0
    parent_permission: int = 0
    # A read whose work grows with what it names, or with what the session owns.
    is_heavy: bool = False
    # Its name in the audit log, in the four-letter word `cons`, and as a method of the client, if
    # that is not `name`.
    audit: str | None = None
    abbreviation: str = "NA"
    method: str | None = None


# The names in the audit log and in `cons` are upstream's.
TABLE: Final[tuple[Operation, ...]] = (
    Operation(opcodes.CREATE, "create", LOG, CreateRequest, CreateResponse,
              step_of=opcodes.MULTI, parent_permission=CREATE, audit="create", abbreviation="CREA"),
    Operation(opcodes.CREATE2, "create2", LOG, CreateRequest, Create2Response,
              step_of=opcodes.MULTI, parent_permission=CREATE, audit="create", abbreviation="CREA",
              method="create"),
    Operation(opcodes.CREATE_CONTAINER, "create_container", LOG, CreateRequest, Create2Response,
              step_of=opcodes.MULTI, parent_permission=CREATE, audit="create", abbreviation="CREA",
              method="create"),
    Operation(opcodes.CREATE_TTL, "create_ttl", LOG, CreateTTLRequest, Create2Response,
              step_of=opcodes.MULTI, parent_permission=CREATE, audit="create", abbreviation="CREA",
              method="create"),
    Operation(opcodes.DELETE, "delete", LOG, VersionRequest, None,
              step_of=opcodes.MULTI, parent_permission=DELETE, audit="delete", abbreviation="DELE"),
    Operation(opcodes.DELETE_CONTAINER, "delete_container", LOG, PathRequest, None,
              parent_permission=DELETE, audit="delete", abbreviation="DELE"),
    Operation(opcodes.SET_DATA, "set", LOG, SetDataRequest, Stat,
              step_of=opcodes.MULTI, permission=WRITE, audit="setData", abbreviation="SETD"),
    Operation(opcodes.SET_ACL, "set_acl", LOG, SetACLRequest, Stat,
              permission=ADMIN, audit="setAcl", abbreviation="SETA"),
    Operation(opcodes.CHECK, "check", LOG, VersionRequest, Stat,
              step_of=opcodes.MULTI, permission=READ, abbreviation="CHEC"),
    Operation(opcodes.MULTI, "multi", LOG, None, None,
              audit="multiOperation", abbreviation="MULT", method="transaction"),
    Operation(opcodes.RECONFIG, "reconfig", LOG, ReconfigRequest, GetDataResponse,
              audit="reconfig", abbreviation="RECO"),
    Operation(opcodes.CLOSE_SESSION, "close_session", LOG, None, None,
              abbreviation="CLOS", method="close"),
    Operation(opcodes.EXISTS, "exists", MEMORY, WatchedRequest, Stat,
              permission=READ, abbreviation="EXIS"),
    Operation(opcodes.GET_DATA, "get", MEMORY, WatchedRequest, GetDataResponse,
              step_of=opcodes.MULTI_READ, permission=READ, abbreviation="GETD"),
    Operation(opcodes.GET_ACL, "get_acl", MEMORY, PathRequest, GetACLResponse,
              permission=READ | ADMIN, abbreviation="GETA"),
    Operation(opcodes.GET_CHILDREN, "get_children", MEMORY, WatchedRequest, StringsResponse,
              step_of=opcodes.MULTI_READ, permission=READ, abbreviation="GETC", method="children"),
    Operation(opcodes.GET_CHILDREN2, "get_children2", MEMORY, WatchedRequest, GetChildren2Response,
              permission=READ, abbreviation="GETC", method="children"),
    Operation(opcodes.GET_ALL_CHILDREN_NUMBER, "get_all_children_number", MEMORY, PathRequest,
              IntResponse, permission=READ, abbreviation="GETACN", method="count_descendants"),
    Operation(opcodes.GET_EPHEMERALS, "get_ephemerals", MEMORY, PathRequest, StringsResponse,
              is_heavy=True, abbreviation="GETE", method="ephemerals"),
    Operation(opcodes.MULTI_READ, "multi_read", MEMORY, None, None,
              is_heavy=True, abbreviation="MLTR"),
    # Answered with its path.
    Operation(opcodes.SYNC, "sync", MEMORY, PathRequest, PathRequest, abbreviation="SYNC"),
    Operation(opcodes.WHO_AM_I, "who_am_i", MEMORY, None, WhoAmIResponse, abbreviation="HOMI"),
    Operation(opcodes.ADD_WATCH, "add_watch", MEMORY, AddWatchRequest, IntResponse,
              abbreviation="ADDW"),
    Operation(opcodes.CHECK_WATCHES, "check_watches", MEMORY, WatchesRequest, None,
              abbreviation="CHKW", method="remove_watches"),
    Operation(opcodes.REMOVE_WATCHES, "remove_watches", MEMORY, WatchesRequest, None,
              abbreviation="REMW"),
    Operation(opcodes.SET_WATCHES, "set_watches", MEMORY, OldSetWatchesRequest, None,
              is_heavy=True, abbreviation="SETW"),
    # The client adds a persistent and a recursive watch with it, and sets all after a reconnect.
    Operation(opcodes.SET_WATCHES2, "set_watches2", MEMORY, SetWatchesRequest, None,
              is_heavy=True, abbreviation="STW2", method="add_watch"),
    Operation(opcodes.PING, "ping", CONNECTION, None, None, abbreviation="PING"),
    Operation(opcodes.AUTH, "auth", CONNECTION, AuthPacket, None),
    Operation(opcodes.SASL, "sasl", CONNECTION, SaslToken, SaslToken),
    # The connection knows its feeds. Permissions are those of each change.
    Operation(opcodes.CHANGES, "changes", CONNECTION, ChangesRequest, ChangesReply,
              abbreviation="CHNG"),
    # The handshake, which has no header; the log has its number.
    Operation(opcodes.CREATE_SESSION, "create_session", CONNECTION, ConnectRequest,
              ConnectResponse, abbreviation="SESS"),
)  # fmt: skip

BY_NUMBER: Final[dict[int, Operation]] = {row.number: row for row in TABLE}
NAMES: Final[dict[int, str]] = {row.number: row.name for row in TABLE}
WRITES: Final = frozenset([row.number for row in TABLE if row.route == LOG])
READS: Final = frozenset([row.number for row in TABLE if row.route == MEMORY])
HEAVY: Final = frozenset([row.number for row in TABLE if row.is_heavy])


def name_of(number: int) -> str:
    """Return the name of an operation; an unknown one is named by its number."""
    return NAMES.get(number, str(number))
