"""docs/how-to/back-up.md keeps its word: its commands run in order, and say what it says."""

import shutil
from pathlib import Path

from tests.fault.stage.process import FaultServer
from tests.support import requests as rq
from tests.support import wire
from tests.support.documents import Page, assert_shown, run
from tests.support.server import Options, free_port
from tests.unit.log.folders import FolderBuilder, names
from tests.unit.log.helpers import flip, segments

PAGE = Page("docs/how-to/back-up.md")


def test_the_commands_of_the_page_say_what_it_says(tmp_path: Path) -> None:
    assert PAGE.languages() == {"console"}
    with FolderBuilder(tmp_path / "broken") as builder:
        builder.create(*names(9))
    with FolderBuilder(tmp_path / "stopped") as builder:
        builder.create(*names(9))
    flip(segments(tmp_path / "broken" / "log")[1], 100)
    port = str(free_port())
    with FaultServer(tmp_path, Options(extra=(("admin.serverPort", port),))) as server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/a", b"data"))
            client.close()
        for block in PAGE.blocks("console"):
            for command, expected in block.commands():
                if "curl" in command and shutil.which("curl") is None:
                    # The same is asked in test_admin_data.py.
                    continue
                said = run(command.replace("8080", port), tmp_path)
                if command.startswith("curl") and said:
                    # An answer over HTTP ends without a line end.
                    said += "\n"
                assert_shown(expected, said)
        assert server.stop() == 0
    # What holds passwords is nobody else's.
    for private in ("authorization", "monday.tar.gz", "tuesday.tar"):
        if shutil.which("curl") is not None or private != "tuesday.tar":
            assert (tmp_path / private).stat().st_mode & 0o077 == 0, private
