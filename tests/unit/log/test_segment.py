"""The format of a segment: what is read back, and how its end is judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.log.interface import Record
from paddock.log.segment import (
    RECORD_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    HeaderError,
    SegmentHeader,
    SegmentReader,
    Tail,
    decode_record,
    encode_record,
    new_marker,
)

MARKER = b"\xa5marker!"
HEADER = SegmentHeader(7, MARKER)


def segment(*payloads: bytes, first_index: int = 7, zeros: int = 64) -> bytes:
    records = (encode_record(MARKER, first_index + i, p) for i, p in enumerate(payloads))
    return SegmentHeader(first_index, MARKER).encode() + b"".join(records) + bytes(zeros)


def read(data: bytes) -> tuple[list[bytes], Tail]:
    reader = SegmentReader(data)
    payloads = [record.payload for record in reader]
    return payloads, reader.tail()


@given(st.lists(st.binary(max_size=50)), st.integers(0, 100))
def test_records_are_read_back_in_order(payloads: list[bytes], zeros: int) -> None:
    assert read(segment(*payloads, zeros=zeros)) == (payloads, Tail.CLEAN)


def test_reader_knows_where_the_next_record_belongs() -> None:
    data = segment(b"one", b"three")
    reader = SegmentReader(data)
    assert [record.index for record in reader] == [7, 8]
    assert reader.next_index == 9
    assert reader.end_offset == len(data) - 64
    assert reader.last_bytes == encode_record(MARKER, 8, b"three")
    assert reader.last_offset + len(reader.last_bytes) == reader.end_offset


def test_bytes_of_a_segment_do_not_change() -> None:
    assert segment(b"abc", zeros=0) == bytes.fromhex(
        "5041444c4f470001 0000000000000007 a56d61726b657221 27718417"
        "a56d61726b657221 f7ff717e 00000003 0000000000000007 616263"
    )


@pytest.mark.parametrize("cut", range(SEGMENT_HEADER_BYTES))
def test_header_that_is_cut_is_refused(cut: int) -> None:
    with pytest.raises(HeaderError, match="too short"):
        SegmentHeader.decode(HEADER.encode()[:cut])


@pytest.mark.parametrize("offset", range(SEGMENT_HEADER_BYTES))
def test_header_that_is_damaged_is_refused(offset: int) -> None:
    data = bytearray(HEADER.encode())
    data[offset] ^= 1
    with pytest.raises(HeaderError):
        SegmentHeader.decode(bytes(data))


def test_zeros_are_never_a_record() -> None:
    assert decode_record(MARKER, bytes(100)) is None
    assert all(any(new_marker()) for _ in range(100))


def test_markers_differ() -> None:
    assert new_marker() != new_marker()


def test_record_of_another_segment_is_no_record() -> None:
    assert decode_record(new_marker(), encode_record(MARKER, 1, b"x")) is None


@given(st.binary(max_size=20), st.integers(0, 2**63), st.data())
def test_record_with_any_damaged_byte_is_refused(
    payload: bytes, index: int, data: st.DataObject
) -> None:
    record = bytearray(encode_record(MARKER, index, payload))
    assert decode_record(MARKER, bytes(record)) == Record(index, payload)
    offset = data.draw(st.integers(0, len(record) - 1))
    record[offset] ^= data.draw(st.integers(1, 255))
    assert decode_record(MARKER, bytes(record)) is None


@pytest.mark.parametrize("kept", range(1, RECORD_HEADER_BYTES + 5))
def test_last_record_that_is_cut_is_a_torn_tail(kept: int) -> None:
    whole = segment(b"one", zeros=0)
    cut = encode_record(MARKER, 8, b"three")[:kept]
    assert read(whole + cut) == ([b"one"], Tail.TORN)
    assert read(whole + cut + bytes(64)) == ([b"one"], Tail.TORN)


@pytest.mark.parametrize("lost", range(RECORD_HEADER_BYTES + 5))
def test_last_record_whose_beginning_did_not_arrive_is_a_torn_tail(lost: int) -> None:
    record = bytes(lost) + encode_record(MARKER, 8, b"three")[lost:]
    expected = ([b"one", b"three"], Tail.CLEAN) if lost == 0 else ([b"one"], Tail.TORN)
    assert read(segment(b"one", zeros=0) + record + bytes(64)) == expected


@pytest.mark.parametrize("offset", range(RECORD_HEADER_BYTES + 3))
def test_damaged_record_before_a_good_one_is_damage(offset: int) -> None:
    data = bytearray(segment(b"one", b"two", b"six"))
    data[SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + 3 + offset] ^= 0x80
    assert read(bytes(data)) == ([b"one"], Tail.DAMAGED)


def test_damaged_record_before_a_torn_one_is_damage() -> None:
    data = bytearray(segment(b"one", b"two", b"six", zeros=0)[:-2])
    data[SEGMENT_HEADER_BYTES] ^= 1
    assert read(bytes(data)) == ([], Tail.DAMAGED)


def test_good_record_with_the_wrong_index_is_damage() -> None:
    data = segment(b"one", zeros=0) + encode_record(MARKER, 9, b"later") + bytes(64)
    assert read(data) == ([b"one"], Tail.DAMAGED)


def test_payload_that_holds_another_log_is_a_torn_tail_when_cut() -> None:
    other = new_marker()
    payload = b"".join(encode_record(other, index, b"x" * 10) for index in range(7, 20))
    data = segment(payload, zeros=0)
    assert read(data) == ([payload], Tail.CLEAN)
    assert read(data[:-1]) == ([], Tail.TORN)
