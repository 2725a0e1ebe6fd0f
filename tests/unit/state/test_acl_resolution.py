"""From the ACL of a request to one that can be stored, within its bounds."""

from __future__ import annotations

from zlib import crc32

import pytest

from paddock.errors import INVALID_ACL
from paddock.protocol.acl import (
    ACL,
    ALL,
    ANYONE,
    CREATOR,
    NOT_UNDERSTOOD,
    READ,
    SUPER,
    WRITE,
    Identity,
    encode_acls,
)
from paddock.protocol.jute import DecodeError
from paddock.state.access import NOBODY, Identities
from paddock.state.acl_resolution import (
    EXPANDED_BYTES_MAX,
    FORMER_BYTES_MAX,
    Resolver,
    expanded_crc,
    resolve,
)
from paddock.state.entry import (
    ACL_ENTRIES_MAX,
    Refused,
)

BOB = Identity("digest", "bob:hash")
EVE = Identity("digest", "eve:other")
HOME = Identity("ip", "127.0.0.1")


@pytest.mark.parametrize(
    "identity",
    [
        ANYONE,
        BOB,
        Identity("digest", ":hash"),
        Identity("digest", "bob:hash:::"),
        Identity("ip", "10.0.0.1"),
        Identity("ip", "10.0.0.0/8"),
        Identity("ip", "10.0.0.0/0"),
        Identity("ip", "::1"),
        Identity("ip", "fe80::/10"),
    ],
    ids=str,
)
def test_a_valid_acl_is_stored_as_it_is(identity: Identity) -> None:
    assert resolve([ACL(READ, identity)], NOBODY) == (ACL(READ, identity),)


@pytest.mark.parametrize(
    "identity",
    [
        Identity("world", "everyone"),
        Identity("world", ""),
        Identity("digest", "bob"),
        Identity("digest", "bob:"),
        Identity("digest", "a:b:c"),
        Identity("digest", ""),
        Identity("ip", ""),
        Identity("ip", "10.0.0"),
        Identity("ip", "10.0.0.256"),
        Identity("ip", "10.0.0.x"),
        Identity("ip", "10.0.0.1/33"),
        Identity("ip", "10.0.0.1/-1"),
        Identity("ip", "10.0.0.1/"),
        Identity("ip", "::1/129"),
        Identity("ip", "::1::"),
        Identity("ip", "localhost"),
        Identity("super", ""),
        Identity("sasl", "bob"),
        Identity("", ""),
    ],
    ids=str,
)
def test_an_invalid_acl_is_refused(identity: Identity) -> None:
    with pytest.raises(Refused) as refusal:
        resolve([ACL(READ, ANYONE), ACL(READ, identity)], Identities((BOB,)))
    assert refusal.value.code == INVALID_ACL


def test_a_certificate_is_named_only_where_clients_have_them() -> None:
    acl = ACL(ALL, Identity("x509", "CN=alice,O=Example"))
    assert resolve([acl], NOBODY, knows_certificates=True) == (acl,)
    for refused, knows_certificates in (
        (acl, False),
        (ACL(ALL, Identity("x509", "alice")), True),
        (ACL(ALL, Identity("super", "CN=alice")), True),
    ):
        with pytest.raises(Refused):
            resolve([refused], NOBODY, knows_certificates)


def test_a_name_of_sasl_is_valid_only_where_clients_can_prove_it() -> None:
    acl = ACL(ALL, Identity("sasl", "zk/host@EXAMPLE.COM"))
    assert resolve([acl], NOBODY, knows_sasl=True) == (acl,)
    for refused, knows_sasl in (
        (acl, False),
        (ACL(ALL, Identity("sasl", "a@b@c")), True),
    ):
        with pytest.raises(Refused):
            resolve([refused], NOBODY, knows_sasl=knows_sasl)


def test_no_acl_and_an_acl_of_nobody_are_refused() -> None:
    wrong: list[list[ACL | None] | None] = [None, [], [None], [ACL(ALL, ANYONE), None]]
    for acls in wrong:
        with pytest.raises(Refused):
            Resolver(Identities((BOB,)), knows_certificates=False).resolve(acls)


def test_an_acl_that_is_not_understood_is_no_refusal() -> None:
    with pytest.raises(DecodeError):
        resolve([ACL(READ, ANYONE), NOT_UNDERSTOOD], NOBODY)


def test_each_entry_is_stored_once() -> None:
    entries: list[ACL | None] = [ACL(READ, BOB), ACL(READ, ANYONE), ACL(READ, BOB), ACL(ALL, BOB)]
    stored = Resolver(NOBODY, knows_certificates=False).resolve(entries)
    assert stored.entries == (ACL(READ, BOB), ACL(READ, ANYONE), ACL(ALL, BOB))


