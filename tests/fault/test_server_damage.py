"""Damaged files under a server: it serves what was acknowledged, or nothing and says why."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.file.segment import RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentReader
from paddock.log.file.segments import begin_log
from paddock.log.interface import LogCorruptError
from paddock.state.machine import StateMachine
from paddock.storage.snapshots import SnapshotStore
from tests.fault.stage.process import FaultServer, Tree, eventually, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import paddock, refusal, success
from tests.support.logs import recover_state
from tests.support.records import Code, Mode
from tests.support.server import Options
from tests.unit.log.helpers import flip

LAST = "/last"


@dataclass(frozen=True, slots=True)
class Case:
    """The data folder of a killed server, and what clients knew of it."""

    folder: Path
    #: The tree before the last write, and that write's session with its password.
    tree: Tree
    client: wire.Client
    last_zxid: int

    def copy(self, name: str) -> FaultServer:
        """Return a server with its own copy of the data, to be damaged before it starts."""
        folder = self.folder.parent / name
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("control"))
        return FaultServer(folder)

    def segment(self) -> tuple[Path, SegmentReader, list[int]]:
        """Read the only segment; return also where each record begins."""
        (path,) = (self.folder / "data" / "log").glob("*.log")
        reader = SegmentReader(path.read_bytes())
        offsets = [reader.last_offset for _ in reader]
        return path, reader, offsets


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A server that was killed right after its last write, which is a record of its own."""
    folder = tmp_path_factory.mktemp("killed") / "server"
    folder.mkdir()
    with FaultServer(folder) as server:
        client = wire.connect(server.address)
        for number in range(10):
            assert client.call(rq.create(f"/n{number}", b"x" * number)).err == Code.OK
        client.call(rq.create("/e", flags=Mode.EPHEMERAL))
        client.call(rq.multi(rq.create("/m"), rq.create("/m/a"), rq.set_data("/n1", b"multi")))
        tree = read_tree(client)
        zxid = client.call(rq.create(LAST, b"the last write")).zxid
        server.kill()
        client.disconnect()
    case = Case(folder, tree, client, zxid)
    # Zeros that no record needs make every copy slow.
    path, reader, _ = case.segment()
    with path.open("r+b") as file:
        file.truncate(reader.end_offset + 4096)
    return case


def recovered(folder: Path) -> StateMachine:
    store = SnapshotStore(folder / "data" / "snapshots")
    with contextlib.closing(FileLog(folder / "data" / "log")) as log:
        return recover_state(log, store).machine


def paths(machine: StateMachine) -> set[str]:
    return {path.decode() for path in machine.tree.nodes}


def test_last_record_torn_at_any_byte_leaves_everything_before_it(killed: Case) -> None:
    path, reader, _ = killed.segment()
    whole = path.read_bytes()
    server = killed.copy("cut")
    damaged = server.segments[0]
    for cut in range(reader.last_offset, reader.end_offset):
        damaged.write_bytes(whole[:cut] + bytes(len(whole) - cut))
        machine = recovered(server.folder)
        assert machine.zxid == killed.last_zxid - 1
        assert paths(machine) >= set(killed.tree)
        assert LAST not in paths(machine)
        assert list(machine.sessions.by_id) == [killed.client.session_id]
    damaged.write_bytes(whole)
    assert LAST in paths(recovered(server.folder))


def test_server_starts_on_a_torn_log_with_everything_before_the_tear_and_says_so(
    killed: Case,
) -> None:
    path, reader, _ = killed.segment()
    whole = path.read_bytes()
    middle = (reader.last_offset + reader.end_offset) // 2
    for cut in (reader.last_offset + 1, middle, reader.end_offset - 1):
        server = killed.copy(f"torn-{cut}")
        torn = server.segments[0]
        torn.write_bytes(whole[:cut] + bytes(len(whole) - cut))
        dropped = len(whole[reader.last_offset : cut].rstrip(b"\0"))
        with server, wire.reattach(server.address, killed.client) as client:
            assert client.session_id == killed.client.session_id
            assert read_tree(client) == killed.tree
            assert client.call(rq.create(LAST, b"again")).err == Code.OK
        (line,) = (line for line in server.log.read_text().splitlines() if "torn tail" in line)
        assert "WARNING" in line
        where = f"{torn}: offset {reader.last_offset}: dropped a torn tail of {dropped} bytes"
        assert where in line
        # It is told once: nothing is left of it.
        with server:
            pass
        assert server.log.read_text().count("torn tail") == 1


def test_server_refuses_a_log_that_was_cut_short_anywhere(killed: Case) -> None:
    path, reader, offsets = killed.segment()
    whole = path.read_bytes()
    server = killed.copy("short")
    damaged = server.segments[0]
    within = range(offsets[-2], reader.end_offset + 1)
    for cut in (0, SEGMENT_HEADER_BYTES, *offsets, *within):
        damaged.write_bytes(whole[:cut])
        with pytest.raises(LogCorruptError, match="short"):
            recovered(server.folder)
        assert damaged.read_bytes() == whole[:cut]


