"""The manifest of a snapshot: its format, and damage to it."""

import asyncio
import hashlib
import json
from dataclasses import replace

import pytest

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import EMPTY, Cut, Manifest, decode_manifest, read_manifest
from paddock.log.etcd.store import Stored
from paddock.log.interface import LogCorruptError, LogError, Position
from tests.support.memory_store import MemoryEtcd, MemoryStore

KEYS = Keys("shop")
BOOT = bytes(range(8))
CUT = Cut(70, 900, BOOT, 12, {BOOT: 13, b"\xff" * 8: 4})
MANIFEST = Manifest(CUT, 2, "name", 3, 150_000, bytes(range(32)), Cut(40, 500), 0)


def stored(value: bytes, mod_revision: int = 5) -> Stored:
    return Stored(KEYS.manifest, value, mod_revision, 1)


def signed(body: bytes) -> bytes:
    return f"paddock-manifest 1 {hashlib.sha256(body).hexdigest()}\n".encode() + body


@pytest.mark.parametrize("trimmed", [None, Cut(), Cut(40, 500, BOOT, 3, {BOOT: 4})])
def test_a_manifest_is_decoded_as_it_was(trimmed: Cut | None) -> None:
    manifest = Manifest(CUT, 2, "name", 3, 150_000, bytes(range(32)), trimmed, 5)
    assert decode_manifest(stored(manifest.encode())) == manifest


def test_a_manifest_says_where_to_follow_from() -> None:
    assert MANIFEST.position == Position(70, 900, BOOT, 12)
    assert (MANIFEST.index, MANIFEST.revision) == (70, 900)


def test_the_format_in_etcd_is_stable() -> None:
    body = (
        '{\n "boot": "",\n "chunks": 1,\n "cuts": {\n  "0001020304050607": 13\n },\n "index": 7,\n'
        ' "name": "n",\n "number": 0,\n "revision": 9,\n "rules": 1,\n "sha256": "aa",\n'
        ' "size": 2,\n "time_ms": 0,\n "trimmed": null\n}'
    )
    manifest = Manifest(Cut(7, 9, b"", 0, {BOOT: 13}), 1, "n", 1, 2, b"\xaa")
    assert manifest.encode() == signed(body.encode())


def test_every_changed_byte_is_noticed() -> None:
    encoded = MANIFEST.encode()
    for at in range(len(encoded)):
        changed = bytearray(encoded)
        changed[at] ^= 1
        with pytest.raises(LogError, match="/paddock/shop/manifest"):
            decode_manifest(stored(bytes(changed)))


@pytest.mark.parametrize("size", [0, 5, 30, 100])
def test_a_manifest_that_was_cut_off_is_damaged(size: int) -> None:
    with pytest.raises(LogCorruptError, match="paddock restore"):
        decode_manifest(stored(MANIFEST.encode()[:size]))


def test_a_newer_version_is_named_and_is_no_damage() -> None:
    newer = MANIFEST.encode().replace(b"manifest 1 ", b"manifest 8 ")
    with pytest.raises(LogError, match="version 8 of its format") as raised:
        decode_manifest(stored(newer))
    assert not isinstance(raised.value, LogCorruptError)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        MANIFEST.encode().partition(b"\n")[2].replace(b'"index": 70', b'"index": "x"'),
        MANIFEST.encode().partition(b"\n")[2].replace(b'"ffff', b'"ff'),
    ],
)
def test_what_makes_no_sense_is_damaged_even_if_its_checksum_is_right(body: bytes) -> None:
    with pytest.raises(LogCorruptError, match="makes no sense"):
        decode_manifest(stored(signed(body)))


def test_a_claim_before_the_first_snapshot_counts_as_none() -> None:
    etcd = MemoryEtcd(KEYS)
    store = MemoryStore(etcd)
    assert asyncio.run(read_manifest(store, KEYS)) is None
    etcd.put((KEYS.manifest, EMPTY.encode()))
    assert asyncio.run(read_manifest(store, KEYS)) is None
    revision = etcd.put((KEYS.manifest, MANIFEST.encode()))
    found = asyncio.run(read_manifest(store, KEYS))
    assert found is not None
    assert found.mod_revision == revision
    assert found.cut == CUT


def test_a_manifest_says_when_it_was_taken_if_that_is_known() -> None:
    value = replace(MANIFEST, time_ms=1_700_000_000_000).encode()
    assert decode_manifest(stored(value)).time_ms == 1_700_000_000_000
    fields = json.loads(value.partition(b"\n")[2])
    del fields["time_ms"]
    assert decode_manifest(stored(signed(json.dumps(fields).encode()))).time_ms == 0
