"""The format of a segment: what is read back, and how its end is judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.log.file.segment import (
    RECORD_BYTES,
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
from paddock.log.interface import Record

MARKER = b"\xa6marker!"
# That of an early version of Paddock.
EARLY = b"\xa5marker!"
SECTOR_BYTES = 512
HEADER = SegmentHeader(7, MARKER)


def segment(*payloads: bytes, zeros: int = 64, marker: bytes = MARKER) -> bytes:
    records = (encode_record(marker, 7 + i, p) for i, p in enumerate(payloads))
    return SegmentHeader(7, marker).encode() + b"".join(records) + bytes(zeros)


def read(data: bytes) -> tuple[list[bytes], Tail]:
    reader = SegmentReader(data)
    payloads = [record.payload for record in reader]
    return payloads, reader.tail()


@given(st.lists(st.binary(max_size=50)), st.integers(1, 100))
def test_records_are_read_back_in_order(payloads: list[bytes], zeros: int) -> None:
    assert read(segment(*payloads, zeros=zeros)) == (payloads, Tail.CLEAN)
    assert read(segment(*payloads, zeros=zeros, marker=EARLY)) == (payloads, Tail.CLEAN)


def test_reader_knows_where_the_next_record_belongs() -> None:
    data = segment(b"one", b"three")
    reader = SegmentReader(data)
    assert [record.index for record in reader] == [7, 8]
    assert reader.next_index == 9
    assert reader.end_offset == len(data) - 64
    assert reader.last_bytes == encode_record(MARKER, 8, b"three")
    assert reader.last_offset + len(reader.last_bytes) == reader.end_offset


def test_bytes_of_a_segment_do_not_change() -> None:
    assert segment(b"abc", zeros=0, marker=EARLY) == bytes.fromhex(
        "5041444c4f470001 0000000000000007 a56d61726b657221 27718417"
        "a56d61726b657221 f7ff717e 00000003 0000000000000007 616263"
    )
    assert segment(b"abc", zeros=1) == bytes.fromhex(
        "5041444c4f470002 0000000000000007 a66d61726b657221 fa64d870"
        "a66d61726b657221 c85b5c68 00000004 0000000000000007 616263e5 00"
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


@pytest.mark.parametrize("kept", range(1, RECORD_BYTES + 5))
def test_last_record_whose_end_did_not_arrive_is_a_torn_tail(kept: int) -> None:
    arrived = encode_record(MARKER, 8, b"three")[:kept]
    assert read(segment(b"one", zeros=0) + arrived + bytes(64)) == ([b"one"], Tail.TORN)


@pytest.mark.parametrize("lost", range(RECORD_BYTES + 5))
def test_last_record_whose_beginning_did_not_arrive_is_a_torn_tail(lost: int) -> None:
    record = bytes(lost) + encode_record(MARKER, 8, b"three")[lost:]
    expected = ([b"one", b"three"], Tail.CLEAN) if lost == 0 else ([b"one"], Tail.TORN)
    assert read(segment(b"one", zeros=0) + record + bytes(64)) == expected


@given(st.integers(0, SECTOR_BYTES), st.integers(0, 3 * SECTOR_BYTES), st.data())
def test_last_record_that_lacks_any_sectors_is_a_torn_tail(
    before: int, size: int, data: st.DataObject
) -> None:
    whole = segment(b"x" * before, zeros=0)
    record = encode_record(MARKER, 8, b"y" * size)
    torn = bytearray(whole + record + bytes(64))
    sectors = range(len(whole) // SECTOR_BYTES, (len(whole + record) - 1) // SECTOR_BYTES + 1)
    for sector in data.draw(st.sets(st.sampled_from(sectors), min_size=1)):
        first = max(len(whole), sector * SECTOR_BYTES)
        last = min(len(whole + record), (sector + 1) * SECTOR_BYTES)
        torn[first:last] = bytes(last - first)
    is_gone = not any(torn[len(whole) :])
    assert read(bytes(torn))[1] is (Tail.CLEAN if is_gone else Tail.TORN)


@pytest.mark.parametrize("size", [0, 5, 3 * SECTOR_BYTES])
@pytest.mark.parametrize("marker", [MARKER, EARLY])
def test_file_that_ends_in_a_record_was_cut_short(size: int, marker: bytes) -> None:
    whole = segment(b"one", b"y" * size, zeros=1, marker=marker)
    begin = len(segment(b"one", zeros=0, marker=marker))
    # In an early segment the last record may end where the file does.
    for length in range(begin + 1, len(whole) - 1):
        assert read(whole[:length]) == ([b"one"], Tail.CUT_SHORT), length
    assert read(whole) == ([b"one", b"y" * size], Tail.CLEAN)


def test_file_that_ends_with_a_record_was_cut_short() -> None:
    whole = segment(b"one", b"two")
    for count in range(3):
        payloads = [b"one", b"two"][:count]
        assert read(whole[: len(segment(*payloads, zeros=0))]) == (payloads, Tail.CUT_SHORT)


def test_early_file_may_end_with_a_record() -> None:
    assert read(segment(zeros=0, marker=EARLY)) == ([], Tail.CLEAN)
    assert read(segment(b"one", zeros=0, marker=EARLY)) == ([b"one"], Tail.CLEAN)


@pytest.mark.parametrize("size", [0, 5, 2 * SECTOR_BYTES])
def test_flipped_bit_of_the_last_record_is_damage(size: int) -> None:
    whole = segment(b"one", b"y" * size)
    begin = len(segment(b"one", zeros=0))
    doubtful = 0
    for bit in range(8 * (RECORD_BYTES + size)):
        data = bytearray(whole)
        data[begin + bit // 8] ^= 1 << bit % 8
        payloads, tail = read(bytes(data))
        assert payloads == [b"one"]
        doubtful += tail is Tail.TORN
        assert tail in (Tail.LAST_DAMAGED, Tail.CUT_SHORT, Tail.TORN)
    # A length that reaches into the zeros behind it is all that looks like a torn write.
    assert doubtful <= 10


def test_damaged_record_with_a_sector_of_zeros_cannot_be_told_from_a_torn_one() -> None:
    data = bytearray(segment(b"y" + bytes(2 * SECTOR_BYTES)))
    data[SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES] ^= 1
    assert read(bytes(data)) == ([], Tail.TORN)


def test_what_was_in_space_that_was_not_made_yet_is_a_torn_tail() -> None:
    assert read(segment(b"one", zeros=0) + b"anything" * 200) == ([b"one"], Tail.TORN)


@pytest.mark.parametrize("offset", range(RECORD_BYTES + 3))
def test_damaged_record_before_a_good_one_is_damage(offset: int) -> None:
    data = bytearray(segment(b"one", b"two", b"six"))
    data[SEGMENT_HEADER_BYTES + RECORD_BYTES + 3 + offset] ^= 0x80
    assert read(bytes(data)) == ([b"one"], Tail.DAMAGED)


def test_damaged_record_before_a_torn_one_is_damage() -> None:
    data = bytearray(segment(b"one", b"two", b"six", zeros=0)[:-2])
    data[SEGMENT_HEADER_BYTES] ^= 1
    assert read(bytes(data)) == ([], Tail.DAMAGED)


def test_good_record_with_the_wrong_index_is_damage() -> None:
    data = segment(b"one", zeros=0) + encode_record(MARKER, 9, b"later") + bytes(64)
    assert read(data) == ([b"one"], Tail.DAMAGED)


def test_payload_that_holds_another_log_is_a_torn_tail_when_its_end_did_not_arrive() -> None:
    other = new_marker()
    payload = b"".join(encode_record(other, index, b"x" * 10) for index in range(7, 20))
    data = segment(payload, zeros=1)
    assert read(data) == ([payload], Tail.CLEAN)
    assert read(data[:-2] + bytes(2)) == ([], Tail.TORN)
