"""Bytes that are nearly right: valid ones of which something was changed, cut, moved or repeated.

Random bytes seldom get past the first length of a record; these do.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from hypothesis import strategies as st

_T = TypeVar("_T")

#: Numbers that stand where counts and lengths are: the edges of what they may be, and far beyond.
LIES = (-(2**31), -5, -2, -1, 0, 1, 3, 2**16, 2**24, 2**31 - 1)


def mostly(
    common: st.SearchStrategy[_T], rare: st.SearchStrategy[_T], times: int = 9
) -> st.SearchStrategy[_T]:
    """Draw what is common so many times as often as what is rare."""
    return st.integers(0, times).flatmap(lambda drawn: rare if drawn == times else common)


def several(strategy: st.SearchStrategy[_T], parts_max: int = 6) -> st.SearchStrategy[list[_T]]:
    """Draw a list that is not too short; lists of lists, since one list alone would be."""
    parts = st.lists(st.lists(strategy, min_size=2, max_size=6), min_size=1, max_size=parts_max)
    return parts.map(lambda drawn: [one for part in drawn for one in part])


@st.composite
def spoiled(draw: st.DrawFn, valid: st.SearchStrategy[bytes]) -> bytes:
    """Draw something valid and spoil it, in one to four ways."""
    data = draw(valid)
    for _ in range(draw(st.integers(1, 4))):
        data = _spoil(draw, valid, data)
    return data


def _spoil(draw: st.DrawFn, valid: st.SearchStrategy[bytes], data: bytes) -> bytes:
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 16)))
    match draw(st.sampled_from(range(7))):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data[:end] + data[start:]
        case 3:
            other = draw(valid)
            return data[:start] + other[draw(st.integers(0, len(other))) :]
        case 4:
            # Where the numbers of a record usually stand: every fourth byte.
            start -= start % 4
            lie = struct.pack(">i", draw(st.sampled_from(LIES)))
            return data[:start] + lie + data[start + 4 :]
        case 5:
            junk = draw(st.binary(min_size=1, max_size=8))
            return data[:start] + junk + data[start + len(junk) :]
        case _:
            if start == len(data):
                return data + b"\0"
            bit = 1 << draw(st.integers(0, 7))
            return data[:start] + bytes([data[start] ^ bit]) + data[start + 1 :]
