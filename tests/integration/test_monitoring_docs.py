"""docs/how-to/monitor.md keeps its word: its commands run, and what it names is there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from tests.support import wire
from tests.support.command import serving
from tests.support.documents import Page, run
from tests.support.paddock_cluster import PaddockCluster
from tests.support.server import free_port

PAGE = Page("docs/how-to/monitor.md")
BLOCKS = [block.text for block in PAGE.blocks("sh")]
SERVES = [block for block in BLOCKS if block.startswith("paddock serve")]
OF_ONE_SERVER, OF_SEVERAL = PAGE.text.split("### Several servers")
ASKS = [block for block in BLOCKS if not block.startswith("paddock serve")]


@pytest.fixture
def ports() -> dict[str, str]:
    return {"2181": str(free_port()), "8080": str(free_port())}


@pytest.fixture
def server(ports: dict[str, str]) -> Iterator[tuple[str, int]]:
    """One server with the options of all blocks."""
    options = {option for block in SERVES for option in re.findall(r"--\S+(?: [^-\s]\S*)?", block)}
    words = [word for option in sorted(options) for word in shlex.split(option)]
    words = [ports.get(word, word) for word in words]
    with serving(*words) as running:
        yield running.address


def test_every_block_is_known() -> None:
    assert PAGE.languages() == {"sh", "yaml"}
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
            answers.append(connection.getresponse().read().decode())
            connection.close()
        else:
            answers.append(run(block))
    assert answers[0].startswith("zk_version\t")
    assert '"znode_count" : ' in answers[1]


COMPOSE, KUBERNETES = (block.text for block in PAGE.blocks("yaml"))


@pytest.mark.parametrize(
    ("text", "pattern", "names"),
    [
        (COMPOSE, r'(PADDOCK_\w+): "(.*)"', ["paddock"]),
        (
            KUBERNETES,
            r'name: (PADDOCK_\w+)\n +value: "(.*)"',
            ["paddock", "paddock.tools", "paddock.tools.svc", "paddock.tools.svc.cluster.local"],
        ),
    ],
    ids=["compose", "kubernetes"],
)
def test_a_container_is_asked_by_the_names_it_was_told(
    text: str, pattern: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = dict(re.findall(pattern, text))
    assert len(settings) == text.count("PADDOCK_") == 3
    port = free_port()
    for name, value in settings.items():
        monkeypatch.setenv(name, value.replace("8080", str(port)))
    with serving("--memory", "--port", "0"):
        answers = {}
        for name in (*names, "elsewhere"):
            connection = HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/commands/ruok", headers={"Host": f"{name}:{port}"})
            answers[name] = connection.getresponse().status
            connection.close()
    assert answers == {**dict.fromkeys(names, 200), "elsewhere": 403}


def metrics_named_in(text: str) -> list[str]:
    return re.findall(r"`(zk_\w+|…_\w+)`", text)


def test_the_figures_that_are_named_are_there(server: tuple[str, int]) -> None:
    rows = wire.four_letter_word(server, "mntr")
    named = metrics_named_in(OF_ONE_SERVER)
    assert len(named) > 15
    for name in named:
        assert name.removeprefix("…") in rows, name


@pytest.mark.judge
@pytest.mark.cluster
def test_the_figures_of_several_servers_are_there(shared_cluster: PaddockCluster) -> None:
    rows = wire.four_letter_word(shared_cluster.leader().address, "mntr")
    named = metrics_named_in(OF_SEVERAL)
    assert len(named) > 10
    for name in named:
        assert name.removeprefix("…") in rows, name


def test_every_word_is_in_the_table() -> None:
    table = PAGE.text[PAGE.text.index("| word |") : PAGE.text.index("may be long")]
    words = set(re.findall(r"`([a-z]{4})`", table)) - {"imok"}
    every = "conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat stmk wchc wchp"
    assert words == {*every.split(), "wchs"}
