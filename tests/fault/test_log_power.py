"""Power cuts and lying caches: whatever happens, what was reported durable is read back.

The disk here knows what has really arrived. A write arrives with the next successful sync, or some
of its sectors do, or never; a sync that fails drops what it should have written, though reading
still shows it; a name arrives with the sync of its folder, or before, or never, but names keep
their order.
"""

import contextlib
import errno
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.interface import LogCorruptError, LogError, Record
from tests.support.logs import Durability
from tests.unit.log.helpers import Proposer

SEGMENT_BYTES = 4000
# So that some records find space, and some have to make it.
STEP_BYTES = 900
SECTOR_BYTES = 512  # arrives whole or not at all


@dataclass
class Content:
    """What the disk has of one file, and what it was told since."""

    arrived: bytearray = field(default_factory=bytearray)
    waiting: list[tuple[int, bytes]] = field(default_factory=list)

    def arrive(self, keep: Callable[[], bool]) -> None:
        """Let those pieces of the waiting writes arrive that are kept."""
        for offset, data in self.waiting:
            for start, piece in _by_sectors(offset, data):
                if keep():
                    end = start + len(piece)
                    self.arrived.extend(bytes(max(0, end - len(self.arrived))))
                    self.arrived[start:end] = piece
        self.waiting.clear()


def _by_sectors(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a write where a sector ends."""
    while data:
        size = SECTOR_BYTES - offset % SECTOR_BYTES
        yield offset, data[:size]
        data = data[size:]
        offset += size


class UnreliableDisk(Disk):
    """Real files, as the kernel shows them, and beside them the truth about what has arrived."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder = folder
        self._chance = chance
        self._names: dict[Path, Content] = {}
        self._open: dict[int, Content] = {}
        # What the folder was like after each change of a name since its last sync.
        self._histories: list[dict[Path, Content]] = [{}]
        # How many operations succeed before one fails, and with what; None for ever.
        self.operations_left: int | None = None
        self.error = errno.EIO
        self.stays_broken = False

    def create(self, path: Path) -> int:
        self._may_fail()
        self._names[path] = Content()
        self._remember_names()
        file = super().create(path)
        self._open[file] = self._names[path]
        return file

    def open(self, path: Path) -> int:
        file = super().open(path)
        self._open[file] = self._names[path]
        return file

    def write(self, file: int, data: bytes, offset: int) -> None:
        try:
            self._may_fail()
        except OSError:
            part = data[: self._chance.randrange(len(data) + 1)]
            super().write(file, part, offset)
            self._open[file].waiting.append((offset, part))
            raise
        super().write(file, data, offset)
        self._open[file].waiting.append((offset, data))

    def write_parts(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self.write(file, b"".join(parts), offset)

    def sync(self, file: int) -> None:
        try:
            self._may_fail()
        except OSError:
            self._open[file].arrive(self._perhaps)
            raise
        self._open[file].arrive(lambda: True)

    def rename(self, old: Path, new: Path) -> None:
        self._may_fail()
        super().rename(old, new)
        self._names[new] = self._names.pop(old)
        self._remember_names()

    def remove(self, path: Path) -> None:
        self._may_fail()
        super().remove(path)
        del self._names[path]
        self._remember_names()

    def sync_folder(self, folder: Path) -> None:
        self._may_fail()
        self._histories = [dict(self._names)]

    def cut_power(self) -> None:
        """Forget what has not arrived, and show the files as they are on the disk."""
        self._names = dict(self._chance.choice(self._histories))
        self._histories = [dict(self._names)]
        self._open.clear()
        for path in self._folder.iterdir():
            path.unlink()
        for path, content in self._names.items():
            content.arrive(self._perhaps)
            path.write_bytes(content.arrived)
        self.repair()

    def repair(self) -> None:
        """Let nothing fail any more."""
        self.operations_left = None

    def _perhaps(self) -> bool:
        return self._chance.random() < 0.5

    def _remember_names(self) -> None:
        self._histories.append(dict(self._names))

    def _may_fail(self) -> None:
        if self.operations_left is None:
            return
        if self.operations_left == 0:
            if not self.stays_broken:
                self.operations_left = None
            raise OSError(self.error, os.strerror(self.error))
        self.operations_left -= 1


class World:
    """A log on an unreliable disk, and what its users know of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.disk = UnreliableDisk(folder, random.Random(seed))
        self._folder = folder
        # What was reported durable or shown by reading. It must stay, and nothing may come between.
        self.known: list[bytes] = []
        # A payload that may or may not be there, until the log is read.
        self.unknown: bytes | None = None
        self._proposer = self._open()

    def propose(self, payload: bytes) -> None:
        if self.unknown is not None:
            self._recover()
        index, outcome, _ = self._proposer.propose(payload)
        assert index == len(self.known) + 1
        if outcome is Durability.DURABLE:
            self.known.append(payload)
        elif outcome is Durability.UNKNOWN:
            self.unknown = payload

    def restart(self) -> None:
        """Kill the server and start it again; the kernel goes on."""
        self._proposer.log.close()
        self._look()

    def cut_power(self) -> None:
        self._proposer.log.close()
        self.disk.cut_power()
        self._look()

    def close(self) -> None:
        self._proposer.log.close()

    def _recover(self) -> None:
        try:
            found = self._proposer.recover()
        except LogError:
            self.disk.repair()
            found = self._proposer.recover()
        self._learn([record.payload for record in found])
        self._check(list(self._proposer.log.records(0)))

    def _look(self) -> None:
        self._proposer = self._open()
        found = list(self._proposer.log.records(0))
        self._learn([record.payload for record in found[len(self.known) :]])
        self._check(found)

    def _learn(self, beyond: list[bytes]) -> None:
        assert beyond in ([], [self.unknown])
        self.known += beyond
        self.unknown = None

    def _check(self, found: list[Record]) -> None:
        assert found == [Record(index, payload) for index, payload in enumerate(self.known, 1)]

    def _open(self) -> Proposer:
        try:
            return Proposer(self._new_log())
        except LogCorruptError:
            raise
        except LogError:
            self.disk.repair()
            return Proposer(self._new_log())

    def _new_log(self) -> FileLog:
        return FileLog(
            self._folder, segment_bytes=SEGMENT_BYTES, step_bytes=STEP_BYTES, disk=self.disk
        )


propose = st.tuples(st.just("propose"), st.sampled_from([0, 5, 60, 200, 460, 700, 1500, 5000]))
arm = st.tuples(
    st.sampled_from(["fail once", "fail from", "full"]), st.integers(min_value=0, max_value=12)
)
look = st.tuples(st.sampled_from(["restart", "cut power"]), st.just(0))


# The sync of the first space fails, and the kernel goes on showing it.
FORGOTTEN_SPACE = [("fail once", 6), ("propose", 0), ("restart", 0), ("propose", 0)]


@settings(max_examples=150, deadline=None)
@example(FORGOTTEN_SPACE, 0)
@given(st.lists(st.one_of(propose, propose, arm, look), max_size=40), st.integers(0, 2**32))
def test_everything_reported_durable_is_read_back_and_nothing_else(
    steps: list[tuple[str, int]], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name), seed)
        with contextlib.closing(world):
            for number, (step, argument) in enumerate(steps):
                match step:
                    case "propose":
                        world.propose(b"%d:" % number + bytes(argument))
                    case "restart":
                        world.restart()
                    case "cut power":
                        world.cut_power()
                    case _:
                        world.disk.operations_left = argument
                        world.disk.error = errno.ENOSPC if step == "full" else errno.EIO
                        world.disk.stays_broken = step == "fail from"
            world.disk.repair()
            world.cut_power()
