"""The log and the snapshots of a server are chosen in one place."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import paddock.server
from paddock.errors import PaddockError
from paddock.log.file.file_log import FileLog
from paddock.log.memory import MemoryLog
from paddock.server.config.config import ServerConfig
from paddock.server.durability.startup import Engine, _new_disk_writer

SERVER = Path(paddock.server.__file__).parent


def test_without_a_data_folder_the_log_is_in_memory() -> None:
    engine = Engine(ServerConfig())
    assert isinstance(engine.open(), MemoryLog)
    assert engine.snapshots is None
    engine.close()


def test_a_data_folder_is_claimed_until_the_engine_is_closed(tmp_path: Path) -> None:
    config = ServerConfig(data_directory=tmp_path / "data")
    Engine.check(config)
    engine = Engine(config)
    with pytest.raises(PaddockError):
        Engine.check(config)
    assert isinstance(engine.open(), FileLog)
    assert engine.snapshots is not None
    engine.close()
    Engine.check(config)
    again = Engine(config)
    again.close()


def test_no_other_module_of_the_server_names_a_log_engine() -> None:
    named = {
        str(path.relative_to(SERVER))
        for path in SERVER.rglob("*.py")
        for engine in ("FileLog", "MemoryLog")
        if engine in path.read_text(encoding="utf-8")
    }
    assert named == {"durability/startup.py"}


@pytest.mark.parametrize(
    ("module", "said"),
    [
        # It is not compiled: nobody expects it.
        (None, []),
        (SimpleNamespace(), ["which is slower: cannot import name 'DiskWriter'"]),
        (SimpleNamespace(DiskWriter=None), ["which is slower: [Errno 24] Too many open files"]),
    ],
    ids=["plain", "broken", "no-room"],
)
def test_a_disk_writer_that_cannot_be_started_is_told_of(
    module: SimpleNamespace | None,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    if module is not None and hasattr(module, "DiskWriter"):
        module.DiskWriter = refuse
    monkeypatch.setitem(sys.modules, "paddock.log.file.disk_writer", module)
    assert _new_disk_writer() is None
    assert len(caplog.messages) == len(said)
    assert all(part in text for part, text in zip(said, caplog.messages, strict=True))
