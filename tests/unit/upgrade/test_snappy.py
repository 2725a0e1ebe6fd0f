"""Snappy as snappy-java writes it: blocks put together by hand, and broken ones."""

import io

import pytest

from paddock.upgrade.snappy import BLOCK_BYTES_MAX, MAGIC, SnappyError, SnappyReader, decompress


def literal(data: bytes) -> bytes:
    length = len(data) - 1
    if length < 60:
        return bytes([length << 2]) + data
    size = (length.bit_length() + 7) // 8
    return bytes([59 + size << 2]) + length.to_bytes(size, "little") + data


def size(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (size(0), b""),
        (size(3) + literal(b"abc"), b"abc"),
        (size(60) + literal(b"x" * 60), b"x" * 60),
        (size(61) + literal(b"x" * 61), b"x" * 61),
        (size(70_000) + literal(b"y" * 70_000), b"y" * 70_000),
        # A copy with an offset of 11 bits: 4 to 11 bytes.
        (size(8) + literal(b"abcd") + bytes([0b000_000_01, 4]), b"abcdabcd"),
        (size(300 + 11) + literal(bytes(range(150)) * 2) + bytes([0b001_111_01, 44]),
         bytes(range(150)) * 2 + bytes(range(11))),
        # One of 16 bits, and one of 32: 1 to 64 bytes.
        (size(4 + 3) + literal(b"abcd") + bytes([2 << 2 | 2, 3, 0]), b"abcdbcd"),
        (size(4 + 3) + literal(b"abcd") + bytes([2 << 2 | 3, 3, 0, 0, 0]), b"abcdbcd"),
        # A copy may read what it has just written.
        (size(1 + 64) + literal(b"z") + bytes([63 << 2 | 2, 1, 0]), b"z" * 65),
        (size(3 + 8) + literal(b"abc") + bytes([7 << 2 | 2, 3, 0]), b"abcabcabcab"),
    ],
)  # fmt: skip
def test_a_block_is_decompressed(block: bytes, expected: bytes) -> None:
    assert decompress(block) == expected


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\x80",
        b"\xff" * 5,
        size(BLOCK_BYTES_MAX + 1),
        size(3),
        size(3) + literal(b"ab"),
        size(1) + literal(b"ab"),
        size(3) + literal(b"abc")[:-1],
        size(100) + bytes([61 << 2, 200]),
        size(8) + literal(b"abcd") + bytes([1]),
        size(8) + literal(b"abcd") + bytes([1, 5]),
        size(8) + literal(b"abcd") + bytes([1, 0]),
        size(8) + literal(b"abcd") + bytes([3 << 2 | 2]),
        size(8) + literal(b"abcd") + bytes([3 << 2 | 3, 255, 255, 255, 255]),
    ],
)
def test_a_block_that_is_broken_is_refused(block: bytes) -> None:
    with pytest.raises(SnappyError):
        decompress(block)


def stream(*blocks: bytes) -> bytes:
    head = MAGIC + (1).to_bytes(4, "big") * 2
    return head + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


def read_all(data: bytes, piece: int) -> bytes:
    reader = SnappyReader(io.BytesIO(data).read)
    return b"".join(iter(lambda: reader.read(piece), b""))


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
def test_a_stream_gives_what_its_blocks_hold(piece: int) -> None:
    blocks = size(3) + literal(b"abc"), size(0), size(4) + literal(b"defg")
    assert read_all(stream(*blocks), piece) == b"abcdefg"
    assert read_all(stream(), piece) == b""


def test_a_stream_that_is_cut_anywhere_is_refused_or_ends_between_blocks() -> None:
    whole = stream(size(3) + literal(b"abc"), size(4) + literal(b"defg"))
    ends = {16: b"", 16 + 4 + 5: b"abc"}
    for cut in range(len(whole)):
        if cut in ends:
            assert read_all(whole[:cut], 100) == ends[cut]
        else:
            with pytest.raises(SnappyError):
                read_all(whole[:cut], 100)


def test_a_block_that_announces_too_much_is_refused_before_it_is_read() -> None:
    with pytest.raises(SnappyError, match="a block of 4294967295 bytes"):
        read_all(stream() + b"\xff" * 4, 100)
