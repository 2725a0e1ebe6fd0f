"""Curator: the programs in tests/conformance/curator, compiled.

There are two of it: Debian's, 5.4 in Debian 12 and 5.7 in Debian 13, with Debian's client of Apache
ZooKeeper; and that which is fetched with Apache ZooKeeper 3.9.5, which is 5.9 with that client.
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
DEBIANS: Final = "debian"
FETCHED: Final = "fetched"

_DEBIAN: Final = tuple(
    Path("/usr/share/java", name)
    for name in ("curator-recipes.jar", "curator-framework.jar", "zookeeper.jar", "slf4j-nop.jar")
)


def compiled(classes: Path, version: str = DEBIANS, sources: list[Path] = SOURCES) -> list[str]:
    """Compile the programs into a folder; return the command that runs one, without its name.

    Raises ServerMissingError if something is not installed, or not fetched.
    """
    java, javac = find_java(), _find_javac()
    jars = _find_jars() if version == DEBIANS else _fetched_jars()
    path = ":".join(map(str, jars))
    # What 5.9 deprecates is still there, and the older ones have nothing else.
    lint = "-Xlint:all,-path,-try,-classfile" + (",-deprecation" if version != DEBIANS else "")
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
