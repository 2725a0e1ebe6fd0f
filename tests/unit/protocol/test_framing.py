"""Frames out of a stream, however it is cut."""

from __future__ import annotations

import struct
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.protocol.framing import FrameBuffer

LIMIT = 1000


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def test_a_whole_frame_comes_out_at_once() -> None:
    assert FrameBuffer(LIMIT).receive_data(frame(b"hello")) == [b"hello"]


def test_an_empty_frame_is_a_frame() -> None:
    assert FrameBuffer(LIMIT).receive_data(frame(b"") + frame(b"x")) == [b"", b"x"]


def test_frames_come_out_of_single_bytes() -> None:
    buffer = FrameBuffer(LIMIT)
    stream = frame(b"first") + frame(b"") + frame(b"third")
    out = [buffer.receive_data(bytes([byte])) for byte in stream]
    assert [payload for some in out for payload in some] == [b"first", b"", b"third"]
    # Each comes with its last byte, not later.
    assert out[8] == [b"first"]
    assert out[12] == [b""]


def test_several_frames_and_a_beginning_come_out_of_one_read() -> None:
    buffer = FrameBuffer(LIMIT)
    last = frame(b"third")
    assert buffer.receive_data(frame(b"1") + frame(b"22") + last[:6]) == [b"1", b"22"]
    assert buffer.receive_data(last[6:] + frame(b"4")) == [b"third", b"4"]


def test_nothing_comes_out_of_nothing() -> None:
    buffer = FrameBuffer(LIMIT)
    assert buffer.receive_data(b"") == []
    assert buffer.receive_data(frame(b"x")[:4]) == []
    assert buffer.receive_data(b"") == []
    assert buffer.receive_data(b"x") == [b"x"]


def test_the_largest_frame_is_allowed() -> None:
    buffer = FrameBuffer(LIMIT)
    assert buffer.receive_data(frame(b"x" * LIMIT)) == [b"x" * LIMIT]
    assert buffer.error is None


@pytest.mark.parametrize("length", [LIMIT + 1, 0x7FFF_FFFF, -1, -(1 << 31)])
def test_a_length_that_is_not_allowed_is_an_error_after_the_frames_before_it(length: int) -> None:
    buffer = FrameBuffer(LIMIT)
    stream = frame(b"good") + struct.pack(">i", length) + frame(b"never")
    assert buffer.receive_data(stream) == [b"good"]
    assert buffer.error is not None
    assert buffer.error.length == length
    assert str(LIMIT) in str(buffer.error)
    # And it stays: nothing after it can be understood.
    assert buffer.receive_data(frame(b"never")) == []


def test_a_bad_length_in_single_bytes_is_noticed_with_its_last_byte() -> None:
    buffer = FrameBuffer(LIMIT)
    for byte in b"\xff\xff\xff":
        buffer.receive_data(bytes([byte]))
    assert buffer.error is None
    buffer.receive_data(b"\xff")
    assert buffer.error is not None


def test_a_large_frame_that_is_announced_and_not_sent_holds_no_memory() -> None:
    announcement = struct.pack(">i", 1 << 30) + b"only this"
    tracemalloc.start()
    try:
        buffers = [FrameBuffer(1 << 30) for _ in range(100)]
        for buffer in buffers:
            buffer.receive_data(announcement)
        used, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 100_000


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 400), max_size=12))
def test_the_cuts_of_a_stream_do_not_matter(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frame(payload) for payload in payloads)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    buffer = FrameBuffer(LIMIT)
    out: list[bytes] = []
    for start, end in pairwise(edges):
        out += buffer.receive_data(stream[start:end])
    assert out == payloads
    assert buffer.error is None


@given(st.lists(st.binary(max_size=60), max_size=10))
def test_any_bytes_give_frames_or_an_error_within_the_limit(pieces: list[bytes]) -> None:
    buffer = FrameBuffer(50)
    out: list[bytes] = []
    for piece in pieces:
        out += buffer.receive_data(piece)
    assert all(len(payload) <= 50 for payload in out)
    assert b"".join(pieces).startswith(b"".join(frame(payload) for payload in out))
