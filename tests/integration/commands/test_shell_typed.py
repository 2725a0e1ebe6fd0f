"""`paddock shell` on a terminal, on any service: what needs the service's word does not differ."""

from pathlib import Path

import pytest

from paddock.sync import Client
from tests.support.command import COMMAND
from tests.support.server import Service
from tests.support.terminal import ENTER, TAB, terminal


@pytest.mark.everywhere
def test_paths_are_completed_and_events_leave_the_line_as_it_is(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    client.create(f"{path}/color", b"blue")
    # Of the test's own node, so that paths are short and what others do is not seen.
    command = [*COMMAND, "shell", "-server", f"{service.hosts}{path}"]
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    with terminal(command, columns=200, environment=variables) as seen:
        seen.wait_for("(CONNECTED) 0]")
        seen.type(f"addWatch /{ENTER}")
        seen.wait_for("(CONNECTED) 1]")
        seen.type(f"get /c{TAB}")
        seen.wait_until(lambda: seen.line.endswith("1] get /color"))
        client.set(f"{path}/color", b"grey")
        seen.wait_for("state:SyncConnected type:NodeDataChanged path:/color\n")
        seen.wait_until(lambda: seen.line.endswith("1] get /color"))
        seen.type(ENTER)
        seen.wait_for("1] get /color\ngrey\n")
        seen.type(f"quit{ENTER}")
        assert seen.wait_for_end() == 0
