"""Curator's recipes and Apache's Java client: a program of named checks, a test for each of them.

The program is in the folder `curator` beside this file. It is compiled once a run, and runs once
for each server, on a server of its own because it asks for a restart.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.conftest import SERVERS
from tests.support import named_checks
from tests.support.apache import find_java
from tests.support.server import Server, ServerMissingError

SOURCES: Final = sorted(Path(__file__).with_name("curator").glob("*.java"))
JARS: Final = tuple(
    Path("/usr/share/java", name)
    for name in ("curator-recipes.jar", "curator-framework.jar", "zookeeper.jar", "slf4j-nop.jar")
)

NAMES: Final = [
    f"{source.stem}.{name}"
    for source in SOURCES
    for name in named_checks.names([source], r"@Check\b[^{;]*?\bvoid (\w+)\(")
]


def find_javac() -> str:
    """Return the compiler, if all that the program needs is there."""
    javac = shutil.which("javac")
    if javac is None:
        raise ServerMissingError("javac is missing (Debian: apt-get install default-jdk-headless)")
    for jar in JARS:
        if not jar.exists():
            raise ServerMissingError(
                f"{jar} is missing (Debian: apt-get install libcurator-recipes-java)"
            )
    return javac


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Compile the program; return the command that runs it, without the server's address."""
    try:
        java, javac = find_java(), find_javac()
    except ServerMissingError as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    classes = tmp_path_factory.mktemp("curator")
    path = ":".join(map(str, JARS))
    lint = "-Xlint:all,-path,-try"
    compiled = subprocess.run(
        [javac, lint, "-Werror", "-cp", path, "-d", classes, *SOURCES],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert compiled.returncode == 0, compiled.stdout
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [java, *options, "-cp", f"{classes}:{path}", "Checks"]


@pytest.fixture(scope="module")
def report(program: list[str], server: Server) -> named_checks.Report:
    """What the program said about a server of this kind."""
    with SERVERS[server.name]() as own:
        command = [*program, f"{own.host}:{own.port}"]
        return named_checks.run(command, {"restart the server": own.restart})


@pytest.mark.judge
@pytest.mark.parametrize("name", NAMES)
def test_curator_finds_what_it_expects(report: named_checks.Report, name: str) -> None:
    report.demand(name)


@pytest.mark.judge
def test_every_check_of_the_program_is_a_test(report: named_checks.Report) -> None:
    assert set(report.outcomes) <= set(NAMES)
