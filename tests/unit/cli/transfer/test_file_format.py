"""The lines of an export: their spelling, and what is refused."""

from __future__ import annotations

import json

import pytest

from paddock.cli.transfer.file_format import (
    BadLineError,
    fields_of,
    has_acls,
    header_line,
    line_of,
    node_line,
    node_of,
)
from paddock.cli.transfer.node import Node
from paddock.protocol.acl import ACL, OPEN, READ, READ_ONLY, Identity
from tests.unit.cli.transfer.helpers import NODES


def shown(node: Node) -> dict[str, object]:
    """Return the JSON fields of a node's line, without the checksum."""
    fields: dict[str, object] = json.loads(node_line(node))
    del fields["crc"]
    return fields


def test_a_line_is_one_json_object_with_its_checksum_last() -> None:
    line = line_of({"path": "/a"})
    assert line == b'{"path":"/a","crc":"b685f16c"}\n'
    assert fields_of(line[:-1]) == {"path": "/a"}


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (b"", {}),
        (b"blue", {"data": "blue"}),
        ("Grün".encode(), {"data": "Grün"}),
        (b"two\r\nlines\t", {"data": "two\r\nlines\t"}),
        (b"\xff", {"base64": "/w=="}),
        (b"\x00", {"base64": "AA=="}),
        (b"\x1b[31m", {"base64": "G1szMW0="}),
        ("\x85".encode(), {"base64": "woU="}),
    ],
)
def test_data_are_text_where_somebody_could_read_them(data: bytes, fields: dict[str, str]) -> None:
    assert shown(Node("/a", data, OPEN)) == {"path": "/a", **fields}


def test_text_is_not_escaped_more_than_json_needs() -> None:
    assert "Grün" in node_line(Node("/ä", "Grün".encode(), OPEN)).decode()


def test_an_acl_is_sorted_and_the_usual_one_is_not_named() -> None:
    reader, alice = ACL(READ, Identity("world", "anyone")), ACL(31, Identity("digest", "alice:=="))
    assert shown(Node("/a", b"", (reader, alice))) == shown(Node("/a", b"", (alice, reader)))
    assert shown(Node("/a", b"", (reader, alice)))["acl"] == [
        "digest:alice:==:cdrwa",
        "world:anyone:r",
    ]
    assert "acl" not in shown(Node("/a", b"", OPEN))
    assert "acl" not in shown(Node("/a", b"", None))


@pytest.mark.parametrize("node", NODES)
def test_a_node_comes_back_from_its_line(node: Node) -> None:
    assert node_of(fields_of(node_line(node)[:-1]), acls=True) == node


def test_without_acls_nobody_knows_them() -> None:
    node = Node("/a", b"", None)
    assert node_of(fields_of(node_line(node)[:-1]), acls=False) == node


def test_every_byte_of_a_line_is_watched_over() -> None:
    line = node_line(Node("/a", b"blue", READ_ONLY))[:-1]
    for place in range(len(line)):
        for bit in (1, 32):
            spoiled = line[:place] + bytes([line[place] ^ bit]) + line[place + 1 :]
            with pytest.raises(BadLineError, match="damaged"):
                fields_of(spoiled)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "None is no path"),
        ({"path": "a"}, "'a' is no path"),
        ({"path": "/a/"}, "'/a/' is no path"),
        ({"path": "/\ud800"}, "is no path"),
        ({"path": 1}, "1 is no path"),
        ({"path": "/a", "data": 1}, "not text"),
        ({"path": "/a", "base64": "!"}, "not base64"),
        ({"path": "/a", "base64": 1}, "not base64"),
        ({"path": "/a", "data": "", "base64": ""}, "data twice"),
        ({"path": "/a", "acl": []}, "ACL"),
        ({"path": "/a", "acl": {}}, "ACL"),
        ({"path": "/a", "acl": [1]}, "."),
        ({"path": "/a", "acl": ["world:anyone"]}, "is not scheme:id:permissions"),
        ({"path": "/a", "acl": ["world:anyone:z"]}, "permissions are of c, d, r, w, a"),
        ({"path": "/a", "data": "\ud800"}, "surrogates"),
        ({"path": "/a", "ttl": 1}, "unknown field, 'ttl'"),
    ],
)
def test_a_line_that_is_whole_and_no_node_is_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises(BadLineError, match=why):
        node_of(fields, acls=True)


def test_an_acl_where_there_should_be_none_is_refused() -> None:
    with pytest.raises(BadLineError, match="there are none"):
        node_of({"path": "/a", "acl": ["world:anyone:r"]}, acls=False)


@pytest.mark.parametrize("line", [b"", b"{}", b'{"path":"/a"}', b'[1,"crc":"00000000"}'])
def test_a_line_without_a_checksum_is_refused(line: bytes) -> None:
    with pytest.raises(BadLineError, match="damaged"):
        fields_of(line)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"path": "/"}, "no export of Paddock"),
        ({"paddock-export": 2, "acls": True}, "version 2, and only 1 is known"),
        ({"paddock-export": 1}, "whether there are ACLs"),
    ],
)
def test_a_header_that_is_not_ours_or_too_new_is_refused(
    fields: dict[str, object], why: str
) -> None:
    with pytest.raises(BadLineError, match=why):
        has_acls(fields)


@pytest.mark.parametrize("acls", [True, False])
def test_the_header_says_whether_there_are_acls(acls: bool) -> None:
    assert has_acls(fields_of(header_line(acls=acls)[:-1])) is acls
