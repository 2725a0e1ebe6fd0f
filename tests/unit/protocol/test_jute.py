"""Jute's primitives at their edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter, write_i32_be, write_i64_be

from paddock.protocol.jute import (
    DecodeError,
    Reader,
    to_int32,
    write_buffer,
    write_strings,
    write_text,
)


def written(*, i32: int | None = None, i64: int | None = None) -> bytes:
    writer = BytesWriter()
    if i32 is not None:
        write_i32_be(writer, i32)
    if i64 is not None:
        write_i64_be(writer, i64)
    return writer.getvalue()


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
def test_integers_come_back_as_written(small: int, large: int) -> None:
    reader = Reader(written(i32=small, i64=large))
    assert (reader.int32(), reader.int64()) == (small, large)
    assert reader.rest() == b""


def test_a_length_of_minus_one_is_null() -> None:
    assert Reader(written(i32=-1)).buffer() is None
    assert Reader(written(i32=-1)).text() is None


@pytest.mark.parametrize("length", [-2, -(1 << 31), 1, (1 << 31) - 1])
def test_a_length_below_minus_one_or_past_the_end_is_refused(length: int) -> None:
    for read in (Reader.buffer, Reader.string, Reader.text):
        with pytest.raises(DecodeError):
            read(Reader(written(i32=length)))


def test_a_string_that_must_be_there_may_not_be_null() -> None:
    with pytest.raises(DecodeError):
        Reader(written(i32=-1)).string()


def test_a_null_vector_is_refused_and_another_negative_one_is_empty() -> None:
    with pytest.raises(DecodeError):
        Reader(written(i32=-1)).strings()
    assert Reader(written(i32=-2)).strings() == []


def test_any_byte_but_zero_is_true() -> None:
    assert [Reader(bytes([byte])).boolean() for byte in (0, 1, 2, 255)] == [False, True, True, True]


def test_malformed_text_is_replaced_and_not_refused() -> None:
    writer = BytesWriter()
    write_buffer(writer, b"a\xffb")
    assert Reader(writer.getvalue()).text() == "a\ufffdb"


@given(st.lists(st.binary(max_size=20)), st.text(st.characters(exclude_categories=["Cs"])))
def test_strings_and_text_come_back_as_written(values: list[bytes], text: str) -> None:
    writer = BytesWriter()
    write_strings(writer, values)
    write_text(writer, text)
    write_text(writer, None)
    reader = Reader(writer.getvalue())
    assert (reader.strings(), reader.text(), reader.text()) == (values, text, None)


@pytest.mark.parametrize(
    ("number", "wrapped"),
    [
        (0, 0),
        (-1, -1),
        ((1 << 31) - 1, (1 << 31) - 1),
        (1 << 31, -(1 << 31)),
        ((1 << 31) + 1, -(1 << 31) + 1),
        (-(1 << 31) - 1, (1 << 31) - 1),
        ((1 << 32) - 2, -2),
    ],
)
def test_a_32_bit_counter_wraps_around(number: int, wrapped: int) -> None:
    assert to_int32(number) == wrapped
