"""Change feeds as the wire has them: byte for byte, cut anywhere, and with what follows."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from paddock.protocol import changes
from paddock.protocol.changes import ChangeRecord, ChangesReply, ChangesRequest, read_change
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.operations import Record
from paddock.protocol.records import Stat

STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 9)
REQUEST = bytes.fromhex("00000002 2f61 0000000100000005 00000007")
REPLY = bytes.fromhex("00000001 0000000100000009 00000003 010203")
DELETED = bytes.fromhex("00000002 0000000100000006 00000002 2f61")
WRITTEN = bytes.fromhex("00000003 0000000100000006 00000002 2f61 00000001 78")
STAT_WIRE = bytes.fromhex(
    "0000000000000001 0000000000000002 0000000000000003 0000000000000004 00000005 00000006"
    "00000007 0000000000000008 00000001 00000000 0000000000000009"
)


def written(record: Record) -> bytes:
    writer = BytesWriter()
    record.write(writer)
    return writer.getvalue()


def test_a_request_and_a_reply_are_read_as_they_are_written() -> None:
    request = ChangesRequest.read(Reader(REQUEST))
    assert (request.path, request.since, request.feed) == (b"/a", 0x100000005, 7)
    assert written(request) == REQUEST
    reply = ChangesReply.read(Reader(REPLY))
    assert (reply.state, reply.until, reply.changes) == (changes.MORE, 0x100000009, b"\1\2\3")
    assert written(reply) == REPLY


def fields(change: ChangeRecord) -> tuple[object, ...]:
    return change.kind, change.zxid, change.path, change.data, change.stat


def test_a_change_has_data_and_stat_unless_its_node_is_gone() -> None:
    gone = read_change(Reader(DELETED))
    assert fields(gone) == (changes.DELETED, 0x100000006, b"/a", None, None)
    there = read_change(Reader(WRITTEN + STAT_WIRE))
    assert fields(there) == (changes.DATA, 0x100000006, b"/a", b"x", STAT)


def test_the_last_change_of_a_transaction_is_known_by_what_follows() -> None:
    later = DELETED.replace(b"\x06", b"\x07")
    reader = Reader(DELETED + WRITTEN + STAT_WIRE + later)
    assert [read_change(reader).is_last for _ in range(3)] == [False, True, True]


@pytest.mark.parametrize("whole", [DELETED, WRITTEN + STAT_WIRE])
def test_a_change_that_is_cut_is_not_read(whole: bytes) -> None:
    for length in range(len(whole)):
        with pytest.raises(DecodeError):
            read_change(Reader(whole[:length]))


@pytest.mark.parametrize("kind", [0, 5, -1])
def test_a_change_of_an_unknown_kind_is_not_read(kind: int) -> None:
    with pytest.raises(DecodeError, match="unknown kind"):
        read_change(Reader(kind.to_bytes(4, "big", signed=True) + (WRITTEN + STAT_WIRE)[4:]))


def test_a_wake_up_is_a_reply_to_no_request_that_names_the_feed() -> None:
    assert changes.wake_up(7, 0x105) == bytes.fromhex(
        "00000014 fffffff0 0000000000000105 00000000 00000007"
    )
