"""A clean stop under load, and what it leaves: a snapshot of everything, no more than needed."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.file.segments import begin_log
from tests.fault.stage.load import Load
from tests.fault.stage.process import FaultServer, eventually
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Code
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
        begin_log(server.data / "log", int(server.snapshots[-1].stem), Disk())
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
    options = Options(extra=(*keys, ("paddock.history", "off")))
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


def test_stop_gives_a_client_that_reads_late_everything_that_was_answered(tmp_path: Path) -> None:
    with FaultServer(tmp_path) as server, wire.connect(server.address) as client:
        client.call(rq.create("/large", bytes(900_000)))
        # Far more than the buffers of a socket take.
        client.send(*[rq.get_data("/large")] * 40)
        client.read_frame()
        status: list[int | None] = []
        stopping = threading.Thread(target=lambda: status.append(server.stop()))
        stopping.start()
        # It waits for us, or has given us up already.
        eventually(lambda: bool(re.search("waiting for|stopped", server.log_tail())), "the end")
        whole = 0
        with contextlib.suppress(wire.ConnectionClosedError):
            while True:
                assert len(client.read_frame()) > 900_000
                whole += 1
        assert client.wait_closed() == b"", "an answer was cut in the middle"
        assert whole > 0
        stopping.join()
        assert status == [0]


def test_stop_is_not_held_up_by_clients_that_never_read(tmp_path: Path) -> None:
    with FaultServer(tmp_path) as server, contextlib.ExitStack() as stack:
        client = wire.connect(server.address)
        client.call(rq.create("/large", bytes(900_000)))
        client.call(rq.create("/e", flags=1))
        for _ in range(5):
            deaf = stack.enter_context(wire.connect(server.address))
            deaf.send(*[rq.get_data("/large")] * 40)
            deaf.read_frame()
        # Ends well within the deadline, or fails.
        assert server.stop() == 0
        server.start()
        again = stack.enter_context(wire.reattach(server.address, client))
        assert again.session_id == client.session_id
        assert again.call(rq.exists("/e")).err == Code.OK
        client.disconnect()


def last_index(server: FaultServer) -> int:
    log = FileLog(server.data / "log")
    log.close()
    return log.last_index
