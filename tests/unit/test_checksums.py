"""The checksums of files: the same numbers, whatever computes them."""

from __future__ import annotations

import importlib
import platform
import random
import sys
import zlib

import pytest

from paddock import _checksums


def test_they_are_those_of_zlib() -> None:
    chance = random.Random(32)
    for length in (*range(130), 1_000, 5_119, 5_120, 100_003):
        data, before = chance.randbytes(length), chance.getrandbits(32)
        assert _checksums.crc32(data) == zlib.crc32(data)
        assert _checksums.crc32(data, before) == zlib.crc32(data, before)
        for other in (memoryview(data)[1:], bytearray(data)):
            assert _checksums.crc32(other, before) == zlib.crc32(other, before)
    for before in (-1, 1 << 32, (1 << 40) + 7):
        assert _checksums.crc32(b"data", before) == zlib.crc32(b"data", before)


def test_they_continue_those_of_what_comes_before() -> None:
    whole = bytes(range(256)) * 3
    for cut in (0, 1, 64, 700):
        assert _checksums.crc32(whole[cut:], _checksums.crc32(whole[:cut])) == zlib.crc32(whole)


@pytest.mark.skipif(
    (sys.platform, sys.implementation.name) != ("linux", "cpython")
    or platform.machine() not in ("x86_64", "aarch64"),
    reason="it is not asked for",
)
def test_the_fastest_is_used() -> None:
    assert _checksums.crc32.__module__ == "isal.isal_zlib"


def test_without_it_they_are_computed_by_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "isal", None)
        patch.setitem(sys.modules, "isal.isal_zlib", None)
        importlib.reload(_checksums)
        assert _checksums.crc32 is zlib.crc32
    importlib.reload(_checksums)
