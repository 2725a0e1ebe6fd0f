"""How fast a snapshot is written, and how large etcd becomes meanwhile: in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from paddock.log.etcd.calls import Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Cut
from paddock.log.etcd.pace import PIECE_BYTES_MAX, PIECE_BYTES_MIN, REST, Pace
from paddock.log.etcd.snapshots import download, upload
from paddock.log.etcd.trimming import log_bytes_due
from paddock.testing import run_virtually
from tests.support.memory_store import MemoryEtcd, MemoryStore

MIB = 1 << 20
# What etcd commits in a second, of everything together, and how long a commit takes at least.
ETCD_BYTES_PER_S = 40 * MIB
COMMIT_S = 0.004


def paced(log_bytes: int, written: int) -> Pace:
    pace = Pace()
    pace.begin(100, 1000, lambda: log_bytes)
    pace.wrote(written)
    return pace


def test_what_is_on_time_takes_a_fifth_of_the_time_in_small_pieces() -> None:
    for pace in (Pace(), paced(0, 0), paced(500, 50), paced(500, 90), paced(1000, 200)):
        assert pace.rest() == REST == 4.0
        assert pace.piece_bytes() == PIECE_BYTES_MIN


def test_what_is_late_rests_less_and_then_not_at_all() -> None:
    rests = [paced(500 + late, 50).rest() for late in (0, 125, 250, 900)]
    assert rests == [4.0, 2.0, 0.0, 0.0]


def test_what_is_very_late_is_written_in_large_pieces() -> None:
    sizes = [paced(late, 0).piece_bytes() for late in (249, 250, 500, 750, 1000, 9_000)]
    kib = [64, 128, 256, 512, 1024, 1024]
    assert [size >> 10 for size in sizes] == kib
    assert PIECE_BYTES_MAX == 1 << 20


def test_there_is_no_hurry_when_it_is_over() -> None:
    pace = paced(9_000, 0)
    pace.end()
    assert (pace.rest(), pace.piece_bytes()) == (REST, PIECE_BYTES_MIN)


@dataclass
class Service:
    """Servers that write as fast as etcd takes it, beside the snapshots of their state.

    etcd shares what it can commit among all that is in flight: batches of 64 KiB, and a piece.
    """

    state_bytes: int
    servers: int = 3
    # Batches in flight; 0 for a service that idles.
    batches: int = 4
    log_bytes: int = 0
    most_bytes: int = 0
    seconds: float = 0.0
    #: Where the last snapshots stand: those whose log is kept.
    cuts: list[int] = field(default_factory=lambda: [0])

    def write(self, piece_bytes: int) -> float:
        """Commit a piece, and what is in flight beside it; return how long that takes."""
        beside = self.servers * self.batches * PIECE_BYTES_MIN
        took_s = max(COMMIT_S, (piece_bytes + beside) / ETCD_BYTES_PER_S)
        self.log_bytes += beside
        self.seconds += took_s
        return took_s

    def rest(self, seconds: float) -> None:
        if self.batches:
            self.log_bytes += int(seconds * ETCD_BYTES_PER_S)
        self.seconds += seconds

    def snapshot(self) -> float:
        """Wait until a snapshot is due, and write it; return how long it took."""
        missing = log_bytes_due(self.state_bytes) - (self.log_bytes - self.cuts[-1])
        if missing > 0 and self.batches:
            self.rest(missing / ETCD_BYTES_PER_S)
        self.cuts.append(cut := self.log_bytes)
        pace = Pace()
        due = log_bytes_due(self.state_bytes)
        pace.begin(self.state_bytes, due, lambda: self.log_bytes - cut)
        begun, written = self.seconds, 0
        while written < self.state_bytes:
            size = pace.piece_bytes()
            took_s = self.write(size)
            written += size
            pace.wrote(size)
            self.rest(pace.rest() * took_s)
            # The snapshot before it, this one, and the log behind the one before the last.
            kept = self.state_bytes + written + self.log_bytes - self.cuts[0]
            self.most_bytes = max(self.most_bytes, kept)
        del self.cuts[:-2]
        return self.seconds - begun

    def run(self) -> None:
        """Write for ten minutes: it goes on like that."""
        while self.seconds < 600:
            self.snapshot()


def test_a_small_state_keeps_etcd_far_below_a_gibibyte_under_any_writes() -> None:
    service = Service(10 * MIB)
    service.run()
    assert service.most_bytes < 400 * MIB


@pytest.mark.parametrize("servers", [1, 3, 5])
def test_a_large_state_keeps_etcd_within_a_few_times_its_size(servers: int) -> None:
    service = Service(200 * MIB, servers)
    service.run()
    assert service.most_bytes < 9 * 200 * MIB


def test_a_service_that_idles_writes_snapshots_slowly() -> None:
    service = Service(10 * MIB, batches=0)
    assert service.snapshot() == pytest.approx(160 * 5 * COMMIT_S)


def test_an_upload_speeds_up_and_can_be_read_whatever_its_pieces_are() -> None:
    keys = Keys("test")
    snapshot = bytes(range(256)) * 12_000
    etcd = MemoryEtcd(keys)
    store = MemoryStore(etcd)
    pace = Pace()
    grown = 0

    def log_bytes() -> int:
        nonlocal grown
        grown += 64 << 10
        return grown

    async def main() -> bytes:
        pace.begin(len(snapshot), MIB, log_bytes)
        calls = Calls(asyncio.get_running_loop().time, pace=pace)
        manifest = await upload(store, keys, [snapshot], Cut(7), 1, bytes, calls=calls)
        sizes = [len(one.value) >> 10 for key, one in etcd.items.items() if b"/snap/" in key]
        assert sizes[0] == 64
        assert max(sizes) == 512
        assert manifest.chunks == len(sizes)
        return b"".join([piece async for piece in download(store, keys, manifest)])

    assert run_virtually(main()) == snapshot
