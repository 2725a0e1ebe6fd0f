"""docs/how-to/authenticate-by-kerberos.md keeps its word, with a KDC."""

import asyncio
from pathlib import Path

import pytest

from tests.support.documents import Page, environment
from tests.support.judges import skipped_where_missing
from tests.support.kerberos import REALM, Kdc
from tests.support.reader import Reader
from tests.support.server import free_port

PAGE = Page("docs/how-to/authenticate-by-kerberos.md")

pytestmark = pytest.mark.judge


def test_the_page_can_be_typed(tmp_path: Path) -> None:
    assert PAGE.languages() == {"console", "python", "sh", "text"}
    instead = {"zk.example.com": "localhost", "EXAMPLE.COM": REALM, "2181": str(free_port())}
    with skipped_where_missing(), Kdc() as kdc:
        variables = kdc.environment(tmp_path / "tickets")
        # The administrator's programs, which a user may not have in the path.
        variables["PATH"] = f"{environment()['PATH']}:/usr/sbin"

        async def main() -> None:
            async with Reader(tmp_path, instead, variables) as reader:
                await reader.follow(PAGE)

        asyncio.run(main())
