"""What callers give, checked and encoded: paths with the chroot, data, versions, kinds of nodes.

Whatever cannot be used raises InvalidArgumentError, which names the argument, before anything is
sent. The requests that are made by the thousand are put together from bytes right here: their
records would take three times as long to write the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import iscoroutinefunction
from struct import Struct
from typing import Any, Final, TypeGuard

from librt.strings import BytesWriter

from paddock.client.watches import WatchKind
from paddock.errors import InvalidArgumentError
from paddock.protocol import opcodes, paths
from paddock.protocol.acl import ACL, OPEN, OPEN_WIRE, encode_acls
from paddock.protocol.requests import (
    PathRequest,
    ReconfigRequest,
    VersionRequest,
)

# The flags of create, by what the node is.
_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2
_CONTAINER: Final = 4
_TTL: Final = 5
_TTL_SEQUENTIAL: Final = 6
# The service has five bytes for it.
_TTL_SECONDS_MAX: Final = (2**40 - 1) / 1000
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1

_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_NULL: Final = _INT.pack(-1)
_TRUE: Final = b"\1"
_FALSE: Final = b"\0"

# How many paths are remembered, before we forget them all.
_KNOWN_MAX: Final = 4096


class Encoder:
    """Encodes requests of a client whose paths are below a chroot, "" for none."""

    def __init__(self, chroot: str) -> None:
        self._chroot = chroot.encode()
        # Paths that were given before, and what the service calls them.
        self._known: dict[str, bytes] = {}

    def full(self, path: str) -> bytes:
        """Give a path as the service knows it."""
        if not isinstance(path, str):
            raise InvalidArgumentError(f"path: expected text, not {type(path).__name__}")
        known = self._known.get(path)
        if known is not None:
            return known
        full = path.encode("utf-8", "surrogatepass")
        if not paths.is_valid(full):
            raise InvalidArgumentError(f"path: {path!r} is no valid path")
        if self._chroot:
            full = self._chroot if full == paths.ROOT else self._chroot + full
        if len(self._known) == _KNOWN_MAX:
            self._known.clear()
        self._known[path] = full
        return full

    def own(self, full: bytes) -> str:
        """Give a path of the service as this client knows it."""
        if not full.startswith(self._chroot):
            # The configuration is everybody's, wherever their root is.
            return full.decode("utf-8", "replace")
        return full[len(self._chroot) :].decode("utf-8", "replace") or "/"

    def path(self, path: str) -> bytes:
        return encoded(PathRequest(self.full(path)))

    def watched(self, full: bytes, watch: bool) -> bytes:
        return _buffer(full) + (_TRUE if watch else _FALSE)

    def version(self, path: str, version: int) -> bytes:
        return encoded(VersionRequest(self.full(path), _checked_version(version)))

    def set(self, path: str, data: bytes | None, version: int) -> bytes:
        checked = _checked_data(data)
        return _buffer(self.full(path)) + _buffer(checked) + _INT.pack(_checked_version(version))

    def set_acl(self, path: str, acl: Sequence[ACL], version: int) -> bytes:
        return _buffer(self.full(path)) + _acls(acl) + _INT.pack(_checked_version(version))

    def reconfig(self, joining: object, leaving: object, members: object, version: object) -> bytes:
        parts = [
            _servers("joining", joining),
            _servers("leaving", leaving),
            _servers("members", members),
        ]
        if parts == [None, None, None]:
            raise InvalidArgumentError("joining, leaving, members: nothing is to change")
        if not _is_int(version) or not -1 <= version <= _INT64_MAX:
            raise InvalidArgumentError(f"version: {version!r} is no version; -1 stands for any")
        return encoded(ReconfigRequest(parts[0], parts[1], parts[2], version))

    def create(
        self,
        operation: int,
        path: str,
        data: bytes | None,
        acl: Sequence[ACL],
        ephemeral: bool,
        sequential: bool,
        container: bool,
        ttl: float | None,
    ) -> tuple[int, bytes]:
        """Give the operation that creates such a node, and its body."""
        full = self.to_be_created(path, sequential)
        if ephemeral + container + (ttl is not None) > 1 or (container and sequential):
            raise InvalidArgumentError(
                "ephemeral, container, ttl: a node is one of them at most, and a container is not"
                " sequential"
            )
        node = _buffer(full) + _buffer(_checked_data(data)) + _acls(acl)
        if ttl is not None:
            flags = _TTL_SEQUENTIAL if sequential else _TTL
            return opcodes.CREATE_TTL, node + _INT.pack(flags) + _LONG.pack(_milliseconds(ttl))
        if container:
            return opcodes.CREATE_CONTAINER, node + _INT.pack(_CONTAINER)
        flags = (_EPHEMERAL if ephemeral else 0) | (_SEQUENTIAL if sequential else 0)
        return operation, node + _INT.pack(flags)

    def to_be_created(self, path: str, sequential: bool) -> bytes:
        if sequential and str(path).endswith("/"):
            # A sequential node may be named by its number alone.
            above = self.full(path[:-1] or "/")
            return above if above.endswith(b"/") else above + b"/"
        return self.full(path)


def _buffer(value: bytes | None) -> bytes:
    return _NULL if value is None else _INT.pack(len(value)) + value


def _acls(acl: Sequence[ACL]) -> bytes:
    # Nearly every node has this one.
    return OPEN_WIRE if acl is OPEN else encode_acls(_checked_acl(acl))


def encoded(request: Any) -> bytes:
    writer = BytesWriter()
    request.write(writer)
    return writer.getvalue()


def _checked_data(data: bytes | None) -> bytes | None:
    if data is not None and not isinstance(data, bytes):
        raise InvalidArgumentError(f"data: expected bytes, not {type(data).__name__}")
    return data


def _servers(name: str, value: object) -> str | None:
    """Give servers as the request has them: text with commas."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ",".join(value)
    raise InvalidArgumentError(f"{name}: expected text or a list of text, not {value!r}")


