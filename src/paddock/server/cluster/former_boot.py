"""The boot of this server: its name, written down for its successor on the same data folder.

A server that was killed is still a member until it is deposed. Its successor replaces it at once,
if the former one can surely not speak any more: the data folder is claimed by one process at a
time, and is the same one, not a copy, here or on another machine.

A boot is written down when it is a member, by a JOIN that came out of the log as it was proposed.
Not before: a clone of this machine may have drawn the same name and be the member under it, and it
may speak. If the process ends just before, its boot is found by nobody, and is deposed in time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from paddock.log.etcd.keys import BOOT_BYTES
from paddock.log.file.disk import Disk, write_file
from paddock.state.roster import Roster

# What tells a machine from others. A container has no machine id, or one that says "uninitialized";
# what Linux draws at its start is good until it starts again.
_IDENTITIES: Final = (Path("/etc/machine-id"), Path("/proc/sys/kernel/random/boot_id"))
_IDENTITY: Final = re.compile(rb"[0-9a-f-]{32,36}")


def new_boot(roster: Roster, random_bytes: Callable[[int], bytes]) -> bytes:
    """Return the name of a boot that none has had.

    A clone of this machine may have drawn the same one. Its JOIN would be in the log already, and
    ours, which would be taken for the same, would never come.
    """
    boot = random_bytes(BOOT_BYTES)
    while boot in roster.members or boot in roster.ended:
        boot = random_bytes(BOOT_BYTES)
    return boot


class FormerBoot:
    """The file in the data folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, machine: bytes | None = None) -> None:
        self._path = None if folder is None else folder / "boot"
        self._machine = _machine_id() if machine is None else machine
        if folder is not None and self._machine:
            # A copy has another number in its file system, and a clone of that, which another
            # container may have, another device.
            found = folder.stat()
            self._machine += b"-%d-%d" % (found.st_dev, found.st_ino)

    def read(self) -> bytes:
        """Return the former boot; empty if there is none, or if it may still speak."""
        if self._path is None or not self._machine:
            return b""
        try:
            boot, machine = self._path.read_bytes().split()
            found = bytes.fromhex(boot.decode("ascii"))
        except (OSError, ValueError):
            return b""
        return found if machine == self._machine else b""

    def write(self, boot: bytes) -> None:
        """Write down a boot that is a member."""
        if self._path is not None:
            # Without it a successor waits until the boot is deposed.
            with contextlib.suppress(OSError):
                write_file(self._path, boot.hex().encode() + b" " + self._machine + b"\n", Disk())

    def clear(self) -> None:
        """Forget the boot: it has left."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)


def _machine_id() -> bytes:
    """Return what tells this machine from others; empty if unknown."""
    for path in _IDENTITIES:
        with contextlib.suppress(OSError):
            found = path.read_bytes().strip()
            if _IDENTITY.fullmatch(found):
                return found
    return b""
