"""A clean stop under load, and what it leaves: a snapshot of everything, no more than needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.log.file import FileLog
from tests.fault.load import Load
from tests.fault.process import FaultServer
from tests.support.server import Options

RETAINED = 3

Stop = Callable[[FaultServer], int | None]


@pytest.mark.parametrize("stop", [FaultServer.stop, FaultServer.interrupt], ids=["TERM", "INT"])
def test_stop_under_load_ends_with_status_0_and_a_snapshot_of_everything(
    tmp_path: Path, stop: Stop
) -> None:
    with FaultServer(tmp_path) as server, Load(server.address, seed=1) as load:
        statuses: list[int | None] = []
        load.run(until=800, then=lambda: statuses.append(stop(server)))
        assert statuses == [0]
        assert "Traceback" not in server.log_tail()
        assert [int(path.stem) for path in server.snapshots] == [last_index(server)]
        # The snapshot alone is enough, so it is not only a promise.
        for segment in server.segments:
            segment.unlink()
        server.start()
        load.check(server.address)


def test_stop_of_a_server_that_only_read_its_log_writes_a_snapshot(tmp_path: Path) -> None:
    with FaultServer(tmp_path) as server, Load(server.address, seed=2) as load:
        load.run(until=100, then=server.kill)
        server.start_and_stop()
        assert [int(path.stem) for path in server.snapshots] == [last_index(server)]
        server.start()
        load.check(server.address)


def test_purge_leaves_as_many_snapshots_as_wanted_and_only_the_log_they_need(
    tmp_path: Path,
) -> None:
    keys = (("snapCount", "200"), ("autopurge.snapRetainCount", str(RETAINED)))
    options = Options(extra=keys)
    with (
        FaultServer(tmp_path, options) as server,
        Load(server.address, seed=3, data_bytes_max=60_000) as load,
    ):
        load.run(until=2_500, then=server.stop)
        snapshots = [int(path.stem) for path in server.snapshots]
        segments = [int(path.stem) for path in server.segments]
        assert len(snapshots) == RETAINED
        assert segments[0] > 1, "the load was meant to fill more than one segment"
        assert segments[0] <= snapshots[0] + 1, "each snapshot can be started from"
        assert all(first > snapshots[0] + 1 for first in segments[1:])
        server.start()
        load.check(server.address)


def last_index(server: FaultServer) -> int:
    log = FileLog(server.data / "log")
    log.close()
    return log.last_index
