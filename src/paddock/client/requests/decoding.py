"""Decodes replies into results. Replies with paths are decoded where the chroot is known."""

from __future__ import annotations

from paddock.client.results import NO_DATA, Children, NodeData
from paddock.protocol.acl import ACL
from paddock.protocol.jute import Reader
from paddock.protocol.records import Stat
from paddock.protocol.replies import (
    GetACLResponse,
    GetChildren2Response,
    IntResponse,
    WhoAmIResponse,
)


def stat(reader: Reader) -> Stat | None:
    return Stat.read(reader)


def node_data(reader: Reader) -> NodeData:
    data = reader.buffer()
    return tuple.__new__(NodeData, (NO_DATA if data is None else data, Stat.read(reader)))


def names(reader: Reader) -> list[str]:
    return [name.decode() for name in reader.strings()]


def children(reader: Reader) -> Children:
    found = GetChildren2Response.read(reader)
    return Children([name.decode() for name in found.children], found.stat)


def acl_and_stat(reader: Reader) -> tuple[list[ACL], Stat]:
    found = GetACLResponse.read(reader)
    return found.acls, found.stat


def number(reader: Reader) -> int:
    return IntResponse.read(reader).value


def identities(reader: Reader) -> list[tuple[str, str]]:
    return [(one.scheme or "", one.user or "") for one in WhoAmIResponse.read(reader).clients]


def nothing(reader: Reader) -> None:
    return None
