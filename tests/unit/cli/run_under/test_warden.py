"""How the last of a command is ended."""

import subprocess
import sys

import pytest

from paddock.cli.run_under import warden


def test_who_is_gone_already_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # As when SIGCHLD is ignored: the kernel takes note of a child's end in our place.
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    found = iter([[gone.pid], []])
    monkeypatch.setattr(warden, "children", lambda: next(found))
    warden.end_children()
    assert next(found, None) is None
