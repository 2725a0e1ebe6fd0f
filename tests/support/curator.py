"""Curator: the programs in tests/conformance/curator, compiled."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.support.apache import find_java
from tests.support.server import ServerMissingError

SOURCES: Final = sorted((Path(__file__).parents[1] / "conformance" / "curator").glob("*.java"))
JARS: Final = tuple(
    Path("/usr/share/java", name)
    for name in ("curator-recipes.jar", "curator-framework.jar", "zookeeper.jar", "slf4j-nop.jar")
)


def compiled(classes: Path) -> list[str]:
    """Compile the programs into a folder; give the command that runs one, without its name.

    Raises ServerMissingError if something is not installed.
    """
    java, javac = find_java(), _find_javac()
    path = ":".join(map(str, JARS))
    lint = "-Xlint:all,-path,-try"
    done = subprocess.run(
        [javac, lint, "-Werror", "-cp", path, "-d", classes, *SOURCES],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [java, *options, "-cp", f"{classes}:{path}"]


def _find_javac() -> str:
    """Give the compiler, if all that the programs need is there."""
    javac = shutil.which("javac")
    if javac is None:
        raise ServerMissingError("javac is missing (Debian: apt-get install default-jdk-headless)")
    for jar in JARS:
        if not jar.exists():
            raise ServerMissingError(
                f"{jar} is missing (Debian: apt-get install libcurator-recipes-java)"
            )
    return javac
