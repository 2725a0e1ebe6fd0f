"""Messages as etcd sends them, written field by field: what our decoding is tested with."""

from __future__ import annotations

from collections.abc import Sequence


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def content(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def header(revision: int) -> bytes:
    return content(1, number(1, 1 << 63) + number(2, 77) + number(3, revision) + number(4, 2))


def item(key: bytes, value: bytes, mod_revision: int, version: int) -> bytes:
    fields = [content(1, key), number(2, 2), number(3, mod_revision), number(4, version)]
    return b"".join((*fields, content(5, value), number(6, 7)))


def put_event(key: bytes, value: bytes, mod_revision: int, version: int) -> bytes:
    return content(11, content(2, item(key, value, mod_revision, version)))


def delete_event(key: bytes, mod_revision: int) -> bytes:
    return content(11, number(1, 1) + content(2, item(key, b"", mod_revision, 0)))


def watch(*events: bytes, is_fragment: bool = False) -> bytes:
    return header(9) + number(2, 0) + number(7, int(is_fragment)) + b"".join(events)


def created() -> bytes:
    return header(9) + number(3, 1)


def canceled(reason: str, compact_revision: int = 0) -> bytes:
    return header(9) + number(4, 1) + number(5, compact_revision) + content(6, reason.encode())


def page(items: Sequence[bytes], revision: int, *, has_more: bool = False) -> bytes:
    found = b"".join(content(2, one) for one in items)
    return header(revision) + found + number(3, int(has_more)) + number(4, 1000)


def transaction(revision: int, *, succeeded: bool, responses: Sequence[bytes] = ()) -> bytes:
    # etcd leaves out what is false.
    holds = number(2, 1) if succeeded else b""
    return header(revision) + holds + b"".join(content(3, one) for one in responses)
