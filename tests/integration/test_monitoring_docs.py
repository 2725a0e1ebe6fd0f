"""docs/monitoring.md keeps its word: its commands run, and what it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support import wire
from tests.support.server import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
SERVES = [block for block in BLOCKS if block.startswith("paddock serve")]
ASKS = [block for block in BLOCKS if not block.startswith("paddock serve")]


@pytest.fixture
def ports() -> dict[str, str]:
    return {"2181": str(free_port()), "8080": str(free_port())}


@pytest.fixture
def server(ports: dict[str, str]) -> Iterator[tuple[str, int]]:
    """One server with the options of all blocks."""
    options = {option for block in SERVES for option in re.findall(r"--\S+(?: [^-\s]\S*)?", block)}
    words = [word for option in sorted(options) for word in option.replace("'", "").split()]
    words = [ports.get(word, word) for word in words]
    command = [sys.executable, "-m", "paddock", "serve", *words]
    address = ("127.0.0.1", int(ports["2181"]))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"Paddock ")
            yield address
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_every_block_is_known() -> None:
    assert (len(SERVES), len(ASKS)) == (2, 2)


def test_what_is_asked_is_answered(server: tuple[str, int], ports: dict[str, str]) -> None:
    answers = []
    for block in ASKS:
        for port, real in ports.items():
            block = block.replace(port, real)
        # The machine may have no curl; what it would get is what matters.
        if block.startswith("curl"):
            host, path = block.split()[1].removeprefix("http://").split("/", 1)
            name, port = host.split(":")
            connection = HTTPConnection(name, int(port), timeout=20)
            connection.request("GET", f"/{path}")
            answers.append(connection.getresponse().read())
            connection.close()
        else:
            answers.append(subprocess.run(block, shell=True, capture_output=True).stdout)
    assert answers[0].startswith(b"zk_version\t")
    assert b'"znode_count" : ' in answers[1]


def test_the_figures_that_are_named_are_there(server: tuple[str, int]) -> None:
    rows = wire.four_letter_word(server, "mntr")
    named = re.findall(r"`(zk_\w+|…_\w+)`", PAGE)
    assert len(named) > 15
    for name in named:
        assert name.removeprefix("…") in rows, name


def test_every_word_is_in_the_table() -> None:
    table = PAGE[PAGE.index("| word |") : PAGE.index("may be long")]
    words = set(re.findall(r"`([a-z]{4})`", table)) - {"imok"}
    every = "conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat stmk wchc wchp"
    assert words == {*every.split(), "wchs"}
