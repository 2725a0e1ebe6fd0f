"""The dashboard as a child of a server: what it needs, and how it is started."""

import importlib.util
import sys
from pathlib import Path

import pytest

from paddock.cli import dashboard_process
from paddock.cli.dashboard_process import DashboardProcess, check_installed
from paddock.cli.output import CannotBeDone


def test_without_its_packages_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_installed()
    found = importlib.util.find_spec
    monkeypatch.setattr(
        dashboard_process, "find_spec", lambda name: None if name == "uvicorn" else found(name)
    )
    with pytest.raises(
        CannotBeDone, match=r"needs uvicorn.* pip install 'paddock-zk\[dashboard\]'"
    ):
        check_installed()


def test_it_is_told_where_the_server_and_its_history_are() -> None:
    command = DashboardProcess("127.0.0.1:2181", 8000, Path("/data"))._command
    assert command[0] == sys.executable
    assert command[command.index("--server") + 1] == "127.0.0.1:2181"
    assert command[command.index("--port") + 1] == "8000"
    assert command[command.index("--data") + 1] == "/data"
    assert "--data" not in DashboardProcess("127.0.0.1:2181", 8000, None)._command
