"""Which ids of SASL are valid in an ACL, as Apache ZooKeeper has it."""

from __future__ import annotations

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
