"""docs/how-to/monitor.md keeps its word: its commands run, and what it names is there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import ssl
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest
import yaml

from tests.support import certificates, wire
from tests.support.command import serving
from tests.support.documents import ROOT, Page, run
from tests.support.judges import skipped_where_missing
from tests.support.paddock_cluster import PaddockCluster
from tests.support.prometheus import promtool
from tests.support.server import free_port

PAGE = Page("docs/how-to/monitor.md")
BLOCKS = [block.text for block in PAGE.blocks("sh")]
SERVES = [
    block for block in BLOCKS if block.startswith("paddock serve") and "password" not in block
]
OF_ONE_SERVER, OF_SEVERAL = PAGE.text.split("### Several servers")
ASKS = [
    block
    for block in BLOCKS
    if not block.startswith("paddock serve") and "admin-password" not in block
]


@pytest.fixture
def ports() -> dict[str, str]:
    return {one: str(free_port()) for one in ("2181", "7000", "8080")}


@pytest.fixture
def server(ports: dict[str, str]) -> Iterator[tuple[str, int]]:
    """One server with the options of all blocks."""
    options = {option for block in SERVES for option in re.findall(r"--\S+(?: [^-\s]\S*)?", block)}
    words = [word for option in sorted(options) for word in shlex.split(option)]
    words = [ports.get(word, word) for word in words]
    with serving(*words) as running:
        yield running.address


def test_every_block_is_known() -> None:
    assert PAGE.languages() == {"sh", "yaml", "properties", "haproxy"}
    assert (len(SERVES), len(ASKS)) == (3, 3)


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
    assert "\nznode_count " in answers[0]
    assert answers[1].startswith("zk_version\t")
    assert '"znode_count" : ' in answers[2]


SCRAPES, PROBES, COMPOSE, KUBERNETES = (block.text for block in PAGE.blocks("yaml"))


def get(path: str, port: int, **headers: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def test_the_keys_of_a_zoo_cfg_open_the_port(tmp_path: Path) -> None:
    port = free_port()
    (block,) = PAGE.blocks("properties")
    file = tmp_path / "zoo.cfg"
    file.write_text(block.text.replace("7000", str(port)))
    with serving("--memory", "--port", "0", "--config", file) as running:
        status, page = get("/metrics", port)
        assert status == 200
        assert b"\nprocess_resident_memory_bytes " in page
        # Each key is used.
        assert "not used" not in running.stop()[1]


@pytest.mark.judge
def test_prometheus_accepts_its_part(tmp_path: Path) -> None:
    shutil.copy(ROOT / "packaging" / "prometheus" / "paddock.rules.yml", tmp_path)
    file = tmp_path / "prometheus.yml"
    file.write_text(SCRAPES)
    with skipped_where_missing():
        checked = promtool("check", "config", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "20 rules found" in checked.stdout


def test_probes_and_load_balancers_get_an_answer(
    server: tuple[str, int], ports: dict[str, str]
) -> None:
    probes = yaml.safe_load(PROBES)
    assert probes.keys() == {"startupProbe", "livenessProbe", "readinessProbe"}
    (balancer,) = PAGE.blocks("haproxy")
    asked = re.search(r"option httpchk GET (\S+)", balancer.text)
    assert asked is not None
    paths = {asked[1], *(probe["httpGet"]["path"] for probe in probes.values())}
    assert paths == {"/livez", "/readyz"}
    for path in paths:
        # HAProxy sends no Host, or one of any name.
        status, body = get(path, int(ports["8080"]), Host="10.0.0.1")
        assert (status, json.loads(body)["status"]) == (200, "ok")


def test_the_password_is_asked_for_over_tls(tmp_path: Path, ports: dict[str, str]) -> None:
    make, serve, ask = (block for block in BLOCKS if "admin-password" in block)
    authority = certificates.Authority()
    authority.issue(certificates.name("CN=server")).write(tmp_path / "server.pem")
    (tmp_path / "ca.pem").write_bytes(authority.pem())
    run(make, tmp_path)
    words = [ports.get(word, word) for word in shlex.split(serve)[2:]]
    with serving(*words, cwd=tmp_path):
        url = re.search(r"https://(\w+):8080(/\w+)", ask)
        assert url is not None
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        secret = (tmp_path / "admin-password").read_bytes().strip()
        answers = []
        for given in ({}, {"Authorization": f"Basic {b64encode(secret).decode()}"}):
            connection = HTTPSConnection("localhost", int(ports["8080"]), context=context)
            connection.request("GET", url[2], headers=given)
            answers.append(connection.getresponse().status)
            connection.close()
        assert answers == [401, 200]
        # Nothing is said to those who do not speak TLS.
        with pytest.raises(OSError):
            get("/livez", int(ports["8080"]))


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
