"""Who may do what: permissions, valid ACLs, and what others may see of them."""

from __future__ import annotations

import pytest

from paddock.protocol.acl import (
    ACL,
    ADMIN,
    ALL,
    ANYONE,
    CREATE,
    DELETE,
    READ,
    SUPER,
    WRITE,
    Identity,
    encode_acls,
)
from paddock.state.access import (
    NOBODY,
    ACLTable,
    Identities,
    NodeACL,
    user_name,
)

BOB = Identity("digest", "bob:hash")
EVE = Identity("digest", "eve:other")
HOME = Identity("ip", "127.0.0.1")


def node_acl(*entries: ACL) -> NodeACL:
    return NodeACL(entries, encode_acls(entries))


def test_world_is_everybody() -> None:
    acl = node_acl(ACL(READ | WRITE, ANYONE))
    assert acl.permits(READ, NOBODY)
    assert acl.permits(WRITE, Identities((BOB,)))
    assert not acl.permits(CREATE, Identities((BOB, HOME)))


def test_permissions_of_several_entries_add_up() -> None:
    acl = node_acl(ACL(READ, ANYONE), ACL(WRITE, BOB), ACL(DELETE, BOB), ACL(READ, ANYONE))
    bob = Identities((BOB,))
    assert [p for p in (READ, WRITE, CREATE, DELETE, ADMIN) if acl.permits(p, bob)] == [
        *(READ, WRITE, DELETE)
    ]
    assert not acl.permits(WRITE, Identities((EVE,)))


def test_any_of_several_permissions_is_enough() -> None:
    acl = node_acl(ACL(ADMIN, BOB))
    assert acl.permits(READ | ADMIN, Identities((BOB,)))
    assert not acl.permits(READ | WRITE, Identities((BOB,)))


def test_any_identity_of_a_client_counts() -> None:
    assert node_acl(ACL(READ, EVE)).permits(READ, Identities((HOME, BOB, EVE)))


def test_super_may_everything() -> None:
    assert node_acl(ACL(READ, BOB)).permits(ADMIN, Identities((HOME, SUPER)))
    assert node_acl(ACL(0, ANYONE)).permits(DELETE, Identities((SUPER,)))
    # Who is super by a certificate has its name there.
    assert node_acl(ACL(READ, BOB)).permits(READ, Identities((Identity("super", "CN=x"),)))


def test_an_id_of_one_scheme_is_nothing_in_another() -> None:
    acl = node_acl(ACL(ALL, Identity("digest", "127.0.0.1:x")), ACL(ALL, Identity("ip", "1.2.3.4")))
    assert not acl.permits(READ, Identities((Identity("ip", "127.0.0.1"),)))
    assert not acl.permits(READ, Identities((Identity("digest", "1.2.3.4"),)))


