"""The log and the snapshots of a server are chosen in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

import paddock.server
from paddock.errors import PaddockError
from paddock.log.file.file_log import FileLog
from paddock.log.memory import MemoryLog
from paddock.server.config.config import ServerConfig
from paddock.server.durability.startup import Engine

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
