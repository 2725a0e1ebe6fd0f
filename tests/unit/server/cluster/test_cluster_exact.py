"""Exact sessions on several servers: the outcomes are where the client goes."""

from __future__ import annotations

import asyncio
import struct

import pytest
from librt.strings import BytesWriter

from paddock.errors import OK, SESSION_MOVED
from paddock.protocol.exact import ASKS_EXACT, TERMS_VERSION, ExactTerms
from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse
from paddock.state.entry import NEVER_EXACT
from paddock.testing.virtual import in_virtual_time
from tests.support import requests as rq
from tests.unit.server.cluster.stage import Stage, staged
from tests.unit.server.harness import encoded, framed


class Link:
    """A connection to one server, frame by frame."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._address = stage.servers[name].address
        self.reply = ConnectResponse(0, 0, 0, b"", None)
        self.rest = b""

    async def ask(self, session: int, password: bytes, version: int) -> None:
        host, port = self._address
        self._reader, self._writer = await asyncio.open_connection(host, port)
        writer = BytesWriter()
        ConnectRequest(version, 0, 10_000, session, password, False).write(writer)
        self._writer.write(framed(writer.getvalue()))
        reader = Reader(await self.frame())
        self.reply = ConnectResponse.read(reader)
        self.rest = reader.rest()

    async def open(self) -> None:
        await self.ask(0, ASKS_EXACT, 0)

    async def attach(self, former: Link) -> ExactTerms:
        await self.ask(former.reply.session_id, former.reply.password or b"", TERMS_VERSION)
        return ExactTerms.read(Reader(self.rest))

    def write(self, xid: int, path: str) -> None:
        self._writer.write(encoded(xid, rq.create(path)))

    async def frame(self) -> bytes:
        (length,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(length)

    async def errors(self) -> list[int]:
        """Read replies until the connection ends."""
        found = []
        try:
            while True:
                found.append(struct.unpack_from(">i", await self.frame(), 12)[0])
        except (asyncio.IncompleteReadError, ConnectionError):
            return found

    def close(self) -> None:
        self._writer.close()


def xids(terms: ExactTerms) -> list[int]:
    return [reply.xid for reply in terms.replies()]


@in_virtual_time
async def test_another_server_lists_what_a_dead_one_has_written() -> None:
    async with staged("a", "b") as stage:
        first, second = Link(stage, "a"), Link(stage, "b")
        await first.open()
        first.write(1, "/one")
        first.write(2, "/two")
        await first.frame()
        await first.frame()
        await stage.kill("a")
        terms = await second.attach(first)
        assert (terms.generation, terms.kept_generation, xids(terms)) == (2, 1, [1, 2])
        reply = terms.replies()[1]
        assert (reply.error, reply.body) == (OK, b"\0\0\0\4/two")
        first.close()
        second.close()


@in_virtual_time
async def test_the_fence_holds_for_a_write_on_its_way_through_another_server() -> None:
    async with staged("a", "b", seed=3) as stage:
        first, second = Link(stage, "a"), Link(stage, "b")
        await first.open()
        written = [f"/n{xid}" for xid in range(1, 41)]

        async def write() -> None:
            for xid, path in enumerate(written, 1):
                first.write(xid, path)
                await asyncio.sleep(0.001)

        writing = asyncio.create_task(write())
        await asyncio.sleep(0.02)
        terms = await second.attach(first)
        await writing
        errors = await first.errors()
        assert set(errors) <= {OK, SESSION_MOVED}
        await stage.settle()
        listed = xids(terms)
        assert listed == list(range(1, len(listed) + 1))
        assert 0 < len(listed) < len(written)
        nodes = stage.core(stage.servers["b"]).machine.tree.nodes
        assert [path for path in written if path.encode() in nodes] == written[: len(listed)]
        first.close()
        second.close()


@pytest.mark.parametrize("rules", [NEVER_EXACT, NEVER_EXACT + 1])
@in_virtual_time
async def test_no_session_is_exact_before_all_servers_know_how(rules: int) -> None:
    async with staged("a", "b") as stage:
        for name in ("a", "b"):
            roster = stage.core(stage.servers[name]).machine.roster
            assert roster is not None
            roster.rules = rules
        link = Link(stage, "a")
        await link.open()
        assert link.reply.session_id
        assert (link.rest != b"") == (rules > NEVER_EXACT)
        link.close()