@pytest.mark.parametrize(
    ("expression", "address", "matches"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("10.0.0.0/8", "10.255.1.2", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.1.2.3/8", "10.9.9.9", True),
        ("10.0.0.128/25", "10.0.0.127", False),
        ("10.0.0.128/25", "10.0.0.129", True),
        ("1.2.3.4/0", "200.1.1.1", True),
        ("1.2.3.4/32", "1.2.3.4", True),
        ("1.2.3.4/32", "1.2.3.5", False),
        ("::1", "::1", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("2001:db8::/32", "2001:db8:ffff::1", True),
        ("2001:db8::/32", "2001:db9::1", False),
        ("2001:db8::80/121", "2001:db8::7f", False),
        ("::/0", "fe80::1", True),
        # One width is nothing in the other, whatever the prefix.
        ("::/0", "10.0.0.1", False),
        ("0.0.0.0/0", "::1", False),
        ("0.0.0.0/0", "not an address", False),
    ],
)
def test_an_ip_acl_is_an_address_or_a_network(expression: str, address: str, matches: bool) -> None:
    acl = node_acl(ACL(READ, Identity("ip", expression)))
    assert acl.permits(READ, Identities((Identity("ip", address),))) is matches


def test_a_certificate_is_known_by_exactly_its_name() -> None:
    acl = node_acl(ACL(READ, Identity("x509", "CN=alice,O=Example")))
    assert acl.permits(READ, Identities((Identity("x509", "CN=alice,O=Example"),)))
    assert not acl.permits(READ, Identities((Identity("x509", "CN=alice, O=Example"),)))
    assert not acl.permits(READ, Identities((Identity("digest", "CN=alice,O=Example"),)))


def test_the_name_of_a_user_has_no_hash() -> None:
    assert user_name(BOB) == "bob"
    assert user_name(HOME) == "127.0.0.1"


def test_identities_are_added_once_in_their_order() -> None:
    identities = Identities((HOME,)).adding(BOB).adding(BOB, EVE)
    assert identities.entries == (HOME, BOB, EVE)
    assert not identities.is_super
    assert identities.adding(SUPER).is_super


def test_equal_acls_are_kept_once_and_as_long_as_somebody_has_them() -> None:
    table = ACLTable()
    first = table.acquire((ACL(READ, BOB),))
    second = table.acquire((ACL(READ, BOB),))
    other = table.acquire((ACL(READ, EVE),))
    assert first is second
    assert first is not other
    assert len(table) == 2
    table.release(first)
    assert len(table) == 2
    table.release(first)
    assert len(table) == 1
    assert table.acquire((ACL(READ, BOB),)).users == 1


def test_networks_of_every_length_are_found() -> None:
    acl = node_acl(
        ACL(READ, Identity("ip", "10.0.0.0/8")),
        ACL(WRITE, Identity("ip", "10.1.0.0/16")),
        ACL(CREATE, Identity("ip", "10.1.2.3")),
        ACL(DELETE, Identity("ip", "10.1.2.3/32")),
        ACL(ADMIN, Identity("ip", "0.0.0.0/0")),
        ACL(ALL, Identity("ip", "::/0")),
    )

    def granted(address: str) -> int:
        mine = Identities((Identity("ip", address),))
        return sum(one for one in (READ, WRITE, CREATE, DELETE, ADMIN) if acl.permits(one, mine))

    assert granted("10.1.2.3") == ALL
    assert granted("10.1.2.4") == READ | WRITE | ADMIN
    assert granted("10.2.2.3") == READ | ADMIN
    assert granted("11.1.2.3") == ADMIN
    assert granted("2001:db8::1") == ALL
    assert granted("nonsense") == 0


def test_an_identity_is_granted_what_all_its_entries_grant_whatever_stands_before() -> None:
    strangers = [ACL(ALL, Identity("digest", f"user{number}:x")) for number in range(1000)]
    acl = node_acl(*strangers, ACL(READ, BOB), ACL(WRITE, BOB), ACL(ALL, Identity("x509", BOB.id)))
    bob = Identities((HOME, BOB))
    assert acl.permits(READ, bob)
    assert acl.permits(WRITE, bob)
    assert not acl.permits(ADMIN, bob)


def test_the_user_super_of_sasl_has_what_any_entry_of_sasl_grants() -> None:
    acl = node_acl(
        ACL(READ, Identity("sasl", "ann")), ACL(WRITE, Identity("sasl", "eve")), ACL(DELETE, BOB)
    )
    granted = {
        name: acl.granted(Identities((HOME, Identity("sasl", name))))
        for name in ("ann", "eve", "super", "carol")
    }
    assert granted == {"ann": READ, "eve": WRITE, "super": READ | WRITE, "carol": 0}
    # A user of another scheme has the name for nothing.
    assert not acl.granted(Identities((Identity("x509", "super"), Identity("digest", "super"))))
    assert not node_acl(ACL(DELETE, BOB)).granted(Identities((Identity("sasl", "super"),)))