def _is_int(value: object) -> TypeGuard[int]:
    """Tell whether it is a number; True and False are not meant when they are given for one."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_watch_kind(kind: object) -> None:
    if not isinstance(kind, WatchKind):
        raise InvalidArgumentError(f"kind: expected a WatchKind, not {kind!r}")


def check_watcher(name: str, watcher: object) -> None:
    """See that it can be called with an event, and does something when it is."""
    if not callable(watcher):
        raise InvalidArgumentError(f"{name}: {watcher!r} cannot be called")
    if iscoroutinefunction(watcher):
        raise InvalidArgumentError(
            f"{name}: {watcher!r} is a coroutine function, and nobody would await it; use"
            " client.watch, or put events on a queue"
        )


def check_count(name: str, count: object) -> None:
    if not _is_int(count) or count < 1:
        raise InvalidArgumentError(f"{name}: {count!r} is not 1 or more")


def check_mark(mark: object, data: bytes | None, version: int) -> None:
    """See that a mark can tell a write from all others."""
    if not isinstance(mark, bytes) or not mark:
        raise InvalidArgumentError(f"mark: expected some bytes, not {mark!r}")
    if data is None or mark not in data:
        raise InvalidArgumentError("mark: it is not in the data")
    if version < 0:
        raise InvalidArgumentError("mark: it needs a version, or a write could happen twice")


def _checked_version(version: object) -> int:
    if not isinstance(version, int) or not -1 <= version <= _INT32_MAX:
        raise InvalidArgumentError(f"version: {version!r} is no version; -1 stands for any")
    return version


def _checked_acl(acl: Sequence[object]) -> list[ACL]:
    entries = [one for one in acl if isinstance(one, ACL)] if isinstance(acl, list | tuple) else []
    if len(entries) != len(acl):
        raise InvalidArgumentError(f"acl: expected a list of ACL, not {acl!r}")
    if not entries:
        raise InvalidArgumentError("acl: an empty list lets nobody in, and no server takes it")
    return entries


def _milliseconds(ttl: float) -> int:
    if not 0.001 <= ttl <= _TTL_SECONDS_MAX:
        raise InvalidArgumentError(f"ttl: {ttl!r} is no number of seconds that a node may have")
    return round(ttl * 1000)
