"""Identities of principals, by the rules of `auth_to_local`."""

from __future__ import annotations

import pytest

from paddock.server.config.config import ConfigError
from paddock.server.sasl.local_names import LocalNames, NameRefusedError


def identity(principal: str, rules: str = "DEFAULT", **settings: bool) -> str:
    return LocalNames(rules, own_realm="OURS", **settings).identity(principal)


@pytest.mark.parametrize("principal", ["alice@OURS", "zk/host.example.com@OURS", "a b@OURS"])
def test_by_default_a_principal_is_its_own_name(principal: str) -> None:
    assert identity(principal) == principal


def test_host_and_realm_can_be_taken_away() -> None:
    assert identity("zk/host@OURS", has_host=False) == "zk@OURS"
    assert identity("zk/host@OURS", has_realm=False) == "zk/host"
    assert identity("zk/host@OURS", has_host=False, has_realm=False) == "zk"


@pytest.mark.parametrize("has_realm", [True, False])
def test_a_name_of_another_realm_is_never_one_of_ours(has_realm: bool) -> None:
    assert identity("alice@THEIRS", has_realm=has_realm) == "alice@THEIRS"


@pytest.mark.parametrize(
    ("rules", "principal", "expected"),
    [
        ("RULE:[1:$1@$0](.*@THEIRS)s/@.*//", "alice@THEIRS", "alice"),
        ("RULE:[2:$1;$2](^zk;.*$)s/;.*$//", "zk/host@OURS", "zk"),
        ("RULE:[2:$1](zk)s/^.*$/super/", "zk/host@OURS", "super"),
        ("RULE:[1:$1]s/a/4/", "ana@OURS", "4na"),
        ("RULE:[1:$1]s/a/4/g", "ana@OURS", "4n4"),
        (r"RULE:[1:$1]s/(a)(n)/$2$1\$/", "ana@OURS", "na$a"),
        ("RULE:[1:team-$1]", "ana@OURS", "team-ana"),
        ("RULE:[2:$1](other) RULE:[2:$2] DEFAULT", "zk/host@OURS", "host"),
        ("RULE:[2:$1]\nDEFAULT", "ana@OURS", "ana"),
        # A rule of one part is not for a name of two, and one that is cut short does not match.
        ("RULE:[1:x] RULE:[2:$1](z) DEFAULT", "zk/host@OURS", "zk"),
        (r"RULE:[1:$1](\w+)", "ana@OURS", "ana"),
    ],
)
def test_the_first_rule_that_fits_makes_the_short_name(
    rules: str, principal: str, expected: str
) -> None:
    assert identity(principal, rules, has_host=False, has_realm=False) == expected


def test_host_and_realm_stand_behind_what_a_rule_makes() -> None:
    assert identity("zk/host@OURS", "RULE:[2:$1]s/zk/keeper/") == "keeper/host@OURS"


@pytest.mark.parametrize("rules", ["", "RULE:[1:$1](bob)", "RULE:[2:$1]"])
def test_where_no_rule_fits_the_principal_stays_as_it_is(rules: str) -> None:
    assert identity("alice@OURS", rules, has_realm=False) == "alice@OURS"


def test_words_are_those_of_ascii_as_in_java() -> None:
    assert identity("älice@OURS", r"RULE:[1:$1](\w+)", has_realm=False) == "älice@OURS"


def test_what_is_kept_once_it_has_matched_is_as_in_java() -> None:
    rules = "RULE:[1:$1](a[^x]*+)s/(?>(?:al?i)*)l*+(.*+)/$1/"
    assert identity("aialice@OURS", rules, has_realm=False) == "ce"


@pytest.mark.parametrize("rules", ["RULE:[1:$1@$0]", "RULE:[2:$1/$2]", "RULE:[1:$1]s/a/@/"])
def test_a_rule_must_not_make_a_whole_principal(rules: str) -> None:
    principal = "ana/x@OURS" if rules.startswith("RULE:[2") else "ana@OURS"
    with pytest.raises(NameRefusedError, match="leaves a '/' or '@'"):
        identity(principal, rules)


@pytest.mark.parametrize(
    "principal", ["alice", "a/b/c@OURS", "a@b@OURS", r"a\@b@OURS", "WELLKNOWN/ANONYMOUS@OURS"]
)
def test_other_names_are_refused(principal: str) -> None:
    with pytest.raises(NameRefusedError):
        identity(principal)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("DEFUALT", "the rule 'DEFUALT' is not understood"),
        ("RULE:[1:$1]s/a/b/L", "the rule 'L' is not understood"),
        ("RULE:[$1]", "is not understood"),
        ("RULE:[1:$2]", r"there is no \$2 in a name of 1 parts"),
        ("RULE:[1:$]", r"there is no \$ in a name"),
        ("RULE:[1:$1]s/(a)/$2/", r"there is no group for \$2"),
        ("RULE:[1:$1](a**)", "multiple repeat"),
        (r"RULE:[1:$1](\p{Alpha}+)", r"is not understood here"),
        ("RULE:[1:$1]([a-z&&[^b]])", "is not understood here"),
        # An atomic group is fine, and so is a possessive repeat of one character.
        ("RULE:[1:$1]s/(a|lice)*+/x/", r"'\)\*\+' is not understood here: write \(\?>…\)"),
        (r"RULE:[1:$1]s/(a)\1++/x/", r"1\+\+' is not understood here"),
    ],
)
def test_what_is_not_understood_is_an_error_at_the_start(rules: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"security.auth_to_local: .*{why}"):
        identity("alice@OURS", rules)
