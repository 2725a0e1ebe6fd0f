"""The nodes that the real Curator leaves: the dashboard recognises its recipes by them.

The listing that the unit tests have was made so; with RECORD set to a file, it is written there.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from paddock.api import connect
from paddock.dashboard.coordination.coordination import Coordination
from paddock.dashboard.coordination.nodes import Node
from paddock.dashboard.coordination.recognition import recognise
from tests.support.recipes import run
from tests.support.server import Server
from tests.unit.dashboard.coordination.listing import CURATORS, summary

pytestmark = [pytest.mark.judge, pytest.mark.long]


def test_recipes_of_curator_are_recognised(curator: list[str], server: Server, base: str) -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(
            *curator,
            "Layouts",
            f"{server.host}:{server.port}",
            base,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            assert await process.stdout.readline() == b"there\n"
            async with connect(f"{server.host}:{server.port}") as client:
                found = [
                    Node.read(node.path.removeprefix(base), node.data or b"", node.stat)
                    async for node in client.walk(base, data=True)
                    if node.stat is not None and node.path != base
                ]
                if record := os.environ.get("RECORD"):
                    rows = [
                        {**node._asdict(), "data": node.data.decode("latin-1")} for node in found
                    ]
                    Path(record).write_text(
                        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
                    )
                assert summary(recognise(found)) == CURATORS
                coordination = Coordination(base)
                while coordination.needs_look:
                    await coordination.look(client)
                assert coordination.is_complete
                assert len(coordination.recipes) == len(recognise(found))
        finally:
            process.kill()
            await process.wait()

    run(scenario)
