"""What the client puts together from bytes is what the records of the protocol write."""

from __future__ import annotations

from typing import Any

import pytest

from paddock.client.requests.encoder import Encoder, encoded, watched
from paddock.errors import InvalidArgumentError
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, CREATOR_ALL, OPEN, READ, Identity
from paddock.protocol.requests import (
    CreateRequest,
    CreateTTLRequest,
    SetACLRequest,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
)

ALICE = ACL(READ, Identity("digest", "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E="))


@pytest.mark.parametrize("watch", [True, False])
@pytest.mark.parametrize("path", ["/", "/app/config", "/größe/名"])
def test_a_read_is_written_as_its_record(path: str, watch: bool) -> None:
    encode = Encoder("")
    assert watched(encode.full(path), watch) == encoded(WatchedRequest(path.encode(), watch))


@pytest.mark.parametrize("data", [None, b"", b"some data"])
@pytest.mark.parametrize("version", [-1, 0, 2**31 - 1])
def test_a_set_is_written_as_its_record(data: bytes | None, version: int) -> None:
    written = Encoder("").set("/n", data, version)
    assert written == encoded(SetDataRequest(b"/n", data, version))


@pytest.mark.parametrize("version", [-1, 0, 2**31 - 1])
def test_a_delete_is_written_as_its_record(version: int) -> None:
    assert Encoder("").version("/n", version) == encoded(VersionRequest(b"/n", version))
    assert Encoder("/app").version("/", version) == encoded(VersionRequest(b"/app", version))


@pytest.mark.parametrize("acl", [OPEN, [*OPEN], CREATOR_ALL, [ALICE, *CREATOR_ALL]])
def test_an_acl_is_written_as_its_record(acl: list[ACL]) -> None:
    encode = Encoder("")
    assert encode.set_acl("/n", acl, 3) == encoded(SetACLRequest(b"/n", [*acl], 3))
    create = encode.create(opcodes.CREATE, "/n", b"", acl, False, False, False, None)
    assert create == (opcodes.CREATE, encoded(CreateRequest(b"/n", b"", [*acl], 0)))


@pytest.mark.parametrize(
    ("kind", "operation", "record"),
    [
        ((False, False, False, None), opcodes.CREATE2, CreateRequest(b"/n", None, [*OPEN], 0)),
        ((True, False, False, None), opcodes.CREATE2, CreateRequest(b"/n", None, [*OPEN], 1)),
        ((False, True, False, None), opcodes.CREATE2, CreateRequest(b"/n", None, [*OPEN], 2)),
        ((True, True, False, None), opcodes.CREATE2, CreateRequest(b"/n", None, [*OPEN], 3)),
        (
            (False, False, True, None),
            opcodes.CREATE_CONTAINER,
            CreateRequest(b"/n", None, [*OPEN], 4),
        ),
        (
            (False, False, False, 1.5),
            opcodes.CREATE_TTL,
            CreateTTLRequest(b"/n", None, [*OPEN], 5, 1500),
        ),
        (
            (False, True, False, 2.0**30),
            opcodes.CREATE_TTL,
            CreateTTLRequest(b"/n", None, [*OPEN], 6, 2**30 * 1000),
        ),
    ],
)
def test_each_kind_of_node_is_written_as_its_record(
    kind: tuple[bool, bool, bool, float | None], operation: int, record: Any
) -> None:
    written = Encoder("").create(opcodes.CREATE2, "/n", None, OPEN, *kind)
    assert written == (operation, encoded(record))


def test_a_path_means_the_same_each_time() -> None:
    for chroot, full in (("", b"/n"), ("/app", b"/app/n")):
        encode = Encoder(chroot)
        assert [encode.full("/n") for _ in range(2)] == [full, full]


def test_a_bad_path_is_refused_each_time() -> None:
    encode = Encoder("")
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="'n' does not begin with a slash"):
            encode.full("n")


def test_what_is_no_text_is_no_path_even_if_it_cannot_be_looked_up() -> None:
    unhashable: Any = ["/n"]
    with pytest.raises(InvalidArgumentError, match="path: expected text, not list"):
        Encoder("").full(unhashable)


def test_remembered_paths_are_limited_and_stay_right() -> None:
    encode = Encoder("/app")
    for number in range(10_000):
        assert encode.full(f"/{number}") == b"/app/%d" % number
    assert len(encode._known) < 5_000


@pytest.mark.parametrize(
    ("full", "own"),
    [
        (b"/zoo", "/"),
        (b"/zoo/a", "/a"),
        (b"/zookeeper/config", "/zookeeper/config"),
    ],
)
def test_a_path_that_only_looks_like_one_below_the_chroot_is_left_as_it_is(
    full: bytes, own: str
) -> None:
    assert Encoder("/zoo").own(full) == own


def test_long_paths_are_not_remembered_nor_more_than_some() -> None:
    encode = Encoder("")
    for number in range(5000):
        encode.full(f"/{number}")
        encode.full(f"/{'long' * 100}{number}")
    assert len(encode._known) <= 4096
    assert max(len(full) for full in encode._known.values()) <= 256
