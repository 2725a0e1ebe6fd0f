"""docs/how-to/run-as-a-service.md keeps its word: its commands, its files, the lines of its log."""

import re
from pathlib import Path

import pytest

from paddock.server.admin.log_handler import BURST, INTERVAL
from paddock.server.config.sources import Settings
from tests.support import requests as rq
from tests.support import wire
from tests.support.documents import ROOT, Page, assert_shown, run
from tests.support.paddock_server import PaddockServer
from tests.support.server import Options

PAGE = Page("docs/how-to/run-as-a-service.md")
UNIT = (ROOT / "packaging" / "systemd" / "paddock.service").read_text(encoding="utf-8")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    # The one without a language is for logrotate.
    assert PAGE.languages() == {"sh", "ini", "console", ""}


def test_the_unit_is_installed_where_systemd_looks_and_finds_its_program(tmp_path: Path) -> None:
    (block,) = PAGE.blocks("sh")
    commands = block.text.splitlines()
    assert commands[0] == "sudo python3 -m venv /opt/paddock"
    assert "ExecStart=/opt/paddock/bin/paddock serve\n" in UNIT
    (install,) = [one for one in commands if one.startswith("sudo install ")]
    moved = install.removeprefix("sudo ").replace(" /etc/", f" {tmp_path}/etc/")
    run(moved)
    installed = tmp_path / "etc" / "systemd" / "system" / "paddock.service"
    assert installed.read_text(encoding="utf-8") == UNIT


def test_the_file_of_variables_is_understood() -> None:
    assert "EnvironmentFile=-/etc/paddock/environment\n" in UNIT
    assert "`/etc/paddock/environment`" in PAGE.text
    variables, _ = PAGE.blocks("ini")
    settings = Settings()
    settings.read_environment(dict(line.split("=", 1) for line in variables.text.splitlines()))
    assert settings.warnings == []
    assert settings.config().host == "0.0.0.0"


def test_the_drop_in_sets_what_the_server_knows() -> None:
    _, drop_in = PAGE.blocks("ini")
    section, credential, environment = drop_in.text.splitlines()
    assert section == "[Service]"
    name = credential.removeprefix("LoadCredential=").partition(":")[0]
    settings = Settings()
    settings.read_environment(dict([environment.removeprefix("Environment=").split("=", 1)]))
    assert settings.warnings == []
    assert settings.config().tls_key_store == Path("%d") / name


def test_the_commands_say_what_the_page_says(tmp_path: Path) -> None:
    with PaddockServer(Options(extra=(("audit.enable", "true"),)), tmp_path) as server:
        with wire.connect(server.address) as client:
            client.call(rq.create("/a"))
        server.stop()
    for block in PAGE.blocks("console"):
        for command, expected in block.commands():
            # `head` has seen enough before the server is stopped; and a page shows no tabs.
            output = run(f"set +o pipefail; {command}", tmp_path).replace("\t", " ")
            assert_shown(expected, output)


def pieces() -> list[str]:
    """Every piece of a line that the page's table has between backticks and ellipses."""
    rows = re.findall(r"^\| (`.*?) \| (?:info|warning|error)", PAGE.text, flags=re.MULTILINE)
    lines = [line for row in rows for line in re.findall(r"`([^`]+)`", row)]
    return [piece.strip() for line in lines for piece in line.split("…")]


@pytest.mark.parametrize("piece", sorted(set(pieces())))
def test_a_line_of_the_table_is_one_of_the_servers(piece: str) -> None:
    sources = (ROOT / "src" / "paddock").rglob("*.py")
    assert any(piece in path.read_text(encoding="utf-8") for path in sources)


def test_the_limits_of_the_log_are_the_ones_it_has() -> None:
    assert f"{BURST} are written, and then one in ten seconds" in PAGE.text
    assert INTERVAL == 10