def test_auth_becomes_everybody_that_the_client_has_proved_to_be() -> None:
    identities = Identities((HOME, BOB, SUPER, EVE))
    assert resolve([ACL(READ, CREATOR)], identities) == (ACL(READ, BOB), ACL(READ, EVE))
    by_sasl = Identity("sasl", "bob")
    assert resolve([ACL(READ, CREATOR)], Identities((by_sasl,))) == (ACL(READ, by_sasl),)
    # Whatever its id is.
    assert resolve([ACL(READ, Identity("auth", "x"))], identities)[0] == ACL(READ, BOB)


def test_auth_of_somebody_who_proved_nothing_is_refused() -> None:
    for identities in (NOBODY, Identities((HOME,)), Identities((HOME, SUPER))):
        with pytest.raises(Refused):
            resolve([ACL(ALL, CREATOR)], identities)


def crowd(count: int) -> Identities:
    """A client that has authenticated as so many."""
    return Identities((HOME, *(Identity("digest", f"u{number}:hash") for number in range(count))))


def creators(count: int) -> list[ACL | None]:
    """So many `auth` entries, of which none is like another."""
    return [ACL(permissions, CREATOR) for permissions in range(count)]


def test_the_product_of_auth_and_identities_is_bounded_for_all_acls_of_a_request() -> None:
    resolver = Resolver(crowd(50), knows_certificates=False)
    one = len(resolver.resolve([ACL(0, CREATOR)]).wire)
    for permissions in range(1, EXPANDED_BYTES_MAX // one):
        resolver.resolve([ACL(permissions, CREATOR)])
    with pytest.raises(Refused) as refusal:
        resolver.resolve([ACL(ALL, CREATOR)])
    assert refusal.value.code == INVALID_ACL


def test_one_acl_with_too_large_a_product_is_refused_before_it_is_expanded() -> None:
    with pytest.raises(Refused):
        Resolver(crowd(50), knows_certificates=False).resolve(creators(60_000))


def test_an_acl_that_comes_again_in_a_request_counts_once() -> None:
    resolver = Resolver(crowd(50), knows_certificates=False)
    first = resolver.resolve([ACL(ALL, CREATOR)])
    for _ in range(10_000):
        assert resolver.resolve([ACL(ALL, CREATOR)]) is first
    assert len(first.entries) == 50


def test_the_entries_of_all_acls_of_a_request_are_bounded() -> None:
    resolver = Resolver(NOBODY, knows_certificates=False)
    half: list[ACL | None] = [ACL(READ, Identity("digest", f"u{n}:x")) for n in range(2_500)]
    resolver.resolve(half)
    resolver.resolve([*half[1:], ACL(READ, BOB)])
    assert 2 * len(half) == ACL_ENTRIES_MAX
    with pytest.raises(Refused) as refusal:
        resolver.resolve([ACL(READ, ANYONE)])
    assert refusal.value.code == INVALID_ACL


def test_the_checksum_of_an_expansion_is_that_of_its_bytes() -> None:
    identities = crowd(7)
    acls: list[ACL | None] = [ACL(READ, BOB), *creators(5), ACL(-1, ANYONE), ACL(-5, CREATOR)]
    full = resolve(acls, identities)
    given = [acl for acl in acls if acl is not None]
    expected = Resolver(identities, False, is_bounded=False).resolve(acls)
    assert encode_acls(full) == expected.wire
    assert expanded_crc(given, identities) == expected.crc
    assert not expected.is_former


def test_a_large_product_of_former_rules_is_kept_small_and_grants_the_same() -> None:
    identities = crowd(300)
    acls: list[ACL | None] = [ACL(READ, EVE), *creators(10_000), ACL(WRITE, BOB)]
    acl = Resolver(identities, knows_certificates=False, is_bounded=False).resolve(acls)
    assert acl.is_former
    assert len(acl.wire) < FORMER_BYTES_MAX
    # All permissions below 10,000 together.
    assert acl.entries[1] == ACL((1 << 14) - 1, Identity("digest", "u0:hash"))
    assert acl.permits(ALL, Identities((Identity("digest", "u299:hash"),)))
    assert acl.permits(READ, Identities((EVE,)))
    assert not acl.permits(WRITE, Identities((EVE,)))
    assert acl.permits(WRITE, Identities((BOB,)))


def test_a_large_product_of_former_rules_has_the_checksum_that_it_had_then() -> None:
    identities = crowd(90)
    acls = creators(100)
    acl = Resolver(identities, knows_certificates=False, is_bounded=False).resolve(acls)
    assert acl.is_former
    assert acl.crc == crc32(encode_acls(resolve(acls, identities)))
