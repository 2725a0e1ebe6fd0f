"""Backups and checks beside a server under load, and restores that are interrupted."""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.interface import LogError
from paddock.server.admin.control_socket import ControlError, ask
from paddock.state.machine import StateMachine
from paddock.storage.load import load
from paddock.storage.maintenance.check import check
from paddock.storage.state_swap import stage
from tests.fault.stage.process import DEADLINE_S, FaultServer, eventually, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import success
from tests.support.records import Code
from tests.support.server import Options

#: Snapshots and purges all the time.
BUSY = Options(extra=(("snapCount", "40"), ("paddock.history", "off")))
SEED = 20_261_115
ROUNDS = 8


class Pair:
    """Writes the same number to /a and then to /b, again and again, until told to stop."""

    def __init__(self, server: FaultServer, data_bytes: int) -> None:
        self._client = wire.connect(server.address)
        self._padding = bytes(data_bytes)
        for path in ("/a", "/b"):
            assert self._client.call(rq.create(path, self._data(0))).err == Code.OK
        #: The last number that was acknowledged in both.
        self.acknowledged = 0
        self.zxid = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _data(self, number: int) -> bytes:
        return b"%d:" % number + self._padding

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            for path in ("/a", "/b"):
                reply = self._client.call(rq.set_data(path, self._data(number)))
                assert reply.err == Code.OK
            self.zxid = reply.zxid
            self.acknowledged = number

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(DEADLINE_S)
            self._client.disconnect()


def number(machine: StateMachine, path: bytes) -> int:
    data = machine.tree.nodes[path].data
    assert data is not None
    return int(data.split(b":")[0])


def purged(server: FaultServer) -> bool:
    return int(server.segments[0].stem) > 1


def test_a_backup_under_load_holds_all_that_was_acknowledged_before(tmp_path: Path) -> None:
    with FaultServer(tmp_path, BUSY) as server:
        pair = Pair(server, 60_000)
        with pair.running():
            eventually(lambda: purged(server), "the first segment to be purged")
            for attempt in range(4):
                before, zxid = pair.acknowledged, pair.zxid
                file = tmp_path / f"{attempt}.tar"
                success("backup", server.data, file)
                restored = tmp_path / f"restored-{attempt}"
                success("restore", file, restored)
                machine = load(restored).machine
                a, b = number(machine, b"/a"), number(machine, b"/b")
                assert before <= b <= a <= b + 1
                assert machine.tree.nodes[b"/b"].mzxid >= zxid
                assert machine.zxid > pair.zxid
                shutil.rmtree(restored)
                file.unlink()
        assert server.stop() == 0


def test_a_folder_is_read_and_found_fine_while_it_is_written_and_purged(tmp_path: Path) -> None:
    with FaultServer(tmp_path, BUSY) as server:
        pair = Pair(server, 60_000)
        with pair.running():
            eventually(lambda: purged(server), "the first segment to be purged")
            for _ in range(12):
                before = pair.acknowledged
                report = check(server.data)
                assert report.findings == []
                assert report.state is not None
                assert report.state.zxid >= before
                loaded = load(server.data).machine
                assert number(loaded, b"/b") >= before
        assert server.stop() == 0


def test_a_server_killed_while_it_restores_has_the_old_state_or_the_new_one(
    tmp_path: Path,
) -> None:
    chance = random.Random(SEED)
    (tmp_path / "new").mkdir()
    with FaultServer(tmp_path / "new") as server:
        with wire.connect(server.address) as client:
            client.calls(*(rq.create(f"/new{number}") for number in range(50)))
            new = set(read_tree(client))
        server.stop()
        loaded = load(server.data)
    (tmp_path / "server").mkdir()
    found = []
    with FaultServer(tmp_path / "server") as server:
        old = {"/old"}
        with wire.connect(server.address) as client:
            client.call(rq.create("/old"))
        for _ in range(ROUNDS):
            staged = stage(server.data, loaded.machine, loaded.index, Disk())
            asking = threading.Thread(target=ask_in_vain, args=(server, staged))
            asking.start()
            asking.join(chance.uniform(0.0, 0.06))
            server.kill()
            asking.join(DEADLINE_S)
            server.start()
            with wire.connect(server.address) as client:
                tree = set(read_tree(client))
                found.append(tree == new)
                assert tree in (old, new), "neither the old state nor the new one"
                # Back to where the next round begins.
                if tree == new:
                    for path in sorted(tree):
                        assert client.call(rq.delete(path)).err == Code.OK
                    client.call(rq.create("/old"))
                client.close()
            assert not list(server.data.glob("restore-incoming-*"))
            for aside in server.data.glob("replaced-*"):
                report = check(aside)
                assert not report.is_damaged
                shutil.rmtree(aside)
        assert server.stop() == 0
    print(f"seed {SEED}: the new state {sum(found)} times of {ROUNDS}")


def ask_in_vain(server: FaultServer, staged: str) -> None:
    # It is killed meanwhile, before it has heard of it, or before it could answer.
    with contextlib.suppress(ControlError):
        ask(server.data, {"command": "restore", "staged": staged}, DEADLINE_S)


def test_a_server_told_to_stop_while_it_restores_finishes_that_first(tmp_path: Path) -> None:
    with FaultServer(tmp_path) as server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/kept"))
            client.close()
        success("backup", server.data, tmp_path / "b.tar")
        loaded = load(server.data)
        with wire.connect(server.address) as client:
            client.call(rq.create("/later"))
            client.close()
        loaded.machine.zxid = 1 << 32
        staged = stage(server.data, loaded.machine, loaded.index, Disk())
        answers: list[object] = []
        asking = threading.Thread(
            target=lambda: answers.append(
                ask(server.data, {"command": "restore", "staged": staged}, DEADLINE_S)
            )
        )
        asking.start()
        eventually(lambda: "restoring a backup" in server.log_tail(), "the restore to begin")
        assert server.stop() == 0
        asking.join(DEADLINE_S)
        assert answers
        server.start()
        with wire.connect(server.address) as client:
            assert set(read_tree(client)) == {"/kept"}


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "offline"])
def test_a_log_on_a_disk_of_its_own_is_exchanged_there(tmp_path: Path, is_running: bool) -> None:
    place = tmp_path / "fast"
    options = Options(extra=(("dataLogDir", str(place)),))
    with FaultServer(tmp_path, options) as server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/kept"))
            client.close()
        success("backup", server.data, tmp_path / "b.tar")
        with wire.connect(server.address) as client:
            client.call(rq.create("/later"))
            client.close()
        if not is_running:
            assert server.stop() == 0
        said = success("restore", tmp_path / "b.tar", server.data, "--replace")
        if not is_running:
            server.start()
        with wire.connect(server.address) as client:
            assert set(read_tree(client)) == {"/kept"}
            assert client.call(rq.create("/more")).err == Code.OK
        assert list((place / "log").glob("*.log"))
        assert server.stop() == 0
        aside = Path(said.splitlines()[1].partition(" is in ")[2])
        assert {b"/kept", b"/later"} <= set(load(aside).machine.tree.nodes)
        server.start()
        # The disk of the log is away: nobody takes that for an empty log.
        assert server.stop() == 0
        place.rename(tmp_path / "elsewhere")
        with pytest.raises(LogError, match="which is not there"):
            check(server.data)
