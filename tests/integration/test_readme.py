"""The README is true: every block of code in it runs, against a server of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import DEADLINE_S, ROOT, Block, Page, assert_shown, run
from tests.support.paddock_server import PaddockServer
from tests.support.server import Server
from tests.unit.test_import_rules import MAY_IMPORT

README = Page("README.md")
_BLOCK = re.compile(r"^ *```.*?^ *```$", flags=re.MULTILINE | re.DOTALL)
SOURCE = ROOT / "src" / "paddock"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.fixture
def server() -> Iterator[Server]:
    with PaddockServer() as server:
        yield server


def run_python(text: str, server: Server) -> str:
    """Run a program with the server's port in place of the usual one; return its output."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", text.replace("2181", str(server.port))],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert result.returncode == 0, result.stderr
    # A thread that fails says so there, and nobody else hears of it.
    assert result.stderr == ""
    return result.stdout


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert README.languages() == {"python", "console", "sh"}


@pytest.mark.parametrize("block", README.blocks("python"), ids=str)
def test_python_block_runs(block: Block, server: Server) -> None:
    assert run_python(block.text, server)


def test_the_first_example_prints_what_it_did(server: Server) -> None:
    output = run_python(README.blocks("python")[0].text, server)
    assert re.fullmatch(r"nobody else holds it, and this is my token: \d+\n", output)


def test_the_first_example_is_short() -> None:
    lines = [line for line in README.blocks("python")[0].text.splitlines() if line]
    assert len(lines) <= 10


def test_the_example_with_kazoo_prints_what_it_did(server: Server) -> None:
    assert run_python(README.blocks("python")[-1].text, server) == "kazoo holds it\n"


def test_the_tour_leads_through_the_whole_source_in_the_order_of_imports() -> None:
    tour = re.findall(r"^\| \[`(\w+)(?:\.py)?`\]", README.text, flags=re.MULTILINE)
    folders = {one.name for one in SOURCE.iterdir() if (one / "__init__.py").exists()}
    assert {*tour} == folders | {"errors", "layouts", "monitor"}
    # Modules of a page each, which the tour leaves out.
    seen = {"api", "_checksums", "_first_use", "_loops"}
    for package in tour:
        assert MAY_IMPORT[package] <= seen, package
        seen.add(package)


@pytest.mark.parametrize("block", README.blocks("console"), ids=str)
def test_console_block_prints_what_it_says(block: Block, server: Server) -> None:
    for command, expected in block.commands():
        own = command.replace(".venv/bin/", "").replace("2181", str(server.port))
        assert_shown(expected, run(own))


@pytest.mark.parametrize("block", README.blocks("sh"), ids=str)
def test_make_command_exists(block: Block) -> None:
    for line in block.text.splitlines():
        # Only shown, not run: this test may itself be part of `make test`.
        command = ["make", "--dry-run", *line.partition("#")[0].split()[1:]]
        assert line.startswith("make ")
        assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def test_make_serve_takes_another_port_and_folder() -> None:
    command = ["make", "--dry-run", "serve", "PORT=2182", "DATA=/tmp/a folder"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    assert "--port 2182 --data '/tmp/a folder'" in shown


def dry_run(target: str, **variables: str) -> list[str]:
    """Return the lines that a target would run."""
    command = ["make", "--dry-run", target, *(f"{name}={one}" for name, one in variables.items())]
    # Not as a part of the make that runs the tests: that would say which folder it is in.
    environment = {name: one for name, one in os.environ.items() if not name.startswith("MAKE")}
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.splitlines()


def test_make_serve_does_not_wait_for_the_compiler() -> None:
    lines = dry_run("serve", COMPILES="yes")
    assert lines[-3].endswith("-m tools.build --background")
    assert "paddock serve " in lines[-1]
    assert not any("setup.py" in line or "pip install --target" in line for line in lines)
    assert not any("tools.build --background" in line for line in dry_run("serve", COMPILES=""))


def test_make_test_says_first_what_it_installs_and_how_long_it_takes() -> None:
    assert dry_run("test")[0].startswith("tools/announce.sh")
    said = subprocess.check_output([ROOT / "tools" / "announce.sh", ".venv"], text=True)
    assert "from PyPI into .venv" in said
    (minutes,) = re.findall(r"It takes (\d+ to \d+ minutes) on two cores", said)
    assert minutes in README.text


def test_make_quick_runs_every_unit_test_and_a_server() -> None:
    assert dry_run("quick")[-1].endswith(
        "tests/unit tests/scenarios tests/integration/test_readme.py"
    )


def links(page: Path) -> set[Path]:
    """The files of the project that a page has a link to."""
    # What looks like one within code is none.
    text = re.sub(r"`[^`\n]*`", "``", page.read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^):#]+)(?:#[\w-]+)?\)", text)
    return {(page.parent / link).resolve() for link in found}


def test_links_lead_from_the_readme_to_every_page() -> None:
    reached = {ROOT / "README.md"}
    while more := {link for page in reached for link in links(page) if link in PAGES} - reached:
        reached |= more
    assert reached == set(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [link for link in links(page) if not link.exists()] == []


def anchors(page: Path) -> set[str]:
    """What a link may name of a page: its headings, as GitHub and MkDocs spell them."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    plain = [re.sub(r"[^\w -]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[ -]+", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.name)
def test_every_link_to_a_heading_finds_it(page: Path) -> None:
    found = re.findall(r"\]\(([^):#]*)#([\w-]+)\)", page.read_text(encoding="utf-8"))
    targets = [((page.parent / link).resolve() if link else page, name) for link, name in found]
    assert [one for one in targets if one[1] not in anchors(one[0])] == []
