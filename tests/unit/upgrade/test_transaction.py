"""Transactions of every type and age, as Apache logs them."""

import pytest

from paddock.protocol.acl import ACL, OPEN, Identity
from paddock.protocol.jute import DecodeError
from paddock.upgrade.transaction import (
    UNKNOWN_CVERSION,
    Change,
    CloseSession,
    Create,
    Delete,
    Nothing,
    OpenSession,
    SetACL,
    SetData,
    decode,
)
from tests.unit.upgrade import files

ALICE = (ACL(31, Identity("digest", "alice:hash")), ACL(1, Identity("sasl", "bob")))
TTL = -(1 << 56) + 5_000

CASES: list[tuple[files.Body, tuple[Change, ...]]] = [
    (files.create("/a", 3, b"x"), (Create(b"/a", b"x", OPEN, 0, 3, True),)),
    (files.create("/a", 3, None, files.ALICE), (Create(b"/a", None, ALICE, 0, 3, True),)),
    # Upstream takes no ACL at all for the open one.
    (files.create("/a", 3, b"", None), (Create(b"/a", b"", OPEN, 0, 3, True),)),
    (
        files.create("/a", 3, ephemeral=True),
        (Create(b"/a", b"", OPEN, files.SESSION, 3, True),),
    ),
    (files.create2("/ä", 1, b"x"), (Create("/ä".encode(), b"x", OPEN, 0, 1, False),)),
    (
        files.create_container("/a", 1, b"x"),
        (Create(b"/a", b"x", OPEN, files.CONTAINER, 1, False),),
    ),
    (files.create_ttl("/a", 1, 5_000), (Create(b"/a", b"", OPEN, TTL, 1, False),)),
    # Apache dies of these, at each start again.
    (files.create_ttl("/a", 1, -1), (Nothing(),)),
    (files.create_ttl("/a", 1, 0), (Nothing(),)),
    (files.create_ttl("/a", 1, 1 << 40), (Nothing(),)),
    (files.delete("/a/b"), (Delete(b"/a/b"),)),
    (files.delete_container("/a"), (Delete(b"/a"),)),
    (files.set_data("/a", b"x", 4), (SetData(b"/a", b"x", 4),)),
    (files.set_data("/", None, 4), (SetData(b"/", None, 4),)),
    (files.reconfig(b"server.1", 2), (SetData(b"/zookeeper/config", b"server.1", 2),)),
    (files.set_acl("/a", files.ALICE, 2), (SetACL(b"/a", ALICE, 2),)),
    (files.check("/a", 1), (Nothing(),)),
    (files.error(), (Nothing(),)),
    (files.create_session(4_000), (OpenSession(4_000),)),
    (files.close_session(["/a", "/b"]), (CloseSession((b"/a", b"/b")),)),
    (files.close_session([]), (CloseSession(()),)),
    (
        files.multi(files.create("/a", 1), files.create2("/b", 2), files.check("/a", 0)),
        (
            Create(b"/a", b"", OPEN, 0, 1, True),
            Create(b"/b", b"", OPEN, 0, 2, False),
            Nothing(),
        ),
    ),
    # One that failed is logged with all its parts, and none of them counts.
    (files.multi(files.create("/a", 1), files.error(), files.error(-2)), ()),
]


@pytest.mark.parametrize(("body", "changes"), CASES)
@pytest.mark.parametrize("digest", [None, -123_456])
def test_a_transaction_is_decoded(
    body: files.Body, changes: tuple[Change, ...], digest: int | None
) -> None:
    found = decode(files.transaction(9, body, time_ms=77, digest=digest))
    assert (found.session, found.zxid, found.time_ms) == (files.SESSION, 9, 77)
    assert found.changes == changes
    has_failed = body[0] == -1 or not changes
    assert found.digest == (None if has_failed else digest)


@pytest.mark.parametrize("digest", [None, 123_456])
def test_the_end_of_a_session_may_not_name_its_nodes(digest: int | None) -> None:
    found = decode(files.transaction(9, files.close_session(), digest=digest))
    assert found.changes == (CloseSession(None),)
    assert found.digest == digest


def test_a_create_of_3_3_does_not_count_the_children_above() -> None:
    found = decode(files.transaction(9, files.create("/a", None, ephemeral=True)))
    assert found.changes == (Create(b"/a", b"", OPEN, files.SESSION, UNKNOWN_CVERSION, True),)


def test_a_digest_that_is_computed_in_another_way_does_not_count() -> None:
    payload = files.transaction(9, files.delete("/a")) + files.integer(3) + files.long(5)
    assert decode(payload).digest is None


@pytest.mark.parametrize(
    "body",
    [
        (99, b""),
        (14, files.integer(1) + files.integer(99) + files.buffer(b"")),
        files.multi(files.create_session()),
        files.multi(files.close_session()),
        files.multi(files.multi()),
        # Nodes that cannot be.
        files.create("", 1),
        files.create("/", 1),
        files.create("a", 1),
        files.create("/a/", 1),
        files.create("/a//b", 1),
        files.delete("/"),
        files.delete("a"),
        files.delete(""),
        # Lengths that lie.
        (2, files.integer(0x7FFF_FFFF) + b"/a"),
        (2, files.integer(-2)),
        (2, files.integer(-1)),
        (14, files.integer(0x7FFF_FFFF)),
        (1, files.string("/a") + files.buffer(b"") + files.integer(0x7FFF_FFFF)),
    ],
)
def test_what_is_no_transaction_is_refused(body: files.Body) -> None:
    with pytest.raises(DecodeError):
        decode(files.transaction(9, body))


@pytest.mark.parametrize(("body", "changes"), CASES)
def test_a_transaction_that_is_cut_anywhere_is_refused_or_is_an_older_one(
    body: files.Body, changes: tuple[Change, ...]
) -> None:
    whole = files.transaction(9, body)
    for cut in range(len(whole)):
        try:
            found = decode(whole[:cut])
        except DecodeError:
            continue
        assert body[0] in (1, -11), f"cut at {cut}"
        assert isinstance(found.changes[0], Create | CloseSession)
