"""Encodes requests from checked arguments, and frames them: a length, then the request.

Invalid arguments raise InvalidArgumentError (`arguments`), before anything is sent. Frequent
requests are joined from bytes right here: writing their records would take three times as long.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from librt.strings import BytesWriter

from paddock.client.requests.arguments import (
    check_node_kind,
    checked_acl,
    checked_data,
    checked_path,
    checked_version,
    milliseconds_of_ttl,
    servers,
)
from paddock.errors import InvalidArgumentError
from paddock.protocol import opcodes, paths
from paddock.protocol.acl import OPEN, OPEN_WIRE, encode_acls
from paddock.protocol.operations import Record
from paddock.protocol.requests import PathRequest, ReconfigRequest

# What a server accepts by default (jute.maxbuffer); it closes the connection otherwise.
REQUEST_BYTES_MAX: Final = 0xFFFFF
# The length of what follows it, the xid, and the operation.
REQUEST_HEADER: Final = Struct(">iii")
# What the length counts of it.
COUNTED_HEADER_BYTES: Final = 8
# Any version of a node.
ANY_VERSION: Final = -1

_CONFIG_VERSION_MAX: Final = 2**63 - 1

# The flags of create, by what the node is.
_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2
_CONTAINER: Final = 4
_TTL: Final = 5
_TTL_SEQUENTIAL: Final = 6

_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_NULL: Final = _INT.pack(-1)
_TRUE: Final = b"\1"
_FALSE: Final = b"\0"

# How many paths are remembered, before we forget them all, and how long one may be.
_KNOWN_MAX: Final = 4096
_KNOWN_BYTES_MAX: Final = 256


class Encoder:
    """Encodes requests of a client whose paths are below a chroot, "" for none.

    What callers give is any object here: compiled code refuses what is of another type than it is
    said to be, before our own checks could say what is wrong with it.
    """

    def __init__(self, chroot: str) -> None:
        self._chroot = chroot.encode()
        # Paths that were given before, and what the service calls them.
        self._known: dict[object, bytes] = {}

    def full(self, path: object) -> bytes:
        """Return a path as the service knows it."""
        try:
            known = self._known.get(path)
        except TypeError:
            # What cannot be looked up is no path.
            known = None
        if known is not None:
            return known
        full = self._checked(path)
        if len(full) <= _KNOWN_BYTES_MAX:
            if len(self._known) == _KNOWN_MAX:
                self._known.clear()
            self._known[path] = full
        return full

    def _checked(self, path: object) -> bytes:
        """Return it without a memory: paths are created and deleted once, as a rule."""
        full = checked_path(path)
        if self._chroot:
            full = self._chroot if full == paths.ROOT else self._chroot + full
        return full

    def own(self, full: bytes) -> str:
        """Return a path of the service as this client knows it."""
        chroot = self._chroot
        if chroot and full != chroot and not full.startswith(chroot + b"/"):
            # The configuration is everybody's, wherever their root is.
            chroot = b""
        return full[len(chroot) :].decode("utf-8", "replace") or "/"

    def path(self, path: object) -> bytes:
        return encoded(PathRequest(self.full(path)))

    def version(self, path: object, version: object) -> bytes:
        return _buffer(self._checked(path)) + _INT.pack(checked_version(version))

    def set(self, path: object, data: object, version: object) -> bytes:
        checked = checked_data(data)
        return _buffer(self.full(path)) + _buffer(checked) + _INT.pack(checked_version(version))

    def set_acl(self, path: object, acl: object, version: object) -> bytes:
        return _buffer(self.full(path)) + _acls(acl) + _INT.pack(checked_version(version))

    def reconfig(self, joining: object, leaving: object, members: object, version: object) -> bytes:
        changes = (
            servers("joining", joining),
            servers("leaving", leaving),
            servers("members", members),
        )
        if changes == (None, None, None):
            raise InvalidArgumentError("joining, leaving, members: nothing is to change")
        return encoded(ReconfigRequest(*changes, checked_version(version, _CONFIG_VERSION_MAX)))

    def create(
        self,
        operation: int,
        path: object,
        data: object,
        acl: object,
        ephemeral: object,
        sequential: object,
        container: object,
        ttl: object,
    ) -> tuple[int, bytes]:
        """Return the operation that creates such a node, and its body."""
        if not (ephemeral is sequential is container is False and ttl is None):
            check_node_kind(ephemeral, sequential, container, ttl)
        node = (
            _buffer(self.to_be_created(path, sequential)) + _buffer(checked_data(data)) + _acls(acl)
        )
        if ttl is not None:
            flags = _TTL_SEQUENTIAL if sequential else _TTL
            return opcodes.CREATE_TTL, node + _INT.pack(flags) + _LONG.pack(
                milliseconds_of_ttl(ttl)
            )
        if container:
            return opcodes.CREATE_CONTAINER, node + _INT.pack(_CONTAINER)
        flags = (_EPHEMERAL if ephemeral else 0) | (_SEQUENTIAL if sequential else 0)
        return operation, node + _INT.pack(flags)

    def to_be_created(self, path: object, sequential: object) -> bytes:
        if sequential and isinstance(path, str) and path.endswith("/"):
            # A sequential node may be named by its number alone.
            above = self.full(path[:-1] or "/")
            return above if above.endswith(b"/") else above + b"/"
        return self._checked(path)


def encoded(record: Record) -> bytes:
    writer = BytesWriter()
    record.write(writer)
    return writer.getvalue()


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def framed_request(xid: int, operation: int, body: bytes = b"") -> bytes:
    """Return a request as it is sent; frequent ones are joined by `in_flight`."""
    return REQUEST_HEADER.pack(COUNTED_HEADER_BYTES + len(body), xid, operation) + body


def watched(full: bytes, watch: bool) -> bytes:
    """Encode a read of a node, with or without a watch."""
    return _buffer(full) + (_TRUE if watch else _FALSE)


def _buffer(value: bytes | None) -> bytes:
    return _NULL if value is None else _INT.pack(len(value)) + value


def _acls(acl: object) -> bytes:
    # Nearly every node has this one.
    return OPEN_WIRE if acl is OPEN else encode_acls(checked_acl(acl))
