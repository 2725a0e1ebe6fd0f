"""Which kind of history is at a path."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddock.history.apache import ApacheSource
from paddock.history.moment import BEGINNING, NOW, Moment
from paddock.history.own import OwnSource
from paddock.history.past import OPENED, Gap, HistoryError, Step, state_at
from paddock.history.source import BackupSource, open_source
from paddock.history.telling import Below, NodeChange, changes
from paddock.storage.load import load
from paddock.storage.maintenance.backup import write_backup
from paddock.storage.maintenance.history_backup import history_files
from paddock.storage.replay import OtherStateError
from paddock.testing.virtual import in_virtual_time
from tests.property.dump import dump
from tests.unit.history.folder import PastFolder
from tests.unit.server.cluster.stage import T, connect, staged
from tests.unit.upgrade.files import ApacheFolder


def test_each_kind_is_known_by_what_is_there(tmp_path: Path) -> None:
    with PastFolder(tmp_path / "own"):
        assert isinstance(open_source(tmp_path / "own"), OwnSource)
    ApacheFolder(tmp_path / "apache")
    assert isinstance(open_source(tmp_path / "apache"), ApacheSource)
    (tmp_path / "backup").write_bytes(b"")
    assert isinstance(open_source(tmp_path / "backup"), BackupSource)
    with pytest.raises(HistoryError, match="no such folder or file"):
        open_source(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(HistoryError, match="is no data folder, neither of Paddock nor of Apache"):
        open_source(tmp_path / "empty")


def test_a_backup_has_the_state_of_one_moment(tmp_path: Path) -> None:
    with PastFolder(tmp_path / "data") as folder:
        client = folder.world.open()
        client.create(b"/a", b"1")
        folder.snapshot()
    with (tmp_path / "backup").open("wb") as file:
        loaded = load(tmp_path / "data")
        write_backup(file, loaded, compress=True, version="1", time_ms=10**12, near=tmp_path)
    source = open_source(tmp_path / "backup")
    assert "has no events" in source.unknown
    assert open_source(tmp_path / "data").unknown == ""
    assert dump(state_at(source, NOW).machine()) == dump(folder.world.machine)
    assert state_at(source, Moment(zxid=2)).zxid == 2
    with pytest.raises(HistoryError, match="not in this backup"):
        state_at(source, Moment(zxid=1))
    with pytest.raises(HistoryError, match="ends with zxid 0x2"):
        state_at(source, Moment(zxid=3))


@in_virtual_time
async def test_a_folder_of_a_server_that_shares_its_log_has_its_past(tmp_path: Path) -> None:
    async with staged("other") as stage:
        await stage.start("a", tmp_path)
        async with connect(stage, "other") as client:
            czxid = (await client.create_with_stat("/n", b"0")).stat.czxid
            stats = [await client.set("/n", b"%d" % number) for number in range(1, 20)]
        await stage.settle()
        await stage.servers.pop("a").stop()
    source = open_source(tmp_path)
    for number, zxid in enumerate([czxid, *(stat.mzxid for stat in stats)]):
        node = state_at(source, Moment(zxid=zxid)).nodes.get(b"/n")
        assert node is not None
        assert node.data == b"%d" % number
    told = [
        one.after.data
        for one in changes(source.begin(BEGINNING), NOW, Below(b"/n"))
        if isinstance(one, NodeChange) and one.after is not None
    ]
    assert told == [b"%d" % number for number in range(20)]
    # Which server opened a session, another one knows as well: it was the first that joined.
    opened = {
        one.server
        for one in source.begin(BEGINNING).steps(NOW)
        if isinstance(one, Step) and one.session_change and one.session_change[1] == OPENED
    }
    assert opened == {1}


@in_virtual_time
async def test_a_server_that_was_outvoted_leaves_a_gap_in_the_history_of_others(
    tmp_path: Path,
) -> None:
    async with staged("b", "c") as stage:
        await stage.start("a", tmp_path)
        async with connect(stage, "b") as client:
            first = (await client.create_with_stat("/n", b"0")).stat.czxid
            await stage.settle()
            tree = stage.core(stage.servers["c"]).machine.tree
            node = tree.nodes[b"/n"]
            assert node is not None
            # By a fault of its machine.
            tree.set_silently(b"/n", node, b"damaged")
            await client.create("/m")
            await asyncio.sleep(T)
            assert isinstance(stage.lost.pop("c"), OtherStateError)
            await stage.kill("c")
            hidden = (await client.set("/n", b"1")).mzxid
            await client.set("/n", b"2")
            await stage.settle()
            await stage.servers["a"].take_snapshot()
            last = (await client.set("/n", b"3")).mzxid
            await stage.settle()
        await stage.servers.pop("a").stop()
    source = open_source(tmp_path)
    found = {
        zxid: then.data
        for zxid in (first, last)
        if (then := state_at(source, Moment(zxid=zxid)).nodes.get(b"/n")) is not None
    }
    assert found == {first: b"0", last: b"3"}
    with pytest.raises(HistoryError, match="its server had another state at"):
        state_at(source, Moment(zxid=hidden))
    (gap,) = (one for one in source.begin(BEGINNING).steps(NOW) if isinstance(one, Gap))
    assert gap.next_zxid is not None
    assert first <= gap.zxid < hidden < gap.next_zxid < last


def test_a_backup_with_history_reaches_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with PastFolder(data) as folder:
        client = folder.world.open()
        client.create(b"/a", b"1")
        folder.snapshot()
        client.set(b"/a", b"2")
    loaded = load(data)
    with (tmp_path / "backup").open("wb") as file:
        write_backup(
            file,
            loaded,
            compress=True,
            version="1",
            time_ms=10**12,
            near=tmp_path,
            history=history_files(data, loaded.index),
        )
    source = open_source(tmp_path / "backup")
    for zxid, expected in ((1, None), (2, b"1"), (3, b"2")):
        node = state_at(source, Moment(zxid=zxid)).nodes.get(b"/a")
        assert (None if node is None else node.data) == expected
