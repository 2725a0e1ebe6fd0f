"""A really full disk, a small file system of its own: writes are refused until there is room."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.log.file.file_log import SEGMENT_BYTES
from tests.fault.stage.process import DEADLINE_S, FaultServer, read_tree
from tests.support import disks, wire
from tests.support import requests as rq
from tests.support.records import Code, EventType, Mode
from tests.support.server import Options

# Room for two segments and some snapshots; the ballast takes the second one's.
DISK_BYTES = 3 * SEGMENT_BYTES
BALLAST_BYTES = SEGMENT_BYTES * 3 // 2
VALUE = bytes(100_000)
TIMEOUT_MS = 1_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disks.small_disk(tmp_path / "small", DISK_BYTES) as folder:
        yield folder


@pytest.fixture
def ballast(small_disk: Path) -> Path:
    path = small_disk / "ballast"
    path.write_bytes(bytes(BALLAST_BYTES))
    return path


@pytest.fixture
def server(tmp_path: Path, small_disk: Path, ballast: Path) -> Iterator[FaultServer]:
    server = FaultServer(tmp_path, Options(extra=(("snapCount", "30"),)))
    server.data = small_disk / "data"
    with server:
        yield server


def fill(client: wire.Client) -> tuple[int, int]:
    """Write until there is no room; return how many writes there were and the last one's zxid."""
    zxid = client.call(rq.create("/a")).zxid
    for count in range(10 * SEGMENT_BYTES // len(VALUE)):
        reply = client.call(rq.set_data("/a", b"%09d" % (count + 1) + VALUE))
        if reply.err != Code.OK:
            assert (reply.err, reply.zxid) == (Code.SYSTEM_ERROR, zxid)
            return count, zxid
        zxid = reply.zxid
    pytest.fail("the disk never became full")


def test_full_disk_refuses_writes_serves_reads_and_resumes_when_there_is_room(
    server: FaultServer, ballast: Path
) -> None:
    with (
        wire.connect(server.address, timeout_ms=TIMEOUT_MS) as silent,
        wire.connect(server.address) as other,
        wire.connect(server.address, timeout_ms=TIMEOUT_MS) as client,
    ):
        silent.call(rq.create("/silent", flags=Mode.EPHEMERAL))
        client.call(rq.create("/busy", flags=Mode.EPHEMERAL))
        # The silent one is silent from here on, and the log cannot take note of its end.
        count, zxid = fill(client)
        assert count > 50
        limit = time.monotonic() + 3 * TIMEOUT_MS / 1000
        while time.monotonic() < limit:
            replies = client.calls(
                rq.delete("/a"), rq.get_data("/a"), rq.create("/b"), rq.ping(), rq.exists("/b")
            )
            kept = [reply.err for reply in replies if reply.xid != -2]
            assert kept == [Code.SYSTEM_ERROR, Code.OK, Code.SYSTEM_ERROR, Code.NO_NODE]
            assert {reply.zxid for reply in replies} == {zxid}
        found = other.call(rq.get_data("/a"))
        assert (found.data, found.stat.version) == (b"%09d" % count + VALUE, count)
        assert other.call(rq.exists("/silent", watch=True)).err == Code.OK

        ballast.unlink()
        assert client.call(rq.create("/b")).zxid in (zxid + 1, zxid + 2)
        # The refused end is proposed again a timeout later; the busy one must not be silent then.
        limit = time.monotonic() + DEADLINE_S
        while not (events := other.drain()) and time.monotonic() < limit:
            client.call(rq.ping())
        assert [(event.type, event.path) for event in events] == [(EventType.DELETED, "/silent")]
        assert client.call(rq.get_ephemerals("/")).names == {"/busy"}
        fill_again = client.call(rq.set_data("/a", VALUE))
        assert (fill_again.err, fill_again.stat.version) == (Code.OK, count + 1)
        tree = read_tree(other)
    server.kill()
    server.start()
    with wire.connect(server.address) as client:
        assert read_tree(client) == tree


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_server_restarts_on_a_full_disk_with_everything_acknowledged(
    server: FaultServer, ballast: Path, kill: bool
) -> None:
    with wire.connect(server.address) as client:
        count, _ = fill(client)
    # From now on there is not even room for a snapshot.
    with pytest.raises(OSError, match="No space left"):
        (ballast.parent / "more").write_bytes(bytes(DISK_BYTES))
    if kill:
        server.kill()
    else:
        assert server.stop() == 0
    server.start()
    with wire.reattach(server.address, client) as again:
        assert again.session_id == client.session_id
        found = again.call(rq.get_data("/a"))
        assert (found.data, found.stat.version) == (b"%09d" % count + VALUE, count)
        assert again.call(rq.set_data("/a", bytes(900_000))).err == Code.SYSTEM_ERROR
        ballast.unlink()
        assert again.call(rq.set_data("/a", bytes(900_000))).err == Code.OK
