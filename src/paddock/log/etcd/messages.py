"""The few messages of etcd's API v3 that the log needs, encoded and decoded by hand.

Generated code would tie us to one release of `protobuf`; these are some twenty fields that etcd
never changes. The rules:

* A message that cannot be decoded raises MessageError: no other exception, and no endless loop.
* Unknown fields are skipped. A field that is absent has its default.
* A watch response is decoded in place: of a nested message nothing is copied but keys and values.
  It is the hot path, with one response for many events, so its loops spell out what short varints
  are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from paddock.log.etcd.store import Guard, Page, Range, Read, Status, Stored, StoreError

RANGE: Final = "/etcdserverpb.KV/Range"
TXN: Final = "/etcdserverpb.KV/Txn"
COMPACT: Final = "/etcdserverpb.KV/Compact"
WATCH: Final = "/etcdserverpb.Watch/Watch"
STATUS: Final = "/etcdserverpb.Maintenance/Status"
AUTHENTICATE: Final = "/etcdserverpb.Auth/Authenticate"

# What fields hold, as their tags say.
_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5

# Tags with their kind: number << 3 | kind.
_FIELD_1: Final = 1 << 3 | _BYTES
_FIELD_2: Final = 2 << 3 | _BYTES
_FIELD_3: Final = 3 << 3 | _BYTES
_COMPARED_BY_MOD_REVISION: Final = b"\x10\x02"
_COMPARED_TO_BE_LESS: Final = b"\x08\x02"
_COMPARED_END: Final = 64 << 3 | _BYTES
_VARINT_BYTES_MAX: Final = 10

# An event: its type, if it is not PUT, and the key with its value.
_EVENT_TYPE: Final = 1 << 3 | _VARINT
_EVENT_ITEM: Final = 2 << 3 | _BYTES
_ITEM_KEY: Final = 1 << 3 | _BYTES
_ITEM_MOD_REVISION: Final = 3 << 3 | _VARINT
_ITEM_VERSION: Final = 4 << 3 | _VARINT
_ITEM_VALUE: Final = 5 << 3 | _BYTES
_WATCH_EVENT: Final = 11 << 3 | _BYTES

# How an alarm is named among the errors of a status.
_FULL: Final = "NOSPACE"


class MessageError(StoreError):
    """What was received is not a message of etcd's."""


@dataclass(slots=True)
class WatchResponse:
    """What a watch tells: that it was created or canceled, or events."""

    is_created: bool = False
    is_canceled: bool = False
    # Not 0 if it was canceled because the history is compacted up to there.
    compact_revision: int = 0
    cancel_reason: str = ""
    # Key, revision, version and value of each key that was put.
    puts: list[tuple[bytes, int, int, bytes]] = field(default_factory=list)


# --- Encoding


def varint(value: int) -> bytes:
    if value < 0x80:
        return b"%c" % value
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes_field(tag: int, content: bytes) -> bytes:
    return b"%c%b%b" % (tag, varint(len(content)), content)


def _int_field(number: int, value: int) -> bytes:
    return b"%c%b" % (number << 3, varint(value))


def _bounds(wanted: Range) -> bytes:
    start = _bytes_field(_FIELD_1, wanted.start)
    return start + _bytes_field(_FIELD_2, wanted.end) if wanted.end else start


def _put(key: bytes, value: bytes) -> bytes:
    """Return the operation of a transaction that puts a key, with its tag."""
    # The value may be large: it is copied once, into the whole operation.
    before = _bytes_field(_FIELD_1, key) + b"\x12" + varint(len(value))
    put_size = varint(len(before) + len(value))
    operation_size = varint(1 + len(put_size) + len(before) + len(value))
    return b"".join((b"\x12", operation_size, b"\x12", put_size, before, value))


def _unchanged(guard: Guard) -> bytes:
    """Return the comparison that a key has a revision still; one that is absent has 0."""
    key = _bytes_field(_FIELD_3, guard.key)
    content = _COMPARED_BY_MOD_REVISION + key + _int_field(6, guard.mod_revision)
    return _bytes_field(_FIELD_1, content)


def _written_through(wanted: Range, revision: int) -> bytes:
    """Return the comparison that no key of a range has a later revision; an empty one passes."""
    key = _bytes_field(_FIELD_3, wanted.start)
    content = _COMPARED_TO_BE_LESS + _COMPARED_BY_MOD_REVISION + key + _int_field(6, revision + 1)
    if wanted.end:
        content += varint(_COMPARED_END) + varint(len(wanted.end)) + wanted.end
    return _bytes_field(_FIELD_1, content)


