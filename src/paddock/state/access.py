"""Access control: the identities of a client, and what a node's ACL grants them.

The schemes are upstream's: `world:anyone` is every client; `digest` ids are equal or not; `ip` ids
are an address or a network with a prefix length; `x509` ids are the names of certificates, equal or
not; so are `sasl` ids, except that the user `super` has what any entry of `sasl` grants. An
identity of the scheme `super` may do everything.

A client chooses how many identities it has and how long an ACL is, so a check costs no more than
the shorter of the two, by tables that are made once. An ACL that is never checked is kept as bytes.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from paddock._checksums import crc32
from paddock.protocol.acl import (
    ACL,
    OPEN,
    OPEN_WIRE,
    Identity,
    encode_acls,
    encode_identities,
    is_anyone,
    read_whole_acls,
    without_secrets,
)
from paddock.protocol.jute import Reader
from paddock.protocol.replies import ClientInfo, WhoAmIResponse
from paddock.state.networks import parse_address, parse_network
from paddock.state.table import Table


class Identities:
    """The identities of one client, with their encoding in the log."""

    __slots__ = ("_addresses", "_keys", "_who_am_i", "entries", "is_super", "wire")

    def __init__(self, entries: tuple[Identity, ...]) -> None:
        self.entries = entries
        self.wire = encode_identities(entries)
        self.is_super = any(one.scheme == "super" for one in entries)
        # What checks need, made at the first one: the entries of a log are never checked again.
        self._keys: dict[str, None] | None = None
        self._addresses: list[tuple[int, int]] = []
        self._who_am_i: bytes | None = None

    def adding(self, *more: Identity) -> Identities:
        """Return these and more, each once, in the order in which they came."""
        return Identities(tuple(dict.fromkeys(self.entries + more)))

    def keys(self) -> dict[str, None]:
        """Return the keys of all that are equal to an ACL's id or not."""
        keys = self._keys
        if keys is None:
            keys = {}
            for one in self.entries:
                if one.scheme != "ip":
                    keys[_key(one.scheme, one.id)] = None
                    continue
                address = parse_address(one.id)
                if address is not None:
                    self._addresses.append(address)
            self._keys = keys
        return keys

    def addresses(self) -> list[tuple[int, int]]:
        """Return the addresses among them, each as a number and its width in bits."""
        self.keys()
        return self._addresses

    def who_am_i(self) -> bytes:
        """Return the body of the reply to whoAmI."""
        wire = self._who_am_i
        if wire is None:
            writer = BytesWriter()
            clients = [ClientInfo(one.scheme, user_name(one)) for one in self.entries]
            WhoAmIResponse(clients).write(writer)
            wire = writer.getvalue()
            self._who_am_i = wire
        return wire


NOBODY: Final = Identities(())


class NodeACL:
    """One access control list, shared by all nodes that have the same.

    `former_crc` is that of an ACL which an entry of former rules made too large to be kept as it
    was, and which grants the same: the digests of that time go by it.
    """

    __slots__ = ("_view", "anyone", "crc", "epoch", "is_former", "key", "number", "users", "wire")

    def __init__(self, entries: tuple[ACL, ...], wire: bytes, former_crc: i64 = -1) -> None:
        self.wire = wire
        # Every change of a node counts it in twice, by the digest.
        self.crc: i64 = crc32(wire) if former_crc < 0 else former_crc
        self.is_former = former_crc >= 0
        # What it is known by among all ACLs: two that are equal may have different digests.
        self.key = wire if former_crc < 0 else wire + b"former %d" % former_crc
        # The permissions of world:anyone; nearly every check ends here.
        anyone = 0
        for entry in entries:
            if is_anyone(entry.identity):
                anyone |= entry.permissions
        self.anyone = anyone
        # How many nodes have it. Invariant: it is in its table if and only if users > 0.
        self.users = 0
        # Its number in the snapshot being written, and which snapshot that is.
        self.number = 0
        self.epoch = 0
        # Made at the first check that needs more than `anyone`.
        self._view: ACLView | None = None

    @property
    def entries(self) -> tuple[ACL, ...]:
        """The ACL, decoded."""
        return tuple(read_whole_acls(Reader(self.wire))) if self.wire else ()

    def is_indexed(self) -> bool:
        """Return whether `permits` need not read the whole list first."""
        return self._view is not None

    def permits(self, permission: int, identities: Identities) -> bool:
        """Return whether any of the identities has any of the permissions."""
        if self.anyone & permission or identities.is_super:
            return True
        return self.granted(identities) & permission != 0

    def granted(self, identities: Identities) -> int:
        """Return the permissions of these identities, without those of world:anyone."""
        return self._seen().granted(identities)

    def masked(self) -> bytes:
        """Return its wire form as seen without ADMIN on the node: without the digests."""
        view = self._seen()
        wire = view.masked
        if wire is None:
            wire = encode_acls(without_secrets(self.entries))
            view.masked = wire
        return wire

    def _seen(self) -> ACLView:
        view = self._view
        if view is None:
            view = ACLView(self.wire)
            self._view = view
        return view


