"""docs/tutorial/client.md keeps its word: typed in from top to bottom, it does what it says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer
from tests.support.certificates import Authority, name
from tests.support.documents import Page
from tests.support.examples import run_example

PAGE = Page("docs/tutorial/client.md")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.languages() == {"python"}


def test_the_page_can_be_typed_in_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem())
    alice = authority.issue(name("CN=alice"))
    (tmp_path / "alice.crt").write_bytes(alice.certificate_pem())
    (tmp_path / "alice.key").write_bytes(alice.key_pem())
    config = ServerConfig(
        port=0,
        secure_port=0,
        tls_key_store=authority.issue(name("CN=server")).write(tmp_path / "s.pem"),
        tls_trust_store=trusted,
    )
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with EmbeddedServer(config=config) as server:
            names = {"asyncio": asyncio}
            for block in PAGE.blocks("python"):
                text = block.text.replace("2181", str(server.address[1]))
                text = text.replace("2281", str(server.secure_address[1]))
                await run_example(text, names, f"docs/tutorial/client.md, {block}")

    asyncio.run(main())
