"""The keys of one service in etcd.

All are below `/paddock/<name>`:

    /id                 the service's random id and the format of its keys; written once
    /log                the head: the last batch. Its etcd version is the index of that batch
    /log/<boot>/<n>     a batch; both as 16 hexadecimal digits
    /manifest           the newest snapshot in etcd, and what may be trimmed
    /snap/<name>/<k>    a piece of a snapshot
    /skip/<index>       a batch that is not to be applied
"""

from __future__ import annotations

from typing import Final

BOOT_BYTES: Final = 8
_DIGITS: Final = 16


class Keys:
    """The keys of the service with a name."""

    def __init__(self, name: str) -> None:
        root = f"/paddock/{name}".encode()
        self.id = root + b"/id"
        self.head = root + b"/log"
        # The range of all batches, and the one of the head and all batches.
        self.batches = root + b"/log/"
        self.batches_end = root + b"/log0"
        self.manifest = root + b"/manifest"
        self.snapshots = root + b"/snap/"
        self.snapshots_end = root + b"/snap0"
        self.skips = root + b"/skip/"
        self.skips_end = root + b"/skip0"

    def batch(self, boot: bytes, number: int) -> bytes:
        return self.of_boot(boot) + b"%016x" % number

    def of_boot(self, boot: bytes) -> bytes:
        """Return what the keys of all batches of a boot begin with."""
        return self.batches + boot.hex().encode() + b"/"

    def snapshot_piece(self, name: str, number: int) -> bytes:
        return self.snapshots + f"{name}/".encode() + b"%08x" % number

    def skip(self, index: int) -> bytes:
        return self.skips + b"%016x" % index

    def parse_batch(self, key: bytes) -> tuple[bytes, int] | None:
        """Return the boot and the number in the key of a batch; None if it is none."""
        boot, slash, number = key.removeprefix(self.batches).partition(b"/")
        if not key.startswith(self.batches) or not slash:
            return None
        if len(boot) != _DIGITS or len(number) != _DIGITS:
            return None
        try:
            return bytes.fromhex(boot.decode("ascii")), int(number, 16)
        except ValueError:
            return None
