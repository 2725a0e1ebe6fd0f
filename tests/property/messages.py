"""Every record of the protocol: how it is drawn, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from hypothesis import strategies as st
from librt.strings import BytesWriter

from paddock.protocol import opcodes
from paddock.protocol.acl import (
    ACL,
    ANYONE,
    Identity,
    read_acls,
    read_identities,
    read_whole_acls,
)
from paddock.protocol.jute import Reader
from paddock.protocol.operations import BY_NUMBER, LOG, MEMORY, TABLE, Operation
from paddock.protocol.records import (
    ConnectRequest,
    ConnectResponse,
    MultiHeader,
    ReplyHeader,
    RequestHeader,
    Stat,
    WatcherEvent,
)
from paddock.protocol.replies import (
    ClientInfo,
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
from paddock.state import multi
from paddock.state.entry import Batch
from paddock.state.roster import Roster
from paddock.state.roster_bodies import DeposeRequest, JoinRequest
from tests.property.spoiled import mostly, spoiled


class Writable(Protocol):
    def write(self, writer: BytesWriter) -> None: ...


@dataclass(frozen=True)
class Kind:
    """One kind of record."""

    name: str
    read: Callable[[Reader], Any]
    records: st.SearchStrategy[Any]


int32s = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-1, 0, 1])
int64s = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, 1])
buffers = st.binary(max_size=40)
maybe_buffers = buffers | st.none()
names = st.sampled_from([b"a", b"b", b"c", "é".encode(), b"\xff", b".", b"", b"\0", b"zookeeper"])
# Few paths that work, so that requests meet; and some that do not.
_good_paths = st.sampled_from([b"/a", b"/b", b"/a/a", b"/a/b", b"/s"])
_odd_paths = st.lists(names, max_size=3).map(lambda some: b"/" + b"/".join(some)) | buffers
paths = mostly(_good_paths, _odd_paths)
maybe_paths = mostly(paths, st.none(), 30)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
maybe_texts = texts | st.none()
identities = st.just(ANYONE) | st.builds(
    Identity, st.sampled_from(["world", "auth", "digest", "ip", "x509"]) | texts, texts
)
acls = st.builds(ACL, int32s | st.just(31), identities)
acl_lists = st.lists(acls, max_size=3)
_open: list[ACL | None] = [ACL(31, ANYONE)]
maybe_acl_lists = mostly(st.just(_open), st.lists(acls | st.none(), max_size=3) | st.none())
path_lists = st.lists(paths, max_size=3)
flags = mostly(st.integers(0, 6), int32s, 20)
ttls = mostly(st.just(1000), st.sampled_from([-1, 0, 1]) | int64s, 5)
versions = mostly(st.just(-1), st.sampled_from([0, 1]) | int32s, 5)

stats = st.builds(Stat, *[int64s] * 4, int32s, int32s, int32s, int64s, int32s, int32s, int64s)
creates = st.builds(CreateRequest, paths, maybe_buffers, maybe_acl_lists, flags)
ttl_creates = st.builds(CreateTTLRequest, paths, maybe_buffers, maybe_acl_lists, flags, ttls)
of_path = st.builds(PathRequest, maybe_paths)
of_version = st.builds(VersionRequest, maybe_paths, versions)
watched = st.builds(WatchedRequest, paths, st.booleans())
sets = st.builds(SetDataRequest, maybe_paths, maybe_buffers, versions)
set_acls = st.builds(SetACLRequest, maybe_paths, maybe_acl_lists, versions)
watches = st.builds(WatchesRequest, maybe_paths, st.integers(0, 4) | int32s)
add_watches = st.builds(AddWatchRequest, paths, st.integers(0, 2) | int32s)
set_watches = st.builds(SetWatchesRequest, int64s, *[path_lists] * 5)
old_set_watches = st.builds(
    OldSetWatchesRequest, int64s, *[path_lists] * 3, st.just([]), st.just([])
)
reconfigs = st.builds(ReconfigRequest, maybe_texts, maybe_texts, maybe_texts, int64s)
auth_packets = st.builds(
    AuthPacket, int32s, st.sampled_from(["digest", "ip", "x"]) | maybe_texts, maybe_buffers
)
connects = st.builds(
    ConnectRequest,
    int32s,
    st.just(0) | int64s,
    int32s,
    st.just(0) | int64s,
    maybe_buffers,
    st.booleans(),
)

joins = st.builds(JoinRequest, int64s, int32s, texts, texts, texts, buffers, int64s)
deposals = st.builds(DeposeRequest, buffers, int64s)

KINDS: tuple[Kind, ...] = (
    Kind("Stat", Stat.read, stats),
    Kind("ConnectRequest", ConnectRequest.read, connects),
    Kind(
        "ConnectResponse",
        ConnectResponse.read,
        st.builds(ConnectResponse, int32s, int32s, int64s, maybe_buffers, st.booleans()),
    ),
    Kind("RequestHeader", RequestHeader.read, st.builds(RequestHeader, int32s, int32s)),
    Kind("ReplyHeader", ReplyHeader.read, st.builds(ReplyHeader, int32s, int64s, int32s)),
    Kind("MultiHeader", MultiHeader.read, st.builds(MultiHeader, int32s, st.booleans(), int32s)),
    Kind("WatcherEvent", WatcherEvent.read, st.builds(WatcherEvent, int32s, int32s, paths)),
    Kind("PathRequest", PathRequest.read, of_path),
    Kind("WatchedRequest", WatchedRequest.read, watched),
    Kind("CreateRequest", CreateRequest.read, creates),
    Kind("CreateTTLRequest", CreateTTLRequest.read, ttl_creates),
    Kind("VersionRequest", VersionRequest.read, of_version),
    Kind("SetDataRequest", SetDataRequest.read, sets),
    Kind("SetACLRequest", SetACLRequest.read, set_acls),
    Kind("WatchesRequest", WatchesRequest.read, watches),
    Kind("AddWatchRequest", AddWatchRequest.read, add_watches),
    Kind("SetWatchesRequest", SetWatchesRequest.read, set_watches),
    Kind("OldSetWatchesRequest", OldSetWatchesRequest.read, old_set_watches),
    Kind("ReconfigRequest", ReconfigRequest.read, reconfigs),
    Kind("AuthPacket", AuthPacket.read, auth_packets),
    Kind("SaslToken", SaslToken.read, st.builds(SaslToken, maybe_buffers)),
    Kind("CreateResponse", CreateResponse.read, st.builds(CreateResponse, paths)),
    Kind("Create2Response", Create2Response.read, st.builds(Create2Response, paths, stats)),
    Kind("GetDataResponse", GetDataResponse.read, st.builds(GetDataResponse, maybe_buffers, stats)),
    Kind("StringsResponse", StringsResponse.read, st.builds(StringsResponse, path_lists)),
    Kind(
        "GetChildren2Response",
        GetChildren2Response.read,
        st.builds(GetChildren2Response, path_lists, stats),
    ),
    Kind("GetACLResponse", GetACLResponse.read, st.builds(GetACLResponse, acl_lists, stats)),
    Kind("IntResponse", IntResponse.read, st.builds(IntResponse, int32s)),
    Kind("ClientInfo", ClientInfo.read, st.builds(ClientInfo, texts, texts)),
    Kind(
        "WhoAmIResponse",
        WhoAmIResponse.read,
        st.builds(WhoAmIResponse, st.lists(st.builds(ClientInfo, texts, texts), max_size=3)),
    ),
    Kind("JoinRequest", JoinRequest.read, joins),
    Kind("DeposeRequest", DeposeRequest.read, deposals),
)

#: What reads a part of a message, or several records at once.
READERS: tuple[Callable[[Reader], Any], ...] = (
    *(kind.read for kind in KINDS),
    read_acls,
    read_whole_acls,
    read_identities,
    Reader.strings,
    Reader.text,
    lambda reader: multi.read_steps(reader.data),
    lambda reader: multi.read_reads(reader.data),
    lambda reader: Batch.decode(reader.data),
    Roster.read,
)


def encode(record: Writable) -> bytes:
    writer = BytesWriter()
    record.write(writer)
    return writer.getvalue()


def _transaction(steps: list[tuple[int, bytes]]) -> bytes:
    body = b"".join(encode(MultiHeader(operation, False, -1)) + each for operation, each in steps)
    return body + encode(MultiHeader(-1, True, -1))


_RECORDS = {kind.name: kind.records for kind in KINDS}


def _requests(rows: Iterable[Operation]) -> st.SearchStrategy[tuple[int, bytes]]:
    """Draw requests of some operations that have a record: operation and body."""
    return st.one_of(
        [
            st.tuples(st.just(row.number), _RECORDS[row.request.__name__].map(encode))
            for row in rows
            if row.request is not None
        ]
    )


def _steps_of(whole: int) -> st.SearchStrategy[tuple[int, bytes]]:
    return _requests(row for row in TABLE if row.step_of == whole)


_transactions = st.tuples(
    st.just(opcodes.MULTI),
    st.lists(_steps_of(opcodes.MULTI), min_size=1, max_size=4).map(_transaction),
)
writes: st.SearchStrategy[tuple[int, bytes]] = mostly(
    mostly(_steps_of(opcodes.MULTI), _transactions, 3),
    _requests(row for row in TABLE if row.route == LOG and not row.step_of)
    | st.just((opcodes.MULTI, _transaction([]))),
    6,
)
"""Operation and body of whatever goes through the log."""

queries: st.SearchStrategy[tuple[int, bytes]] = st.one_of(
    _requests(row for row in TABLE if row.route == MEMORY),
    st.tuples(
        st.just(opcodes.MULTI_READ),
        st.lists(_steps_of(opcodes.MULTI_READ), max_size=4).map(_transaction),
    ),
    st.just((opcodes.WHO_AM_I, b"")),
)
"""Operation and body of whatever is answered from memory."""

others: st.SearchStrategy[tuple[int, bytes]] = st.one_of(
    _requests(BY_NUMBER[number] for number in (opcodes.AUTH, opcodes.SASL)),
    st.just((opcodes.PING, b"")),
    st.just((opcodes.CLOSE_SESSION, b"")),
    st.tuples(int32s, buffers),
)


def nearly(
    requests: st.SearchStrategy[tuple[int, bytes]],
) -> st.SearchStrategy[tuple[int, bytes]]:
    """Draw such requests, as they are or with a body that is not right."""
    bodies = spoiled(requests.map(lambda request: request[1])) | st.binary(max_size=60)
    wrong = st.tuples(requests.map(lambda request: request[0]), bodies)
    return mostly(requests, wrong, 3)
