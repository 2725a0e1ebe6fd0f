"""Which expressions of users are not taken, because not every Python matches them rightly."""

from __future__ import annotations

import re
from itertools import product

import pytest

from paddock.server.config.expressions import possessive_group
from tests.support.expressions import compiles, repeats_group_possessively

# What an expression may be made of, so that what is repeated is hard to see.
PIECES = [
    *("(", ")", "(a)", "(?>", "(?=a)", "[", "]", "[)]", "^", "\\", "(?#", "(?x)", "#", " ", "\n"),
    *("b", "1", "{", "*+", "{1,2}+", "+"),
]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("(ab)*+", ")*+"),
        ("(?:ab?c)++d", ")++"),
        ("x(a|b)?+", ")?+"),
        ("(?:a){2}+", "){2}+"),
        ("(?:a){2,}+", "){2,}+"),
        ("(?:a){,3}+", "){,3}+"),
        ("((?:ab)*+)*", ")*+"),
        ("(?=a)*+", ")*+"),
        (r"(a)\1*+", r"\1*+"),
        (r"(?P<n>a)(?P=n)*+", ")*+"),
        (r"[(](?:a\))*+", ")*+"),
        ("(ab)(?#why)*+", "(?#why)*+"),
        ("(?x)(ab) *+", "*+"),
        ("(?x)(ab)# why\n*+", "*+"),
        ("(?i)(?sx:(ab) *+)", "*+"),
    ],
)
def test_a_possessive_repeat_of_more_than_one_character_is_found(pattern: str, found: str) -> None:
    assert compiles(pattern)
    assert possessive_group(pattern) == found


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "abc", "a*+b", ".++", "[^/]?+", "[]()]*+", r"[\])]*+", r"\)*+", r"\w{2,3}+", " *+"),
        *("(a*+)*", "(?>(?:ab)*)", "(a)*", "(a)+", "(a){2}", "a{2}+b", "({}+)", r"\(a\)*+"),
        r"\0*+",
    ],
)
def test_any_other_is_taken(pattern: str) -> None:
    assert compiles(pattern)
    assert possessive_group(pattern) is None


def test_none_is_overlooked() -> None:
    found = 0
    for number in range(4):
        for pieces in product(PIECES, repeat=number):
            pattern = "".join(pieces)
            if possessive_group(pattern) is None and compiles(pattern):
                assert not repeats_group_possessively(pattern), pattern
            found += possessive_group(pattern) is not None
    assert found > 100


def test_an_atomic_group_means_the_same_and_is_matched_rightly() -> None:
    atomic = re.compile("(?>(?:ab?c)*)")
    # The possessive repeat matches "aca" whole before Python 3.11.5.
    for text, length in ("aca", 2), ("abcab", 3), ("a", 0), ("acabcac", 7):
        match = atomic.match(text)
        assert match is not None
        assert match.end() == length
