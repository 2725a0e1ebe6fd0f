"""Every record of the protocol, from one table: its bytes drive the decoder and the encoder."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from paddock.protocol.acl import ACL, ANYONE, CREATOR, READ, Identity
from paddock.protocol.jute import DecodeError, Reader
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


class Record(Protocol):
    def write(self, writer: BytesWriter) -> None: ...


@dataclass(frozen=True)
class Case:
    name: str
    wire: bytes
    record: Record
    read: Callable[[Reader], Record]
    # How many bytes at the end old peers leave out; without them it is another good record.
    optional: int = 0
    # Whether more bytes could belong to it.
    open_ended: bool = False


def i(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def q(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


def s(*values: bytes | None) -> bytes:
    return b"".join(i(-1) if v is None else i(len(v)) + v for v in values)


def v(*values: bytes) -> bytes:
    return i(len(values)) + s(*values)


STAT = Stat(1, 2, 3, 4, 5, -6, 7, 8, 9, 10, -(1 << 63))
STAT_WIRE = q(1, 2, 3, 4) + i(5, -6, 7) + q(8) + i(9, 10) + q(-(1 << 63))
ACLS: list[ACL | None] = [ACL(31, ANYONE), ACL(READ, Identity("digest", "bob:ä"))]
WHOLE_ACLS = [acl for acl in ACLS if acl is not None]
ACLS_WIRE = i(2, 31) + s(b"world", b"anyone") + i(1) + s(b"digest", b"bob:\xc3\xa4")

CASES = [
    Case("stat", STAT_WIRE, STAT, Stat.read),
    Case(
        "connect",
        i(0) + q(77) + i(30000) + q(-2) + s(b"p" * 16) + b"\x01",
        ConnectRequest(0, 77, 30000, -2, b"p" * 16, True),
        ConnectRequest.read,
        optional=1,
    ),
    Case(
        "connect of an old client",
        i(0) + q(0) + i(4000) + q(0) + s(None),
        ConnectRequest(0, 0, 4000, 0, None, None),
        ConnectRequest.read,
        open_ended=True,
    ),
    Case(
        "connected",
        i(0, 4000) + q(5) + s(bytes(16)) + b"\x00",
        ConnectResponse(0, 4000, 5, bytes(16), False),
        ConnectResponse.read,
        optional=1,
    ),
    Case(
        "connected by an old server",
        i(0, 0) + q(0) + s(bytes(16)),
        ConnectResponse(0, 0, 0, bytes(16), None),
        ConnectResponse.read,
        open_ended=True,
    ),
    Case("request header", i(-8, 101), RequestHeader(-8, 101), RequestHeader.read),
    Case("reply header", i(3) + q(9) + i(-101), ReplyHeader(3, 9, -101), ReplyHeader.read),
    Case("multi header", i(5) + b"\x00" + i(0), MultiHeader(5, False, 0), MultiHeader.read),
    Case("end of a multi", i(-1) + b"\x01" + i(-1), MultiHeader(-1, True, -1), MultiHeader.read),
    Case("event", i(3, 3) + s(b"/a"), WatcherEvent(3, 3, b"/a"), WatcherEvent.read),
    Case("path", s("/ä".encode()), PathRequest("/ä".encode()), PathRequest.read),
    Case("null path", s(None), PathRequest(None), PathRequest.read),
    Case("watched", s(b"/a") + b"\x01", WatchedRequest(b"/a", True), WatchedRequest.read),
    Case("unwatched", s(b"") + b"\x00", WatchedRequest(b"", False), WatchedRequest.read),
    Case(
        "create",
        s(b"/a", b"data") + ACLS_WIRE + i(3),
        CreateRequest(b"/a", b"data", ACLS, 3),
        CreateRequest.read,
    ),
    Case(
        "create with null data and null ACL",
        s(b"/a", None) + i(-1, 0),
        CreateRequest(b"/a", None, None, 0),
        CreateRequest.read,
    ),
    Case(
        "create with empty data and an ACL that nobody matches",
        s(b"/a", b"") + i(1, 0) + s(None, None) + i(0),
        CreateRequest(b"/a", b"", [None], 0),
        CreateRequest.read,
    ),
    Case(
        "create for its creator",
        s(b"/a", b"") + i(1, 31) + s(b"auth", b"") + i(0),
        CreateRequest(b"/a", b"", [ACL(31, CREATOR)], 0),
        CreateRequest.read,
    ),
    Case(
        "create with a TTL",
        s(b"/a", b"x") + i(0, 5) + q(1 << 40),
        CreateTTLRequest(b"/a", b"x", [], 5, 1 << 40),
        CreateTTLRequest.read,
    ),
    Case("version", s(b"/a") + i(-1), VersionRequest(b"/a", -1), VersionRequest.read),
    Case("version of nothing", s(None) + i(7), VersionRequest(None, 7), VersionRequest.read),
    Case("set", s(b"/a", b"x") + i(2), SetDataRequest(b"/a", b"x", 2), SetDataRequest.read),
    Case("set null", s(None, None) + i(-1), SetDataRequest(None, None, -1), SetDataRequest.read),
    Case(
        "set ACL",
        s(b"/a") + ACLS_WIRE + i(4),
        SetACLRequest(b"/a", ACLS, 4),
        SetACLRequest.read,
    ),
    Case("watches", s(b"/a") + i(3), WatchesRequest(b"/a", 3), WatchesRequest.read),
    Case("add watch", s(b"/a") + i(1), AddWatchRequest(b"/a", 1), AddWatchRequest.read),
    Case(
        "set watches",
        q(9) + v(b"/a", b"/b") + v() + v(b"/c") + v(b"/d") + v(b"/e"),
        SetWatchesRequest(9, [b"/a", b"/b"], [], [b"/c"], [b"/d"], [b"/e"]),
        SetWatchesRequest.read,
    ),
    Case(
        "reconfig",
        s(b"a", None, "ü".encode()) + q(-1),
        ReconfigRequest("a", None, "ü", -1),
        ReconfigRequest.read,
    ),
    Case(
        "auth",
        i(0) + s(b"digest", b"bob:\xff"),
        AuthPacket(0, "digest", b"bob:\xff"),
        AuthPacket.read,
    ),
    Case("sasl", s(b"\x00"), SaslToken(b"\x00"), SaslToken.read),
    Case("created", s(b"/a"), CreateResponse(b"/a"), CreateResponse.read),
    Case(
        "created, with stat",
        s(b"/a") + STAT_WIRE,
        Create2Response(b"/a", STAT),
        Create2Response.read,
    ),
    Case("data", s(b"x") + STAT_WIRE, GetDataResponse(b"x", STAT), GetDataResponse.read),
    Case("null data", s(None) + STAT_WIRE, GetDataResponse(None, STAT), GetDataResponse.read),
    Case("strings", v(b"a", b""), StringsResponse([b"a", b""]), StringsResponse.read),
    Case("no strings", v(), StringsResponse([]), StringsResponse.read),
    Case(
        "children, with stat",
        v(b"a") + STAT_WIRE,
        GetChildren2Response([b"a"], STAT),
        GetChildren2Response.read,
    ),
    Case("ACL", ACLS_WIRE + STAT_WIRE, GetACLResponse(WHOLE_ACLS, STAT), GetACLResponse.read),
    Case("int", i(-7), IntResponse(-7), IntResponse.read),
    Case("client", s(b"ip", b"::1"), ClientInfo("ip", "::1"), ClientInfo.read),
    Case(
        "clients",
        i(2) + s(b"ip", b"::1", b"digest", b"bob"),
        WhoAmIResponse([ClientInfo("ip", "::1"), ClientInfo("digest", "bob")]),
        WhoAmIResponse.read,
    ),
]

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def encode(record: Record) -> bytes:
    writer = BytesWriter()
    record.write(writer)
    return writer.getvalue()


@every_case
def test_a_record_is_written_as_its_bytes(case: Case) -> None:
    assert encode(case.record) == case.wire


@every_case
def test_whole_bytes_are_read_as_the_record_and_used_up(case: Case) -> None:
    reader = Reader(case.wire)
    assert case.read(reader) == case.record
    assert reader.position == len(case.wire)


@every_case
def test_a_record_cut_at_any_byte_is_a_decode_error(case: Case) -> None:
    for cut in range(len(case.wire) - case.optional):
        with pytest.raises(DecodeError):
            case.read(Reader(case.wire[:cut]))


@every_case
def test_bytes_behind_a_record_are_left_alone(case: Case) -> None:
    if case.open_ended:
        return
    reader = Reader(case.wire + b"\xde\xad\xbe\xef")
    assert case.read(reader) == case.record
    assert reader.rest() == b"\xde\xad\xbe\xef"


@every_case
def test_a_record_is_read_where_the_reader_stands(case: Case) -> None:
    reader = Reader(b"12345" + case.wire, 5)
    assert case.read(reader) == case.record


@settings(max_examples=1000)
@given(read=st.sampled_from([case.read for case in CASES]), junk=st.binary(max_size=120))
def test_any_bytes_are_a_record_or_a_decode_error(
    read: Callable[[Reader], Record], junk: bytes
) -> None:
    reader = Reader(junk)
    try:
        read(reader)
    except DecodeError:
        return
    assert 0 <= reader.position <= len(junk)


@settings(max_examples=1000)
@given(st.sampled_from(CASES), st.integers(0, 200), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
def test_one_changed_byte_is_a_record_or_a_decode_error(
    case: Case, position: int, byte: int
) -> None:
    """Nearly good bytes go deeper into a decoder than junk does."""
    position %= len(case.wire)
    wire = case.wire[:position] + bytes([byte]) + case.wire[position + 1 :]
    try:
        record = case.read(Reader(wire))
    except DecodeError:
        return
    # What was understood can be said again.
    encode(record)


def test_set_watches_without_the_persistent_lists_is_the_older_request() -> None:
    request = OldSetWatchesRequest(9, [b"/a"], [b"/b"], [], [], [])
    wire = q(9) + v(b"/a") + v(b"/b") + v()
    assert encode(request) == wire
    assert OldSetWatchesRequest.read(Reader(wire)) == request
    for cut in range(len(wire)):
        with pytest.raises(DecodeError):
            OldSetWatchesRequest.read(Reader(wire[:cut]))


def test_an_announced_vector_costs_nothing_before_its_elements_come() -> None:
    for read in (StringsResponse.read, WhoAmIResponse.read, GetACLResponse.read):
        with pytest.raises(DecodeError):
            read(Reader(i(0x7FFF_FFFF) + STAT_WIRE))
