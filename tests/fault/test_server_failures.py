"""A server whose disk fails under it: no reply, no connection, then the log is read again.

The server runs in this process, on a disk that refuses when it is told to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.server.config.config import ServerConfig
from tests.fault.stage.embedded import EmbeddedServer
from tests.fault.stage.load import Load
from tests.fault.stage.process import DEADLINE_S, FaultServer, eventually
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import INT, Code, Mode
from tests.unit.log.helpers import FailingDisk

TIMEOUT_MS = 1_000

#: How a client learns that it is not wanted now.
LOST = (wire.ConnectionClosedError, ConnectionError)


class GatedDisk(FailingDisk):
    """A disk that can also be made to wait, and to refuse snapshots alone."""

    def __init__(self) -> None:
        super().__init__()
        self._snapshots: set[int] = set()
        self.log_syncs = Gate()
        self.snapshot_writes = Gate()
        self.refuses_snapshots = False

    def create(self, path: Path) -> int:
        file = super().create(path)
        if path.parent.name == "snapshots":
            self._snapshots.add(file)
        return file

    def close(self, file: int) -> None:
        self._snapshots.discard(file)
        super().close(file)

    def write(self, file: int, data: bytes, offset: int) -> None:
        if file in self._snapshots:
            self.snapshot_writes.pass_through()
            if self.refuses_snapshots:
                raise OSError(errno.ENOSPC, "No space left on device")
        super().write(file, data, offset)

    def sync(self, file: int) -> None:
        if file not in self._snapshots:
            self.log_syncs.pass_through()
        super().sync(file)


class Gate:
    """Where a thread waits while it is shut."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._waiting = threading.Event()

    def shut(self) -> None:
        self._waiting.clear()
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def wait_for_somebody(self) -> None:
        """Wait until a thread waits here."""
        assert self._waiting.wait(DEADLINE_S)

    def pass_through(self) -> None:
        if not self._open.is_set():
            self._waiting.set()
            assert self._open.wait(DEADLINE_S)


@pytest.fixture
def disk() -> GatedDisk:
    return GatedDisk()


def configured(folder: Path, snapshot_every: int = 100_000) -> ServerConfig:
    return ServerConfig(
        port=0,
        data_directory=folder / "data",
        tick_time_ms=100,
        max_session_timeout_ms=60_000,
        max_connections_per_address=0,
        four_letter_words=frozenset({"isro"}),
        snapshot_every=snapshot_every,
    )


@pytest.fixture
def server(tmp_path: Path, disk: GatedDisk) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(configured(tmp_path), disk) as server:
        yield server


def return_of(server: EmbeddedServer, client: wire.Client) -> wire.Client:
    """Come back as a client does that tries again and again."""
    limit = time.monotonic() + DEADLINE_S
    while True:
        try:
            return wire.reattach(server.address, client)
        except LOST:
            assert time.monotonic() < limit, "the server does not let anybody in"


@pytest.mark.parametrize("operation", ["sync", "write"])
def test_write_that_failed_is_not_answered_and_counts_wholly_or_not_at_all(
    server: EmbeddedServer, disk: GatedDisk, operation: str
) -> None:
    with wire.connect(server.address) as client, wire.connect(server.address) as other:
        created = client.call(rq.create("/a", b"old"))
        with disk.fail(operation):
            client.send(rq.set_data("/a", b"new"), rq.create("/b"), rq.get_data("/a"))
            assert client.wait_closed() == b""
            assert other.wait_closed() == b""
    with return_of(server, client) as again:
        assert again.session_id == client.session_id
        found = again.call(rq.get_data("/a"))
        # FailingDisk writes the half and fails, or writes everything and then fails to sync.
        survived = operation == "sync"
        assert found.data == (b"new" if survived else b"old")
        assert found.zxid == created.zxid + (2 if survived else 0)
        assert found.stat.mzxid == created.zxid + survived
        assert again.call(rq.exists("/b")).err == (Code.OK if survived else Code.NO_NODE)
        assert again.call(rq.set_data("/a", b"newer")).zxid == found.zxid + 1
    with return_of(server, other) as again:
        assert again.session_id == other.session_id


def test_nothing_acknowledged_is_lost_when_the_disk_fails_under_load(
    tmp_path: Path, server: EmbeddedServer, disk: GatedDisk
) -> None:
    with Load(server.address, seed=4) as load:
        for operation in ("sync", "write", "sync"):
            with contextlib.ExitStack() as failing:
                # From then on nobody is answered, and all connections end by themselves.
                begin = functools.partial(failing.enter_context, disk.fail(operation))
                load.run(until=300, then=begin)
            return_of(server, load.writers[0].client).disconnect()
            load.check(server.address, sessions=0)
        crashed = tmp_path / "crashed"
        shutil.copytree(tmp_path / "data", crashed / "data")
        with FaultServer(crashed) as other:
            load.check(other.address)


