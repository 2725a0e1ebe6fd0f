"""Identities and ACLs on the wire, and the digests that existing ACLs hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter, write_i32_be

from paddock.protocol.acl import (
    ACL,
    ADMIN,
    ALL,
    ANYONE,
    CREATOR,
    NOT_UNDERSTOOD,
    OPEN_LIST,
    READ,
    WRITE,
    Identity,
    digest_id,
    encode_acls,
    encode_identities,
    format_acl,
    is_masked,
    letters,
    parse_acl,
    read_acls,
    read_identities,
    read_whole_acls,
    without_secrets,
)
from paddock.protocol.jute import DecodeError, Reader, write_buffer


def acl_wire(scheme: bytes | None, identifier: bytes | None, permissions: int = ALL) -> bytes:
    writer = BytesWriter()
    write_i32_be(writer, 1)
    write_i32_be(writer, permissions)
    write_buffer(writer, scheme)
    write_buffer(writer, identifier)
    return writer.getvalue()


@pytest.mark.parametrize(
    ("credentials", "identifier"),
    [
        # As Apache's DigestAuthenticationProvider prints them.
        ("super:test", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="),
        ("alice:secret", "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E="),
        ("a:b:c", "a:cLzgnoJ6mP5qz3w+mwvPE2vDgu0="),
    ],
)
def test_a_digest_is_the_one_that_existing_acls_hold(credentials: str, identifier: str) -> None:
    assert digest_id(credentials) == identifier


def test_credentials_without_a_colon_have_a_digest_too() -> None:
    assert digest_id("nobody").startswith("nobody:")


def test_a_null_vector_of_acls_is_none() -> None:
    assert read_acls(Reader(b"\xff\xff\xff\xff")) is None
    assert read_acls(Reader(b"\xff\xff\xff\xfe")) == []


@pytest.mark.parametrize("scheme", [b"world", b"digest", b"ip"])
def test_a_null_id_is_not_understood_where_the_scheme_would_look_at_it(scheme: bytes) -> None:
    acls = read_acls(Reader(acl_wire(scheme, None)))
    assert acls is not None
    assert acls[0] is NOT_UNDERSTOOD


def test_an_acl_that_only_looks_like_the_one_not_understood_is_another() -> None:
    acls = read_acls(Reader(acl_wire(b"", b"", 0)))
    assert acls is not None
    assert acls[0] == NOT_UNDERSTOOD
    assert acls[0] is not NOT_UNDERSTOOD


def test_the_open_acl_is_read_as_one_list_wherever_it_stands() -> None:
    reader = Reader(b"123" + encode_acls([ACL(ALL, ANYONE)]) + b"rest", 3)
    assert read_acls(reader) is OPEN_LIST
    assert reader.rest() == b"rest"
    assert list(OPEN_LIST) == [ACL(ALL, ANYONE)]
    # Nearly the same is something else.
    assert read_acls(Reader(encode_acls([ACL(READ, ANYONE)]))) == [ACL(READ, ANYONE)]
    two = [ACL(ALL, ANYONE), ACL(ALL, ANYONE)]
    assert read_acls(Reader(encode_acls(two))) == two


def test_a_null_id_is_nothing_for_auth_and_nobody_elsewhere() -> None:
    assert read_acls(Reader(acl_wire(b"auth", None))) == [ACL(ALL, CREATOR)]
    assert read_acls(Reader(acl_wire(b"sasl", None))) == [None]
    assert read_acls(Reader(acl_wire(None, b"x"))) == [None]
    assert read_acls(Reader(acl_wire(None, None))) == [None]


def test_what_a_server_sends_is_whole() -> None:
    assert read_whole_acls(Reader(encode_acls([ACL(READ, ANYONE)]))) == [ACL(READ, ANYONE)]
    for wire in (b"\xff\xff\xff\xff", acl_wire(None, b"x"), acl_wire(b"world", None)):
        with pytest.raises(DecodeError):
            read_whole_acls(Reader(wire))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.builds(Identity, texts, texts), max_size=4).map(tuple))
def test_identities_come_back_as_written(identities: tuple[Identity, ...]) -> None:
    wire = encode_identities(identities)
    assert read_identities(Reader(wire)) == identities
    for cut in range(len(wire)):
        with pytest.raises(DecodeError):
            read_identities(Reader(wire[:cut]))


@given(st.binary(max_size=60) | st.binary(max_size=8).map(lambda x: b"\0\0\0\1\0\0\0\4" + x * 3))
def test_any_bytes_are_identities_or_a_decode_error(junk: bytes) -> None:
    try:
        read_identities(Reader(junk))
    except DecodeError:
        pass


def test_identities_that_are_not_utf8_are_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="UTF-8"):
        read_identities(Reader(b"\0\0\0\1\0\0\0\1\xff\0\0\0\1x"))


def test_hashes_are_masked_and_the_rest_is_shown() -> None:
    home = Identity("ip", "127.0.0.1")
    bob = ACL(READ, Identity("digest", digest_id("bob:secret")))
    shown = without_secrets((bob, ACL(ALL, ANYONE), ACL(ALL, home)))
    assert shown == [ACL(READ, Identity("digest", "bob:x")), ACL(ALL, ANYONE), ACL(ALL, home)]
    assert is_masked(shown)
    assert not is_masked([bob, ACL(ALL, ANYONE)])


@pytest.mark.parametrize(
    ("acl", "text"),
    [
        (ACL(ALL, ANYONE), "world:anyone:cdrwa"),
        (ACL(READ | ADMIN, CREATOR), "auth::ra"),
        (ACL(READ, Identity("digest", "alice:x=")), "digest:alice:x=:r"),
        (ACL(WRITE, Identity("ip", "::1/64")), "ip:::1/64:w"),
        (ACL(0, Identity("x509", "CN=a,O=b")), "x509:CN=a,O=b:"),
    ],
)
def test_an_entry_as_text_is_read_as_it_was_written(acl: ACL, text: str) -> None:
    assert format_acl(acl) == text
    assert parse_acl(text) == acl


def test_permissions_are_read_in_any_order_and_number() -> None:
    assert parse_acl("world:anyone:wrrw").permissions == READ | WRITE
    assert letters(READ | WRITE) == "rw"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not scheme:id:permissions"),
        ("world:anyone", "is not scheme:id:permissions"),
        ("::r", "is not scheme:id:permissions"),
        ("world:anyone:rz", "permissions are of c, d, r, w, a"),
        ("world:anyone: r", "permissions are of c, d, r, w, a"),
    ],
)
def test_text_that_is_no_entry_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_acl(text)
