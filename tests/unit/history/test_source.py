"""Which kind of history is at a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddock.history.apache import ApacheSource
from paddock.history.moment import NOW, Moment
from paddock.history.own import OwnSource
from paddock.history.past import HistoryError, state_at
from paddock.history.source import BackupSource, open_source
from paddock.storage.load import load
from paddock.storage.maintenance.backup import write_backup
from tests.property.dump import dump
from tests.unit.history.folder import PastFolder
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
    assert dump(state_at(source, NOW).machine()) == dump(folder.world.machine)
    assert state_at(source, Moment(zxid=2)).zxid == 2
    with pytest.raises(HistoryError, match="not in this backup"):
        state_at(source, Moment(zxid=1))
    with pytest.raises(HistoryError, match="ends with zxid 0x2"):
        state_at(source, Moment(zxid=3))
