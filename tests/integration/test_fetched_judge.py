"""`tools/judges.sh zookeeper-3.9`: what is there is not fetched again, and what fails says why.

Nothing is downloaded here: pip is told that there is no index.
"""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "judges.sh"
FOLDER = "paddock/zookeeper-3.9.5"


def run_script(cache: Path) -> subprocess.CompletedProcess[str]:
    nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(cache), "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(
        [SCRIPT, "zookeeper-3.9"],
        capture_output=True,
        text=True,
        env={**os.environ, **nowhere, "XDG_CACHE_HOME": str(cache)},
    )


def fill(cache: Path, version: str) -> Path:
    """Put something in place of each jar; the server's says its version."""
    folder = cache / FOLDER
    folder.mkdir(parents=True)
    (listed,) = re.findall(r'^jars="([^"]+)"', SCRIPT.read_text(), re.MULTILINE)
    for name in listed.split():
        (folder / f"{name}.jar").write_bytes(b"a jar")
    with zipfile.ZipFile(folder / "zookeeper-3.9.5.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", f"Implementation-Version: {version}\r\n")
    return folder


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    fill(tmp_path, "3.9.5")
    done = run_script(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_before_it_is_fetched_its_size_is_told_and_a_failure_says_why(tmp_path: Path) -> None:
    done = run_script(tmp_path)
    assert done.returncode == 1
    assert "450 MB" in done.stdout
    assert str(tmp_path / FOLDER) in done.stdout
    assert "judges: pip could not download PySpark" in done.stderr
    assert "No matching distribution found" in done.stderr
    assert list((tmp_path / "paddock").iterdir()) == []


@pytest.mark.parametrize("flaw", ["another version", "a jar is missing", "a jar is damaged"])
def test_what_is_not_whole_is_fetched_again(tmp_path: Path, flaw: str) -> None:
    folder = fill(tmp_path, "3.9.4" if flaw == "another version" else "3.9.5")
    if flaw == "a jar is missing":
        (folder / "zookeeper-jute-3.9.5.jar").unlink()
    elif flaw == "a jar is damaged":
        (folder / "zookeeper-3.9.5.jar").write_bytes(b"half of it")
    done = run_script(tmp_path)
    assert done.returncode == 1
    assert "judges: fetching Apache ZooKeeper 3.9.5" in done.stdout