def append_request(head: bytes, head_value: bytes, key: bytes, payload: bytes) -> bytes:
    """Put head and batch, in this order, if the batch has no version, so is not there."""
    compared = _bytes_field(_FIELD_3, key) + b"\x20\x00"
    return _bytes_field(_FIELD_1, compared) + _put(head, head_value) + _put(key, payload)


def swap_request(key: bytes, value: bytes, guards: Sequence[Guard]) -> bytes:
    return b"".join(map(_unchanged, guards)) + _put(key, value)


def delete_request(ranges: Sequence[Range], guards: Sequence[Guard], through: int = 0) -> bytes:
    """Delete ranges, if nothing in them was written after a revision (0: whatever is there)."""
    compared = [_written_through(wanted, through) for wanted in ranges] if through else []
    deletes = [_bytes_field(_FIELD_2, _bytes_field(_FIELD_3, _bounds(wanted))) for wanted in ranges]
    return b"".join((*map(_unchanged, guards), *compared, *deletes))


def read_request(keys: Sequence[bytes]) -> bytes:
    """Read some keys in one transaction, which is linearizable and has one revision."""
    return b"".join(
        _bytes_field(_FIELD_2, _bytes_field(_FIELD_1, _bytes_field(_FIELD_1, key))) for key in keys
    )


def range_request(wanted: Range, revision: int, limit: int, keys_only: bool = False) -> bytes:
    request = _bounds(wanted)
    if limit:
        request += _int_field(3, limit)
    if revision:
        request += _int_field(4, revision)
    if keys_only:
        request += _int_field(8, 1)
    return request


def watch_request(wanted: Range, start_revision: int) -> bytes:
    """Watch puts, not deletes, in fragments if they are large."""
    created = _bounds(wanted) + _int_field(3, start_revision)
    return _bytes_field(_FIELD_1, created + b"\x2a\x01\x01" + _int_field(8, 1))


def compact_request(revision: int) -> bytes:
    return _int_field(1, revision)


def authenticate_request(user: str, password: str) -> bytes:
    return _bytes_field(_FIELD_1, user.encode()) + _bytes_field(_FIELD_2, password.encode())


# --- Decoding


def succeeded(data: bytes) -> bool:
    """Return whether the comparisons of a transaction held."""
    return any(tag == 2 << 3 and value for tag, value, _, _ in _fields(data, 0, len(data)))


def revision_if_succeeded(data: bytes) -> int:
    """Return the revision of a transaction; 0 if its comparisons did not hold."""
    revision = 0
    holds = False
    for tag, value, start, end in _fields(data, 0, len(data)):
        if tag == _FIELD_1:
            revision = _revision(data, start, end)
        elif tag == 2 << 3:
            holds = value != 0
    return revision if holds else 0


def parse_read(data: bytes) -> Read:
    """Decode what `read_request` is answered with."""
    revision = 0
    found: list[Stored | None] = []
    for tag, _, start, end in _fields(data, 0, len(data)):
        if tag == _FIELD_1:
            revision = _revision(data, start, end)
        elif tag == _FIELD_3:
            items = [
                item
                for kind, _, first, last in _fields(data, start, end)
                if kind == _FIELD_1
                for item in _page(data, first, last).items
            ]
            found.append(items[0] if items else None)
    return Read(revision, tuple(found))


def parse_page(data: bytes) -> Page:
    """Decode what `range_request` is answered with."""
    return _page(data, 0, len(data))


def parse_status(data: bytes, endpoint: str) -> Status:
    version = ""
    revision = size = used = quota = 0
    is_full = False
    for tag, value, start, end in _fields(data, 0, len(data)):
        if tag == _FIELD_1:
            revision = _revision(data, start, end)
        elif tag == _FIELD_2:
            version = _text(data[start:end])
        elif tag == 3 << 3:
            size = value
        elif tag == 8 << 3 | _BYTES:
            is_full = is_full or _FULL in _text(data[start:end])
        elif tag == 9 << 3:
            used = value
        elif tag == 12 << 3:
            quota = value
    return Status(version, revision, size, used, quota, is_full, endpoint)


def parse_token(data: bytes) -> str:
    """Decode what `authenticate_request` is answered with."""
    for tag, _, start, end in _fields(data, 0, len(data)):
        if tag == _FIELD_2:
            return _text(data[start:end])
    raise MessageError("etcd has answered an authentication without a token")


