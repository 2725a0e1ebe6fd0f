"""Every page keeps its word: there is no block of code that no test runs.

A page is followed from top to bottom by a reader (`tests/support/reader.py`), unless a test module
has it as `Page("its name")`: that one runs its blocks in a way of its own, and says so by comparing
the languages that the page has with those that it runs. What nobody can run is named below.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import paddock
from paddock.state.limits import Quota
from paddock.sync import Client, connect
from paddock.testing import EmbeddedServer, ServerThread
from tests.support.documents import ROOT, Block, Page
from tests.support.reader import DEADLINE_S, Reader
from tests.support.server import free_port
from tools.reference import FOLDER as REFERENCE

# Blocks that nothing runs, by page and first line, and why.
NOT_RUN: Final = {
    (
        "docs/how-to/run-as-a-service.md",
        "/var/lib/paddock/audit.log {",
    ): "for logrotate; that the server goes on with a new file is a test of the audit log",
    (
        "docs/explanation/locks.md",
        "alice     holds the lock ── paused ──────────────────────────── writes!",
    ): "a drawing",
    (
        "CONTRIBUTING.md",
        "def test_a_write_outlives_the_leader(ensemble: ApacheEnsemble) -> None:",
    ): "a sketch of a test",
    (
        "docs/reference/configuration.md",
        "session 0x19a2b0c4d0001: quota of /app exceeded: 12 nodes, the soft limit is 10",
    ): "a line of the log, which tests/unit/server/replication/test_notices.py looks at",
}

# Blocks that are looked at here, by page and first line.
CHECKED: Final = {
    (
        "docs/reference/configuration.md",
        "count=10,bytes=-1=;byteHardLimit=1000000;countHardLimit=20",
    )
}

BEGINNING: Final = "docs/tutorial/first-lock.md"

_FENCE: Final = "/heard"

# The reference runs its examples in test_reference.py, each with what it takes for granted.
_IN_REFERENCE: Final = {"python", "py"}
_SERVES: Final = re.compile(r"^\$? ?(\S*paddock serve|make serve)", flags=re.MULTILINE)


def pages() -> list[Page]:
    paths = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    return [Page(str(path.relative_to(ROOT))) for path in paths]


@cache
def owners() -> dict[str, Path]:
    """Return the pages that test modules run, each with its module."""
    return {
        name: path
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r'\bPage\("([^"]+)"\)', path.read_text(encoding="utf-8"))
    }


def is_run(page: Page, block: Block) -> bool:
    return (page.name, block.text.partition("\n")[0]) not in {*NOT_RUN, *CHECKED}


def is_reference(page: Page) -> bool:
    return (ROOT / page.name).parent == REFERENCE


FOLLOWED: Final = [
    page
    for page in pages()
    if page.name not in owners()
    and not is_reference(page)
    and any(is_run(page, block) for block in page.every_block())
]

# What a newcomer types with one server running, in this order.
ON_ONE_SERVER: Final = [
    Page(name)
    for name in (
        "README.md",
        BEGINNING,
        "docs/tutorial/first-election.md",
        "docs/tutorial/first-service.md",
        "docs/tutorial/client.md",
        "docs/tutorial/recipes.md",
        "docs/how-to/use-in-scripts.md",
        "docs/how-to/run-under-a-lock.md",
        "docs/how-to/export-and-import.md",
        "docs/how-to/move-from-kazoo.md",
        "docs/how-to/use-after-fork.md",
        "docs/explanation/consistency.md",
        "docs/explanation/locks.md",
    )
]
# What brings a server or wants one of another kind; the tests of the pages do that.
_OF_OTHER_SERVERS: Final = re.compile(r"git clone|^make |:2281", flags=re.MULTILINE)
# The rest, and what is not followed as a whole there.
ALONE: Final = [
    page
    for page in FOLLOWED
    if page.name not in {one.name for one in ON_ONE_SERVER}
    or any(_OF_OTHER_SERVERS.search(block.text) for block in page.every_block())
]


def cloning(folder: Path) -> dict[str, str]:
    """Return the environment variables with which a reader clones this very project."""
    configuration = folder / "gitconfig"
    # The checkout may belong to another user than the one who runs the tests.
    configuration.write_text("[safe]\n\tdirectory = *\n", encoding="utf-8")
    return {"PADDOCK": str(ROOT), "GIT_CONFIG_GLOBAL": str(configuration)}


def installed(folder: Path) -> Path:
    """Make what `make install` would make of a clone, with the Paddock under test in it.

    A reader who clones the project gets it from us, and need not install it once more.
    """
    venv = folder / "venv"
    venv.mkdir()
    for part in Path(sys.prefix).iterdir():
        if not part.name.startswith("."):
            (venv / part.name).symlink_to(part)
    # Newer than every file of the clone, so that `make` finds nothing to do.
    ahead = time.time() + 3600
    for stamp in (venv / ".installed", venv / ".dev"):
        stamp.touch()
        os.utime(stamp, (ahead, ahead))
    return venv


@pytest.mark.parametrize("page", ALONE, ids=lambda page: page.name)
def test_a_page_can_be_followed_from_top_to_bottom(page: Page, tmp_path: Path) -> None:
    if "git clone" in page.text and not (ROOT / ".git").exists():
        pytest.skip("there is nothing to clone: this is not a repository")
    home = tmp_path / "home"
    home.mkdir()

    async def main() -> None:
        async with AsyncExitStack() as scope:
            port = str(free_port())
            if not any(_SERVES.search(block.text) for block in page.every_block()):
                server = await scope.enter_async_context(EmbeddedServer())
                port = str(server.address[1])
            venv = installed(tmp_path)
            variables = {
                **cloning(tmp_path),
                "PADDOCK_PORT": port,
                "PADDOCK_SERVER": f"127.0.0.1:{port}",
                # What is in the clone would be compiled again, for a minute or two.
                "MAKEFLAGS": f"PORT={port} VENV={venv} PADDOCK_PURE=1",
            }
            reader = Reader(
                home, {"2181": port, "8000": str(free_port()), ".venv": str(venv)}, variables
            )
            await scope.enter_async_context(reader)
            for block in page.every_block():
                if is_run(page, block):
                    await reader.do(block, page.name)

    asyncio.run(main())


class OneServer:
    """A server for all pages, which notes what is written where."""

    def __init__(self, server: ServerThread, client: Client) -> None:
        self.hosts = server.hosts
        self.port = str(server.address[1])
        self._client = client
        self._heard = threading.Event()
        self._written: set[str] = set()
        # Which page writes below a root.
        self._owner: dict[str, str] = {}
        client.add_watch("/", self._note, recursive=True)

    def attribute(self, page: Page) -> None:
        """Say who has written since the last time: nobody else may have been there before."""
        # Events come in their order, so when we hear of ours we have heard of all before it.
        self._client.create(_FENCE)
        self._client.delete(_FENCE)
        assert self._heard.wait(DEADLINE_S)
        self._heard.clear()
        written, self._written = self._written, set()
        assert written
        for root in written:
            assert self._owner.setdefault(root, page.name) == page.name, root

    def _note(self, event: paddock.Event) -> None:
        # Nodes may go later, with a session or as an empty container.
        if event.type not in (paddock.EventType.CREATED, paddock.EventType.CHANGED):
            return
        assert event.path is not None
        if event.path == _FENCE:
            self._heard.set()
        else:
            self._written.add(event.path.split("/")[1])


@pytest.fixture(scope="module")
def one_server() -> Iterator[OneServer]:
    with ServerThread() as server, connect(server.hosts) as client:
        yield OneServer(server, client)


# Whether a page can be typed again is for the long runs.
@pytest.mark.parametrize("turn", ["first", pytest.param("second", marks=pytest.mark.long)])
@pytest.mark.parametrize("page", ON_ONE_SERVER, ids=lambda page: page.name)
def test_pages_can_be_typed_on_one_server_in_any_order_and_again(
    page: Page, turn: str, tmp_path: Path, one_server: OneServer
) -> None:
    """In any order, since no page writes below a root of another one."""
    home = tmp_path / "home"
    home.mkdir()
    instead = {"2181": one_server.port, "8000": str(free_port()), ".venv": str(installed(tmp_path))}

    async def main() -> None:
        async with Reader(home, instead, {"PADDOCK_SERVER": one_server.hosts}) as reader:
            for block in page.every_block():
                if is_run(page, block) and not _OF_OTHER_SERVERS.search(block.text):
                    await reader.do(block, page.name)

    asyncio.run(main())
    one_server.attribute(page)


@pytest.mark.long
def test_the_tutorial_begins_with_a_fresh_clone_and_nothing_installed(tmp_path: Path) -> None:
    """Every step as written, with a virtual environment of its own; only the port is another."""
    home = tmp_path / "home"
    home.mkdir()
    port = str(free_port())
    variables = {
        **cloning(tmp_path),
        "MAKEFLAGS": f"PORT={port}",
        "PADDOCK_SERVER": f"127.0.0.1:{port}",
        # Without the programs of the environment that runs this test.
        "PATH": os.pathsep.join(
            one for one in os.environ["PATH"].split(os.pathsep) if not one.startswith(sys.prefix)
        ),
    }

    async def main() -> None:
        async with Reader(home, {"2181": port}, variables, deadline_s=600) as reader:
            await reader.follow(Page(BEGINNING))

    asyncio.run(main())
    assert (home / "paddock" / ".venv" / "bin" / "paddock").exists()


@pytest.mark.parametrize("name", sorted(owners()))
def test_a_module_that_runs_a_page_says_what_it_runs(name: str) -> None:
    # This comparison fails for a new kind of block, which nothing would run.
    text = owners()[name].read_text(encoding="utf-8")
    assert re.search(r"assert \w+\.languages\(\) == ", text) or "every_block()" in text


@pytest.mark.parametrize(
    "page", [page for page in pages() if is_reference(page)], ids=lambda p: p.name
)
def test_the_reference_has_examples_and_signatures_only(page: Page) -> None:
    assert page.languages() <= _IN_REFERENCE


def test_what_is_not_run_is_still_there() -> None:
    there = {
        (page.name, block.text.partition("\n")[0])
        for page in pages()
        for block in page.every_block()
    }
    assert {*NOT_RUN, *CHECKED} <= there


def test_the_limits_of_the_configuration_are_limits() -> None:
    [(_, shown)] = CHECKED
    quota = Quota(b"/app")
    quota.read_limits(shown.encode())
    assert (quota.count_soft, quota.bytes_soft) == (10, -1)
    assert (quota.count_hard, quota.bytes_hard) == (20, 1_000_000)