class ACLView:
    """The permissions of an ACL, indexed by identity and network.

    A network is found by the bits that its prefix has, so an address costs one look for each
    different length of a prefix, and not one for each network.
    """

    __slots__ = ("_by_key", "_by_network", "_of_sasl", "_prefixes", "masked")

    def __init__(self, wire: bytes) -> None:
        self._by_key: dict[str, int] = {}
        # By the bits of the prefix, its length and the width of the address, in one number.
        self._by_network: dict[int, int] = {}
        self._prefixes: dict[tuple[int, int], None] = {}
        # What all entries of SASL grant together.
        self._of_sasl = 0
        # The ACL without secrets, for those who may not administer the node.
        self.masked: bytes | None = None
        reader = Reader(wire)
        for _ in range(reader.int32() if wire else 0):
            permissions = reader.int32()
            scheme, identifier = reader.string().decode(), reader.string().decode()
            if scheme != "ip":
                key = _key(scheme, identifier)
                self._by_key[key] = self._by_key.get(key, 0) | permissions
                if scheme == "sasl":
                    self._of_sasl |= permissions
                continue
            network = parse_network(identifier)
            if network is not None:
                value, width, prefix = network
                self._prefixes[width, prefix] = None
                number = _network_number(value, width, prefix)
                self._by_network[number] = self._by_network.get(number, 0) | permissions

    def granted(self, identities: Identities) -> int:
        """Return the permissions that the identities have together."""
        granted = 0
        mine, theirs = self._by_key, identities.keys()
        if len(mine) < len(theirs):
            for key, permissions in mine.items():
                if key in theirs:
                    granted |= permissions
        else:
            for key in theirs:
                granted |= mine.get(key, 0)
        if self._of_sasl and _SASL_SUPER in theirs:
            granted |= self._of_sasl
        if self._by_network:
            for value, width in identities.addresses():
                for of_width, prefix in self._prefixes:
                    if of_width == width:
                        number = _network_number(value, width, prefix)
                        granted |= self._by_network.get(number, 0)
        return granted


class ACLTable:
    """Keeps each different ACL once."""

    def __init__(self) -> None:
        self._by_key = Table[NodeACL]()
        # The one that nearly every node has.
        self.open = NodeACL(OPEN, OPEN_WIRE)

    def __len__(self) -> int:
        return len(self._by_key)

    def acquire(self, entries: tuple[ACL, ...]) -> NodeACL:
        """Return the shared list for one more node."""
        return self.share(NodeACL(entries, encode_acls(entries)))

    def share(self, acl: NodeACL) -> NodeACL:
        """Return the list that is known, if one like this is, for one more node."""
        known = self._by_key.get(acl.key)
        return self.retain(acl if known is None else known)

    def retain(self, acl: NodeACL) -> NodeACL:
        """Count one more node that has it."""
        if acl.users == 0:
            self._by_key[acl.key] = acl
        acl.users += 1
        return acl

    def release(self, acl: NodeACL) -> None:
        """Count one node less that has it."""
        acl.users -= 1
        assert acl.users >= 0
        if acl.users == 0:
            del self._by_key[acl.key]


def _key(scheme: str, identifier: str) -> str:
    return scheme + "\0" + identifier


_SASL_SUPER: Final = _key("sasl", "super")


def _network_number(value: int, width: int, prefix: int) -> int:
    return ((value >> (width - prefix)) << 8 | prefix) << 1 | (width > 32)


def user_name(identity: Identity) -> str:
    """Return the part of an identity that is no secret."""
    return identity.id.split(":", 1)[0] if identity.scheme == "digest" else identity.id
