"""docs/how-to/use-the-shell.md keeps its word: typed at a terminal, it gives what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock import __version__
from paddock.cli.shell.completion import CHILDREN_MAX
from paddock.server.config.config import ServerConfig
from paddock.testing import ServerThread
from tests.support.certificates import Authority, name
from tests.support.command import COMMAND, serving
from tests.support.documents import Page, run
from tests.support.terminal import ENTER, terminal

PAGE = Page("docs/how-to/use-the-shell.md")


@pytest.fixture(scope="module")
def hosts() -> Iterator[str]:
    with serving("--port", "0", "--memory") as server:
        yield "{}:{}".format(*server.address)


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"text", "console", "properties"}


def test_the_terminal_shows_what_the_page_shows(hosts: str, tmp_path: Path) -> None:
    [block] = PAGE.blocks("text")
    command, *shown = (
        block.text.replace("127.0.0.1:2181", hosts).replace("0.1.0", __version__).splitlines()
    )
    arguments = command.removeprefix("$ paddock ").split()
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    with terminal([*COMMAND, *arguments], rows=40, environment=variables) as seen:
        for line in shown:
            prompt = re.match(r"\[zk: .*?\] ", line)
            if prompt is not None:
                seen.wait_for_line(prompt[0])
                seen.type(line.removeprefix(prompt[0]) + ENTER)
        # The status of the last command but `quit`, as with upstream.
        assert seen.wait_for_end() == 1
    # In this order.
    screen = iter(seen.lines)
    for line in shown:
        assert line in screen, f"{line!r} is not on the screen where it should be:\n{seen.text}"


def test_a_command_says_what_the_page_says(hosts: str) -> None:
    *blocks, _ = PAGE.blocks("console")
    for block in blocks:
        for command, expected in block.commands():
            # The page has a person before it, who sees stderr as well.
            said = run(f"({command.replace('127.0.0.1:2181', hosts)}) 2>&1")
            assert said == expected.replace("127.0.0.1:2181", hosts)


def test_a_connection_is_secured_as_the_page_says(tmp_path: Path) -> None:
    authority = Authority()
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem())
    authority.issue(name("CN=alice")).write(tmp_path / "alice.pem")
    [properties] = PAGE.blocks("properties")
    (tmp_path / properties.title).write_text(properties.text)
    [(command, expected)] = PAGE.blocks("console")[-1].commands()
    store = authority.issue(name("CN=server")).write(tmp_path / "server.pem")
    config = ServerConfig(port=0, secure_port=0, tls_key_store=store, tls_trust_store=trusted)
    with ServerThread(config=config) as server:
        hosts = f"localhost:{server.secure_address[1]}"
        said = run(command.replace("localhost:2281", hosts), tmp_path)
    assert said == expected.replace("localhost:2281", hosts)


def test_the_limit_is_the_one_of_the_code() -> None:
    assert f"more than {CHILDREN_MAX:,} children" in PAGE.text
