"""Whatever bytes come, a decoder gives a record or a DecodeError, and nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.protocol.framing import FrameBuffer, FrameSizeError
from paddock.protocol.jute import DecodeError, Reader
from paddock.state.entry import Batch, Entry
from tests.property.bounds import examples
from tests.property.messages import KINDS, READERS, Kind, encode, int32s, int64s, nearly, writes
from tests.property.spoiled import LIES, spoiled

_any_record = st.one_of([kind.records for kind in KINDS]).map(encode)
_entries = st.builds(
    lambda request, session, xid: Entry(request[0], request[1], session, 1, xid, 5),
    writes,
    int64s,
    int32s,
)
_batches = st.builds(
    Batch, st.lists(_entries, max_size=3), st.integers(0, 2**62), st.integers(0, 2**62)
).map(Batch.encode)
_bytes = st.one_of(
    st.binary(max_size=200),
    _any_record,
    spoiled(_any_record),
    nearly(writes).map(lambda request: request[1]),
    _batches,
    spoiled(_batches),
)


@examples(600)
@given(_bytes)
def test_any_bytes_give_a_record_or_a_typed_error(data: bytes) -> None:
    for read in READERS:
        reader = Reader(data)
        try:
            read(reader)
        except DecodeError:
            pass
        assert 0 <= reader.position <= len(data)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_is_written_is_read_again(kind: Kind) -> None:
    @examples(30)
    @given(kind.records, st.binary(max_size=10))
    def check(record: object, behind: bytes) -> None:
        data = encode(record)  # type: ignore[arg-type]
        reader = Reader(data + behind)
        assert kind.read(reader) == record
        assert reader.rest() == behind

    check()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_whatever_is_read_is_the_same_when_it_is_written_and_read_again(kind: Kind) -> None:
    @examples(60)
    @given(spoiled(kind.records.map(encode)))
    def check(data: bytes) -> None:
        try:
            record = kind.read(Reader(data))
        except DecodeError:
            return
        assert kind.read(Reader(encode(record))) == record

    check()


@examples(100)
@given(_batches)
def test_a_batch_is_read_as_it_was_written(payload: bytes) -> None:
    assert Batch.decode(payload).encode() == payload


_lengths = st.sampled_from(LIES) | st.integers(0, 40)
_streams = st.lists(
    st.binary(max_size=40).map(lambda body: len(body).to_bytes(4, "big") + body)
    | st.tuples(_lengths, st.binary(max_size=20)).map(
        lambda lie: (lie[0] % 2**32).to_bytes(4, "big") + lie[1]
    )
    | st.binary(max_size=10),
    max_size=6,
).map(b"".join)


@examples(300)
@given(_streams, st.lists(st.integers(0, 300), max_size=12), st.sampled_from([0, 10, 64]))
def test_the_cuts_of_a_stream_do_not_matter(stream: bytes, cuts: list[int], limit: int) -> None:
    whole = FrameBuffer(limit)
    frames = whole.receive_data(stream)
    assert all(len(frame) <= limit for frame in frames)
    pieces = FrameBuffer(limit)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    got: list[bytes] = []
    for start, end in pairwise(edges):
        got += pieces.receive_data(stream[start:end])
    assert got == frames
    assert _told(pieces.error) == _told(whole.error)
    # What is given out is the stream, without a byte too many.
    again = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    assert stream.startswith(again)


def _told(error: FrameSizeError | None) -> int | None:
    return None if error is None else error.length
