"""Curator: the programs in tests/conformance/curator, compiled.

There are two of it: Debian's 5.4, with Apache's Java client 3.8, and that which is fetched with
Apache ZooKeeper 3.9, which is 5.9 with the client of the same version.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.support import apache39
from tests.support.apache import find_java
from tests.support.server import ServerMissingError

SOURCES: Final = sorted((Path(__file__).parents[1] / "conformance" / "curator").glob("*.java"))
SASL_SOURCES: Final = sorted(
    (Path(__file__).parents[1] / "conformance" / "curator_sasl").glob("*.java")
)
CURATOR_54: Final = "5.4"
CURATOR_59: Final = "5.9"

_DEBIAN: Final = tuple(
    Path("/usr/share/java", name)
    for name in ("curator-recipes.jar", "curator-framework.jar", "zookeeper.jar", "slf4j-nop.jar")
)


def compiled(classes: Path, version: str = CURATOR_54, sources: list[Path] = SOURCES) -> list[str]:
    """Compile the programs into a folder; return the command that runs one, without its name.

    Raises ServerMissingError if something is not installed, or not fetched.
    """
    java, javac = find_java(), _find_javac()
    jars = _find_jars() if version == CURATOR_54 else _fetched_jars()
    path = ":".join(map(str, jars))
    # What 5.9 deprecates is still there, and 5.4 has nothing else.
    lint = "-Xlint:all,-path,-try,-classfile" + (",-deprecation" if version != CURATOR_54 else "")
    done = subprocess.run(
        [javac, lint, "-Werror", "-cp", path, "-d", classes, *sources],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    # Nothing is logged: no logging library is in the path, and nobody complains about that.
    options += ["-Dslf4j.internal.verbosity=ERROR"]
    return [java, *options, "-cp", f"{classes}:{path}"]


def _find_javac() -> str:
    javac = shutil.which("javac")
    if javac is None:
        raise ServerMissingError("javac is missing (Debian: apt-get install default-jdk-headless)")
    return javac


def _find_jars() -> tuple[Path, ...]:
    for jar in _DEBIAN:
        if not jar.exists():
            raise ServerMissingError(
                f"{jar} is missing (Debian: apt-get install libcurator-recipes-java)"
            )
    return _DEBIAN


def _fetched_jars() -> tuple[Path, ...]:
    folder = apache39.find_jars()
    return tuple(jar for jar in sorted(folder.glob("*.jar")) if not jar.name.startswith("log4j"))
