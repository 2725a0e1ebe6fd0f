"""docs/how-to/move-to-an-ensemble.md keeps its word: a tree moves, and comparing finds nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import paddock
from paddock.testing import EmbeddedServer
from tests.support.documents import Page
from tests.support.ensemble import ApacheEnsemble
from tests.support.reader import Reader

PAGE = Page("docs/how-to/move-to-an-ensemble.md")
# The ensemble is that of the whole run, so the tree has a root of its own there.
ROOT = "/moved-by-the-page"


def words(server: EmbeddedServer, ensemble: str) -> dict[str, str]:
    """Return the replacements for words of the page; a tree is named with its root."""
    return {
        "127.0.0.1:2181": server.hosts,
        "zk1:2181,zk2:2181,zk3:2181": f"{ensemble}{ROOT}",
        "\n/: ": f"\n{ROOT}: ",
    }


@pytest.mark.judge
def test_the_page_moves_a_tree(shared_ensemble: ApacheEnsemble, tmp_path: Path) -> None:
    assert PAGE.languages() == {"console"}

    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            paddock.connect(server.hosts) as old,
            paddock.connect(shared_ensemble.hosts) as new,
            Reader(tmp_path, words(server, shared_ensemble.hosts)) as reader,
        ):
            await new.create(ROOT)
            await old.create("/app/color", b"blue", make_parents=True)
            await old.create("/app/early")
            rehearsal, copy, *move = PAGE.every_block()
            await reader.do(rehearsal)
            await reader.do(copy)
            # Another client goes on meanwhile.
            await old.set("/app/color", b"green")
            await old.create("/app/late")
            await old.delete("/app/early")
            for block in move:
                await reader.do(block)
            assert (await new.get(f"{ROOT}/app/color")).data == b"green"
            assert sorted(await new.children(f"{ROOT}/app")) == ["color", "late"]

    asyncio.run(main())
