"""docs/backup.md keeps its word: its commands run in order, and say what it says they do."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.fault.process import FaultServer
from tests.support import requests as rq
from tests.support import wire
from tests.unit.log.folders import FolderBuilder, names
from tests.unit.log.helpers import flip, segments

PAGE = Path(__file__).parents[2] / "docs" / "backup.md"
DEADLINE_S = 60.0


def commands() -> list[tuple[str, str]]:
    """Every command of the page, with what it should say."""
    text = PAGE.read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert {language for language, _ in fences} == {"console"}
    found = []
    for _, block in fences:
        assert block.startswith("$ ")
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            found.append((command, expected))
    return found


def test_the_commands_of_the_page_say_what_it_says(tmp_path: Path) -> None:
    with FolderBuilder(tmp_path / "broken") as builder:
        builder.create(*names(9))
    flip(segments(tmp_path / "broken" / "log")[1], 100)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    with FaultServer(tmp_path) as server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/a", b"data"))
            client.close()
        for command, expected in commands():
            result = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                env=environment,
            )
            assert result.returncode == 0, (command, result.stderr)
            # `...` stands for anything, as in doctest; so does what stands between the lines.
            wanted = "".join(f"...{line}\n" for line in expected.splitlines()) + "..."
            said = result.stdout
            assert doctest.OutputChecker().check_output(wanted, said, doctest.ELLIPSIS), said
        assert server.stop() == 0