def test_session_lives_through_a_failure_that_lasts_longer_than_its_timeout(
    server: EmbeddedServer, disk: GatedDisk
) -> None:
    with wire.connect(server.address, timeout_ms=TIMEOUT_MS) as client:
        client.call(rq.create("/e", flags=Mode.EPHEMERAL))
        with disk.fail("sync"):
            client.send(rq.create("/lost"))
            assert client.wait_closed() == b""
            wait_longer_than(TIMEOUT_MS)
    with return_of(server, client) as again:
        assert again.session_id == client.session_id
        assert again.call(rq.get_ephemerals("/")).names == {"/e"}


def test_session_that_nobody_returns_to_ends_after_the_failure(
    server: EmbeddedServer, disk: GatedDisk
) -> None:
    with wire.connect(server.address, timeout_ms=TIMEOUT_MS) as client:
        client.call(rq.create("/e", flags=Mode.EPHEMERAL))
        with disk.fail("sync"):
            client.send(rq.create("/lost"))
            assert client.wait_closed() == b""
    with return_of(server, client) as again:
        again.disconnect()
    with wire.connect(server.address) as watcher:
        watcher.call(rq.exists("/e", watch=True))
        assert watcher.next_event(DEADLINE_S).path == "/e"


def test_server_that_fails_while_it_stops_stops_and_loses_nothing(
    server: EmbeddedServer, disk: GatedDisk
) -> None:
    with wire.connect(server.address) as client:
        client.call(rq.create("/a", b"old"))
        disk.log_syncs.shut()
        client.send(rq.set_data("/a", b"new"))
        disk.log_syncs.wait_for_somebody()
        stopping = server.begin_stop()
        with disk.fail("sync"):
            disk.log_syncs.open()
            assert client.wait_closed() == b""
            stopping.result(DEADLINE_S)
    server.start()
    with return_of(server, client) as again:
        assert again.session_id == client.session_id
        assert again.call(rq.get_data("/a")).data == b"new"


def test_client_that_comes_during_a_stop_and_never_pauses_does_not_hold_it_up(
    server: EmbeddedServer, disk: GatedDisk
) -> None:
    write = rq.create("/a")
    request = INT.pack(1) + INT.pack(write.op) + write.body
    with wire.connect(server.address) as first, wire.Connection(server.address) as late:
        disk.log_syncs.shut()
        first.send(rq.create("/a"))
        disk.log_syncs.wait_for_somebody()
        late.send_frame(wire.connect_body())
        for _ in range(500):
            late.send_frame(request)
        eventually(lambda: outstanding(server) == 2, "the handshake to be read")
        stopping = server.begin_stop()
        disk.log_syncs.open()
        assert wire.decode_connect(late.read_frame()).session_id != 0
        answers = 0
        with contextlib.suppress(*LOST):
            while answers < 100_000:
                late.read_frame()
                answers += 1
                late.send_frame(request)
        stopping.result(DEADLINE_S)
        assert answers == 0


def test_server_that_cannot_write_its_log_can_be_stopped(
    server: EmbeddedServer, disk: GatedDisk
) -> None:
    with wire.connect(server.address) as client:
        client.call(rq.create("/a", b"old"))
        with disk.fail("sync"):
            client.send(rq.create("/lost"))
            assert client.wait_closed() == b""
            server.stop()
    server.start()
    with return_of(server, client) as again:
        assert again.call(rq.get_data("/a")).data == b"old"


def test_while_the_log_fails_reads_are_served_to_those_who_ask_for_no_more(
    tmp_path: Path, disk: GatedDisk
) -> None:
    config = dataclasses.replace(configured(tmp_path), read_only_mode_enabled=True)
    with (
        EmbeddedServer(config, disk) as server,
        wire.connect(server.address) as client,
        contextlib.ExitStack() as stack,
    ):
        client.call(rq.create("/a", b"old"))
        assert wire.four_letter_word(server.address, "isro") == "rw"
        with disk.fail("sync"):
            client.send(rq.create("/lost"))
            assert client.wait_closed() == b""
            with pytest.raises(LOST):
                wire.connect(server.address)
            assert wire.four_letter_word(server.address, "isro") == "ro"
            reader = stack.enter_context(wire.connect(server.address, read_only=True))
            assert reader.handshake.read_only is True
            assert reader.call(rq.get_data("/a")).data == b"old"
            for refused in (rq.set_data("/a", b""), rq.multi(rq.check("/a")), rq.sync("/a")):
                assert reader.call(refused).err == Code.NOT_READ_ONLY
            # A session that is known is told from one with a wrong password.
            owner = stack.enter_context(wire.reattach(server.address, client, read_only=True))
            assert owner.call(rq.exists("/a")).err == Code.OK
            with wire.connect(
                server.address, session_id=client.session_id, password=b"x" * 16, read_only=True
            ) as stranger:
                assert stranger.session_id == 0
        # When it works again, they are to come back for all of it.
        assert reader.wait_closed() == b""
        with return_of(server, client) as again:
            assert again.handshake.read_only is False
            assert again.call(rq.set_data("/a", b"new")).err == Code.OK