def test_server_on_a_log_that_was_cut_short_says_how_to_go_on_and_that_is_so(killed: Case) -> None:
    _, _, offsets = killed.segment()
    # Exactly behind a record: nothing that is left looks wrong.
    server = killed.copy("short-started")
    damaged = server.segments[0]
    with damaged.open("r+b") as file:
        file.truncate(offsets[-1])
    line = server.refusal()
    assert line.startswith(f"{damaged}: offset {offsets[-1]}: the file was cut short")
    assert "paddock fsck" in line
    (server.folder.parent / "short-repaired").mkdir()
    copy = FaultServer(server.folder.parent / "short-repaired")
    assert paddock("fsck", server.data, "--repair", copy.data).returncode == 1
    with copy, wire.reattach(copy.address, killed.client, killed.last_zxid) as client:
        assert read_tree(client) == killed.tree


def test_bit_flipped_in_the_last_record_stops_the_recovery(killed: Case) -> None:
    path, reader, _ = killed.segment()
    whole = path.read_bytes()
    server = killed.copy("last-bit")
    damaged = server.segments[0]
    told = 0
    for bit in range(8 * (reader.end_offset - reader.last_offset)):
        data = bytearray(whole)
        data[reader.last_offset + bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(data)
        with contextlib.suppress(LogCorruptError):
            recovered(server.folder)
            told += 1
    # Some lengths reach into the zeros behind it, as if the rest had not arrived: that is told.
    assert told <= 10


def test_flipped_byte_in_any_earlier_record_stops_the_recovery(killed: Case) -> None:
    server = killed.copy("flipped")
    path = server.segments[0]
    whole = path.read_bytes()
    _, _, offsets = killed.segment()
    begin, end = offsets[len(offsets) // 2 : len(offsets) // 2 + 2]
    for offset in range(begin, end):
        path.write_bytes(whole)
        flip(path, offset)
        with pytest.raises(LogCorruptError, match=f"offset {begin}: record"):
            recovered(server.folder)


@pytest.mark.parametrize("place", ["header", "first record", "middle", "last but one"])
def test_server_refuses_a_damaged_log_in_one_line_with_file_and_offset(
    killed: Case, place: str
) -> None:
    _, _, offsets = killed.segment()
    record = {"header": 0, "first record": offsets[0], "middle": offsets[6]}.get(place, offsets[-2])
    within = 10 if place == "header" else RECORD_HEADER_BYTES + 5
    assert offsets[0] == SEGMENT_HEADER_BYTES
    server = killed.copy(f"damaged-{record}")
    damaged = server.segments[0]
    flip(damaged, record + within)
    before = damaged.read_bytes()
    line = server.refusal()
    assert line.startswith(f"{damaged}: offset {record}: ")
    assert "paddock fsck" in line
    assert damaged.read_bytes() == before
    (server.folder.parent / f"repaired-{record}").mkdir()
    copy = FaultServer(server.folder.parent / f"repaired-{record}")
    if place == "first record":
        assert "nothing can be saved" in refusal(
            "fsck", server.data, "--repair", copy.data, status=1
        )
        return
    result = paddock("fsck", server.data, "--repair", copy.data)
    assert (result.returncode, result.stderr) == (1, b"")
    assert f"damage: {damaged}, byte {record}: ".encode() in result.stdout
    with copy, wire.reattach(copy.address, killed.client, killed.last_zxid) as client:
        tree = read_tree(client)
        assert client.session_id == killed.client.session_id
        if place == "header":
            assert set(tree) == {*killed.tree, LAST}
        else:
            # The last two records are a multi and the last write.
            lost = {"/m", "/m/a"} if place == "last but one" else set(killed.tree) - set(tree)
            assert set(tree) == set(killed.tree) - lost
            assert lost
            assert LAST not in tree
        assert client.call(rq.create("/again")).err == Code.OK
        client.close()
    assert success("fsck", copy.data).endswith("fine\n")


@dataclass(frozen=True, slots=True)
class Snapshots:
    """A stopped server with several snapshots, the log still whole, and what it served."""

    folder: Path
    tree: Tree
    zxid: int

    def copy(self, name: str) -> FaultServer:
        folder = self.folder.parent / name
        shutil.copytree(self.folder, folder)
        return FaultServer(folder)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    folder = tmp_path_factory.mktemp("stopped") / "server"
    folder.mkdir()
    options = Options(extra=(("autopurge.purgeInterval", "0"),))
    with FaultServer(folder, options) as server:
        for number in range(3):
            with wire.connect(server.address) as client:
                assert client.call(rq.create(f"/s{number}", b"x")).err == Code.OK
                client.close()
            assert server.stop() == 0
            server.start()
        with wire.connect(server.address) as client:
            tree = read_tree(client)
            client.close()
        assert server.stop() == 0
        assert len(server.snapshots) >= 3
        (segment,) = server.segments
        with segment.open("r+b") as file:
            file.truncate(len(segment.read_bytes().rstrip(b"\0")) + 4096)
    return Snapshots(folder, tree, recovered(folder).zxid)


def test_byte_flipped_anywhere_in_the_newest_snapshot_costs_nothing(stopped: Snapshots) -> None:
    server = stopped.copy("snapshot-bytes")
    newest = server.snapshots[-1]
    whole = newest.read_bytes()
    for offset in range(len(whole)):
        newest.write_bytes(whole)
        flip(newest, offset)
        machine = recovered(server.folder)
        assert machine.zxid == stopped.zxid
        assert paths(machine) >= set(stopped.tree)


@pytest.mark.parametrize("place", ["newest", "all"])
def test_fsck_names_every_damaged_snapshot_and_loses_nothing(
    stopped: Snapshots, place: str
) -> None:
    server = stopped.copy(f"fsck-{place}")
    damaged = server.snapshots[-1:] if place == "newest" else server.snapshots
    for path in damaged:
        flip(path, path.stat().st_size // 2)
    result = paddock("fsck", server.data)
    assert result.returncode == 1
    said = result.stdout.decode()
    assert all(f"damage: {path}, byte " in said for path in damaged)
    assert f"zxid 0x{stopped.zxid:x}, " in said


@pytest.mark.parametrize("damaged", [1, 2, 100], ids=["newest", "newest two", "all"])
def test_server_starts_from_an_older_snapshot_and_the_log(stopped: Snapshots, damaged: int) -> None:
    server = stopped.copy(f"snapshots-{damaged}")
    for path in server.snapshots[-damaged:]:
        flip(path, path.stat().st_size // 2)
    with server, wire.connect(server.address) as client:
        assert read_tree(client) == stopped.tree
        assert client.call(rq.exists("/")).zxid > stopped.zxid
        assert "is damaged and passed over" in server.log_tail()
        assert server.stop() == 0
        # The stop wrote a good one.
        for segment in server.segments:
            segment.unlink()
        begin_log(server.data / "log", int(server.snapshots[-1].stem), Disk())
        server.start()
        with wire.connect(server.address) as again:
            assert read_tree(again) == stopped.tree


def test_server_refuses_when_the_log_ends_before_a_damaged_snapshot(stopped: Snapshots) -> None:
    server = stopped.copy("snapshots-without-log")
    newest = server.snapshots[-1]
    flip(newest, newest.stat().st_size // 2)
    for segment in server.segments:
        segment.unlink()
    line = server.refusal()
    assert line.startswith(f"{newest}: ")
    assert "the log ends at record " in line
    assert "paddock fsck" in line
    assert paddock("fsck", server.data).returncode == 1


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_server_refuses_to_start_without_the_log_behind_a_whole_snapshot(
    stopped: Snapshots, is_elsewhere: bool
) -> None:
    server = stopped.copy(f"no-log-{is_elsewhere}")
    if is_elsewhere:
        # A disk that was exchanged for an empty one.
        place = server.folder / "disk"
        place.mkdir()
        (server.data / "log").rename(place / "old")
        (place / "log").mkdir()
        (server.data / "log").symlink_to(place / "log")
    else:
        for segment in server.segments:
            segment.unlink()
    line = server.refusal()
    assert line.startswith("the log ends with record 0, but there is a snapshot at ")
    assert "paddock fsck" in line
    assert "ends with record 0" in refusal("backup", server.data, server.folder / "b", status=1)
    assert paddock("fsck", server.data).returncode == 1


def test_bad_last_record_after_a_clean_stop_is_damage_that_is_told(stopped: Snapshots) -> None:
    server = stopped.copy("stopped-last")
    (path,) = server.segments
    reader = SegmentReader(path.read_bytes())
    assert list(reader)
    whole = path.read_bytes()
    flip(path, reader.last_offset + RECORD_HEADER_BYTES + 3)
    assert server.refusal().startswith(f"{path}: offset {reader.last_offset}: record")
    cut = reader.end_offset - 3
    path.write_bytes(whole[:cut] + bytes(len(whole) - cut))
    line = server.refusal()
    assert line.startswith(f"{path}: offset {reader.last_offset}: record")
    assert "there is a snapshot at" in line
    assert "whole once" in line
    assert paddock("fsck", server.data).returncode == 1


def test_server_refuses_when_no_snapshot_is_whole_and_the_log_is_purged(tmp_path: Path) -> None:
    options = Options(extra=(("snapCount", "20"), ("paddock.history", "off")))
    with FaultServer(tmp_path, options) as server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/a"))

            def is_purged() -> bool:
                client.calls(*(rq.set_data("/a", bytes(100_000)) for _ in range(50)))
                return int(server.segments[0].stem) > 1

            eventually(is_purged, "the first segment to be purged")
        assert server.stop() == 0
        for path in server.snapshots:
            flip(path, path.stat().st_size // 2)
        line = server.refusal()
        assert line.startswith(f"{server.data / 'log'}: the log begins with record ")
        assert "no whole snapshot" in line
        assert "paddock fsck" in line
