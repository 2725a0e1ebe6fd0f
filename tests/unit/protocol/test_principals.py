"""Which ids of SASL are valid in an ACL, as Apache ZooKeeper has it."""

from __future__ import annotations

from itertools import product

import pytest

from paddock.protocol.principals import is_sasl_id


@pytest.mark.parametrize(
    "identifier", ["bob", "", "a/b", "a/b/c", "x y", "a@B", "a/b@C", "@", "/@", "a/@", "bob\n"]
)
def test_names_and_principals_are_valid(identifier: str) -> None:
    assert is_sasl_id(identifier)


@pytest.mark.parametrize("identifier", ["a@b@c", "a/b/c@D", "a@b/c", "@@"])
def test_what_has_more_parts_than_a_principal_is_not(identifier: str) -> None:
    assert not is_sasl_id(identifier)


def test_every_short_id_is_valid_or_not_by_its_parts() -> None:
    """Not by the expression alone, which not every Python might match as it is written."""
    for length in range(8):
        for characters in product("a/@", repeat=length):
            identifier = "".join(characters)
            name, at, realm = identifier.partition("@")
            is_principal = name.count("/") <= 1 and not {"/", "@"}.intersection(realm)
            assert is_sasl_id(identifier) == (not at or is_principal), identifier


@pytest.mark.parametrize("piece", ["a", "/", "a/", "@", "a@", "/@"])
def test_a_long_id_is_looked_at_once(piece: str) -> None:
    assert not is_sasl_id(piece * 1_000_000 + "@@")
