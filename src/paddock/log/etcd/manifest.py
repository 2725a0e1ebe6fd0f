"""The manifest: which snapshot in etcd is the newest, where it stands, and what may be trimmed.

    paddock-manifest 1 <SHA-256 of the rest, hexadecimal>
    {"boot": ..., "chunks": ..., "cuts": ...}

* It is one key, so a snapshot counts from one moment on, when all its pieces are there.
* The snapshot holds the effect of all batches up to its revision, and of no other. It is taken when
  no batch is held, so for each member all numbers below the cut are in it, and none above.
* What lies behind the *previous* manifest is kept: servers that lag by less need no snapshot. So
  only batches up to the revision of `trimmed` are deleted.
* Its etcd mod revision changes with each new snapshot, and when an upload claims the manifest by
  writing the same again. It fences: uploads and deletions that began before come to nothing.
* An empty manifest (no snapshot yet) is a claim before the first snapshot, and counts as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from paddock.log.etcd.calls import UNPACED, Calls
from paddock.log.etcd.keys import BOOT_BYTES, Keys
from paddock.log.etcd.store import Store, Stored
from paddock.log.interface import LogCorruptError, LogError, Position

VERSION: Final = 1
_MAGIC: Final = "paddock-manifest"
_SHA256_BYTES: Final = 32

# How to go on after damage in etcd: the end of each message about it.
WAY_ON: Final = (
    "Servers that run go on, and their next snapshot replaces it. If none runs, start one that"
    " has its data folder, or restore a backup into a new name with paddock restore."
)


class ManifestReplacedError(LogError):
    """Another manifest has taken the place of the one that was worked with: start over."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A place in the log, in terms of every server: where a snapshot stands."""

    # The last record that counts, and the proposal that it came from.
    index: int = 0
    revision: int = 0
    boot: bytes = b""
    number: int = 0
    # For each member: the next number that counts.
    cuts: Mapping[bytes, int] = field(default_factory=dict)

    @property
    def position(self) -> Position:
        return Position(self.index, self.revision, self.boot, self.number)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot in etcd."""

    cut: Cut
    rules: int
    # What the keys of its pieces begin with, and how many there are; empty: there is no snapshot.
    name: str
    chunks: int
    size: int
    sha256: bytes
    # The cut of the previous manifest: nothing behind it is deleted.
    trimmed: Cut | None = None
    # As it was read; 0 if it is not in etcd yet.
    mod_revision: int = 0
    # When it was taken, by the clock of the server that wrote it; 0 if that is not known.
    time_ms: int = 0

    @property
    def index(self) -> int:
        return self.cut.index

    @property
    def revision(self) -> int:
        return self.cut.revision

    @property
    def position(self) -> Position:
        return self.cut.position

    def encode(self) -> bytes:
        fields = {
            **_cut_fields(self.cut),
            "rules": self.rules,
            "name": self.name,
            "chunks": self.chunks,
            "size": self.size,
            "sha256": self.sha256.hex(),
            "time_ms": self.time_ms,
            "trimmed": None if self.trimmed is None else _cut_fields(self.trimmed),
        }
        body = json.dumps(fields, sort_keys=True, indent=1).encode()
        return f"{_MAGIC} {VERSION} {hashlib.sha256(body).hexdigest()}\n".encode() + body


# Written by a claim while there is no snapshot.
EMPTY: Final = Manifest(Cut(), 0, "", 0, 0, bytes(_SHA256_BYTES))


async def read_manifest(store: Store, keys: Keys, calls: Calls = UNPACED) -> Manifest | None:
    """Return the manifest; None if there is no snapshot yet. Raises LogCorruptError."""
    stored = (await calls.repeat(store.read, keys.manifest)).found[0]
    if stored is None:
        return None
    manifest = decode_manifest(stored)
    return manifest if manifest.name else None


def decode_manifest(stored: Stored) -> Manifest:
    """Return the manifest that is stored. Raises LogCorruptError; LogError for a newer version."""
    where = stored.key.decode(errors="replace")
    line, _, body = stored.value.partition(b"\n")
    words = line.decode(errors="replace").split(" ")
    if len(words) != 3 or words[0] != _MAGIC:
        raise LogCorruptError(f"{where}: not a manifest. {WAY_ON}")
    if words[1] != str(VERSION):
        raise LogError(
            f"{where}: written in version {words[1]} of its format, and this version of Paddock"
            f" knows {VERSION} alone: run a newer one"
        )
    if words[2] != hashlib.sha256(body).hexdigest():
        raise LogCorruptError(f"{where}: the manifest is damaged: its checksum differs. {WAY_ON}")
    try:
        fields = json.loads(body)
        trimmed = fields["trimmed"]
        return Manifest(
            _read_cut(fields),
            int(fields["rules"]),
            str(fields["name"]),
            int(fields["chunks"]),
            int(fields["size"]),
            bytes.fromhex(fields["sha256"]),
            None if trimmed is None else _read_cut(trimmed),
            stored.mod_revision,
            int(fields.get("time_ms", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LogCorruptError(f"{where}: the manifest makes no sense: {error}. {WAY_ON}") from error


def _cut_fields(cut: Cut) -> dict[str, object]:
    return {
        "index": cut.index,
        "revision": cut.revision,
        "boot": cut.boot.hex(),
        "number": cut.number,
        "cuts": {boot.hex(): number for boot, number in cut.cuts.items()},
    }


def _read_cut(fields: dict[str, Any]) -> Cut:
    cuts = {bytes.fromhex(boot): int(number) for boot, number in fields["cuts"].items()}
    if any(len(boot) != BOOT_BYTES for boot in cuts):
        raise ValueError("a boot has another length")
    return Cut(
        int(fields["index"]),
        int(fields["revision"]),
        bytes.fromhex(fields["boot"]),
        int(fields["number"]),
        cuts,
    )