def parse_watch(data: bytes) -> WatchResponse:
    """Decode a response of a watch: the hot path."""
    found = WatchResponse()
    puts = found.puts
    at = 0
    size = len(data)
    try:
        while at < size:
            # One byte each for the tag and, unless the event is long, for its size.
            if data[at] == _WATCH_EVENT:
                length = data[at + 1]
                at += 2
                if length > 0x7F:
                    length, at = _varint(data, at - 1)
                end = at + length
                if end > size:
                    raise MessageError("a message of etcd's is cut short")
                if (item := _event(data, at, end)) is not None:
                    puts.append(item)
                at = end
            else:
                tag, value, start, at = _field(data, at, size)
                if tag == 3 << 3:
                    found.is_created = value != 0
                elif tag == 4 << 3:
                    found.is_canceled = value != 0
                elif tag == 5 << 3:
                    found.compact_revision = _signed(value)
                elif tag == 6 << 3 | _BYTES:
                    found.cancel_reason = _text(data[start:at])
    except IndexError:
        raise MessageError("a message of etcd's is cut short") from None
    return found


def _event(data: bytes, at: int, end: int) -> tuple[bytes, int, int, bytes] | None:
    """Decode an event: what was put, or None if it is no put."""
    item: tuple[bytes, int, int, bytes] | None = None
    while at < end:
        if data[at] == _EVENT_ITEM:
            length, at = _varint(data, at + 1)
            if at + length > end:
                raise MessageError("a message of etcd's is cut short")
            item = _item(data, at, at + length)
            at += length
        else:
            tag, value, _, at = _field(data, at, end)
            if tag == _EVENT_TYPE and value:
                return None
    return item


def _item(data: bytes, at: int, end: int) -> tuple[bytes, int, int, bytes]:
    """Decode a key: its name, revision, version and value."""
    key = payload = b""
    revision = version = 0
    while at < end:
        tag = data[at]
        if tag in (_ITEM_KEY, _ITEM_VALUE):
            length = data[at + 1]
            at += 2
            if length > 0x7F:
                length, at = _varint(data, at - 1)
            if at + length > end:
                raise MessageError("a message of etcd's is cut short")
            if tag == _ITEM_KEY:
                key = data[at : at + length]
            else:
                payload = data[at : at + length]
            at += length
        elif tag == _ITEM_MOD_REVISION:
            revision, at = _varint(data, at + 1)
        elif tag == _ITEM_VERSION:
            version, at = _varint(data, at + 1)
        else:
            _, _, _, at = _field(data, at, end)
    if at > end:
        raise MessageError("a message of etcd's is cut short")
    return key, revision, version, payload


def _page(data: bytes, at: int, end: int) -> Page:
    revision = 0
    items: list[Stored] = []
    has_more = False
    for tag, value, start, stop in _fields(data, at, end):
        if tag == _FIELD_2:
            try:
                key, mod_revision, version, payload = _item(data, start, stop)
            except IndexError:
                raise MessageError("a message of etcd's is cut short") from None
            items.append(Stored(key, payload, mod_revision, version))
        elif tag == _FIELD_1:
            revision = _revision(data, start, stop)
        elif tag == 3 << 3:
            has_more = value != 0
    return Page(revision, tuple(items), has_more)


def _revision(data: bytes, at: int, end: int) -> int:
    """Return the revision in the header of a response."""
    revision = 0
    for tag, value, _, _ in _fields(data, at, end):
        if tag == 3 << 3:
            revision = value
    return revision


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the tag, the number or 0, the start and the end of each field's content."""
    while at < end:
        try:
            tag, value, start, at = _field(data, at, end)
        except IndexError:
            raise MessageError("a message of etcd's is cut short") from None
        yield tag, value, start, at


def _field(data: bytes, at: int, end: int) -> tuple[int, int, int, int]:
    """Decode a field: its tag, its number or 0, where its content starts, and where it ends."""
    tag, at = _varint(data, at)
    kind = tag & 7
    value = 0
    start = at
    if tag < 1 << 3:
        raise MessageError("a message of etcd's has a field without a number")
    if kind == _VARINT:
        value, at = _varint(data, at)
    elif kind == _BYTES:
        length, start = _varint(data, at)
        at = start + length
    elif kind == _FIXED64:
        at += 8
    elif kind == _FIXED32:
        at += 4
    else:
        raise MessageError(f"a message of etcd's has a field of kind {kind}")
    if at > end:
        raise MessageError("a message of etcd's is cut short")
    return tag, value, start, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a number; return it and where it ends. Raises IndexError where the data ends."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for shift in range(7, 7 * _VARINT_BYTES_MAX, 7):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
    raise MessageError("a message of etcd's has a number without an end")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