def test_full_disk_refuses_writes_and_sessions_and_answers_reads(
    server: EmbeddedServer, disk: GatedDisk
) -> None:
    big = bytes(900_000)
    with wire.connect(server.address, timeout_ms=TIMEOUT_MS) as client:
        client.call(rq.create("/e", flags=Mode.EPHEMERAL))
        zxid = client.call(rq.create("/a")).zxid
        with disk.fail("preallocate", errno.ENOSPC):
            refused = client.call(rq.set_data("/a", big))
            while refused.err == Code.OK:
                zxid = refused.zxid
                refused = client.call(rq.set_data("/a", big))
            assert (refused.err, refused.zxid) == (Code.SYSTEM_ERROR, zxid)
            # In their places: reads between writes that are refused.
            replies = client.calls(rq.create("/b"), rq.exists("/a"), rq.multi(rq.create("/b")))
            assert wire.errors(replies) == [Code.SYSTEM_ERROR, Code.OK, Code.SYSTEM_ERROR]
            assert {reply.zxid for reply in replies} == {zxid}
            with pytest.raises(LOST):
                wire.connect(server.address)
            with pytest.raises(LOST):
                wire.reattach(server.address, client)
            limit = time.monotonic() + 3 * TIMEOUT_MS / 1000
            while time.monotonic() < limit:
                assert client.call(rq.ping()).zxid == zxid
        assert client.call(rq.create("/b")).zxid == zxid + 1
        assert client.call(rq.get_ephemerals("/")).names == {"/e"}


def test_client_that_cannot_return_because_the_disk_is_full_keeps_its_session(
    server: EmbeddedServer, disk: GatedDisk
) -> None:
    with wire.connect(server.address, timeout_ms=TIMEOUT_MS) as client:
        client.call(rq.create("/e", flags=Mode.EPHEMERAL))
        client.call(rq.create("/a"))
        with disk.fail("preallocate", errno.ENOSPC):
            while client.call(rq.set_data("/a", bytes(900_000))).err == Code.OK:
                pass
            client.disconnect()
            limit = time.monotonic() + 2.9 * TIMEOUT_MS / 1000
            while time.monotonic() < limit:
                with pytest.raises(LOST):
                    wire.reattach(server.address, client)
        # It was heard of all the time: from here on it has its whole timeout.
        limit = time.monotonic() + 0.5 * TIMEOUT_MS / 1000
        with wire.connect(server.address) as other:
            while time.monotonic() < limit:
                assert other.call(rq.exists("/e")).err == Code.OK
    with return_of(server, client) as again:
        assert again.session_id == client.session_id


def test_snapshot_that_finds_no_room_while_much_changes_disturbs_nobody(
    tmp_path: Path, disk: GatedDisk
) -> None:
    small = [f"/small-{number}" for number in range(600)]
    large = [f"/large-{number}" for number in range(60)]
    with EmbeddedServer(configured(tmp_path), disk) as server:
        with wire.connect(server.address) as client:
            client.calls(*(rq.create(path, bytes(1_000)) for path in small))
            client.calls(*(rq.create(path, bytes(100_000)) for path in large))
    disk.refuses_snapshots = True
    with EmbeddedServer(configured(tmp_path, snapshot_every=10), disk) as server:
        with return_of(server, client) as client:
            disk.snapshot_writes.shut()
            client.calls(*(rq.set_data("/small-0", b"") for _ in range(10)))
            disk.snapshot_writes.wait_for_somebody()
            # Their old images are more than the server keeps in memory, so it waits for the disk.
            client.send(*(rq.set_data(path, b"") for path in large))
            disk.snapshot_writes.open()
            assert [client.reply().err for _ in large] == [Code.OK] * len(large)
            disk.refuses_snapshots = False
            taken = set((tmp_path / "data" / "snapshots").glob("*.snapshot"))
            while not set((tmp_path / "data" / "snapshots").glob("*.snapshot")) - taken:
                assert client.call(rq.set_data("/small-0", b"")).err == Code.OK


def outstanding(server: EmbeddedServer) -> int:
    """Ask how many writes wait for the log."""
    match = re.search(r"Outstanding: (\d+)", wire.four_letter_word(server.address, "srvr"))
    assert match is not None
    return int(match[1])


def wait_longer_than(timeout_ms: int) -> None:
    """Let a session's time pass: nothing else can show that it was not counted."""
    passed = time.monotonic() + 1.5 * timeout_ms / 1000
    eventually(lambda: time.monotonic() > passed, "time to pass")
