"""What becomes of a restore over HTTP that is slow, or whose client goes, in virtual time."""

from __future__ import annotations

import asyncio
from typing import cast

from paddock.server.admin.data_commands import DataCommands, RestoreProcess
from paddock.server.admin.http import AdminServer
from paddock.server.admin.rate_limits import AdminLimits
from paddock.state.access import NOBODY, Identities
from paddock.testing.clock import run_virtually
from tests.unit.server.admin.test_http import Peer, admin_server
from tests.unit.server.harness import turn

BODY_BYTES = 1 << 20
HEAD = (
    "POST /commands/restore HTTP/1.1\r\nHost: localhost\r\n"
    f"Authorization: digest super:secret\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
).encode()
INTERVAL = 3600.0


class FakeProcess:
    """What a body is handed to."""

    def __init__(self) -> None:
        self.received = 0
        self.wants_more = True
        self.is_killed = False
        # Asked for when everything was handed over.
        self.is_finishing = False
        self.done = asyncio.Event()

    async def write(self, data: bytes) -> bool:
        self.received += len(data)
        return self.wants_more

    async def finish(self) -> int:
        self.is_finishing = True
        await self.done.wait()
        return 7

    async def kill(self) -> None:
        self.is_killed = True


class FakeCommands:
    """Lets everybody restore, and counts for the limit."""

    def __init__(self) -> None:
        self.limits = AdminLimits(INTERVAL)
        self.process = FakeProcess()

    def identify(self, authorization: bytes | None, address: str) -> Identities:
        return NOBODY

    def authorize(self, identities: Identities) -> None:
        pass

    def check(self, command: str) -> float:
        assert command == "restore"
        now = asyncio.get_running_loop().time()
        assert self.limits.restore.wait(now) == 0
        return now

    async def begin_restore(self) -> RestoreProcess:
        return cast(RestoreProcess, self.process)

    def is_counted(self) -> bool:
        """Whether another one would have to wait."""
        return self.limits.restore.wait(asyncio.get_running_loop().time()) > 0


def restoring() -> tuple[AdminServer, FakeCommands, Peer]:
    server, commands = admin_server(), FakeCommands()
    server.data_commands = cast(DataCommands, commands)
    return server, commands, Peer(server)


def test_a_body_that_does_not_come_is_not_waited_for_and_costs_nothing() -> None:
    async def scenario() -> None:
        _, commands, peer = restoring()
        await peer.send(HEAD)
        await asyncio.sleep(29)
        still_open = peer.transport.is_open
        await asyncio.sleep(2)
        assert (still_open, peer.transport.is_open) == (True, False)
        assert not commands.is_counted()

    run_virtually(scenario())


def test_a_body_that_trickles_in_is_given_up() -> None:
    async def scenario() -> None:
        _, commands, peer = restoring()
        await peer.send(HEAD)
        for _ in range(4):
            assert peer.transport.is_open
            await peer.send(bytes(1000))
            await asyncio.sleep(10)
        await peer.send(bytes(1000))
        assert not peer.transport.is_open
        assert commands.process.is_killed
        assert commands.is_counted()

    run_virtually(scenario())


def test_a_body_that_is_not_wanted_is_taken_for_a_while_so_that_its_sender_hears_why() -> None:
    async def scenario() -> None:
        _, commands, peer = restoring()
        commands.process.wants_more = False
        await peer.send(HEAD + bytes(600_000))
        for _ in range(2):
            await asyncio.sleep(16)
            assert not commands.process.is_finishing
            await peer.send(bytes(100_000))
        assert commands.process.is_finishing
        assert commands.process.received == 600_000

    run_virtually(scenario())


def test_a_client_that_goes_before_its_body_has_come_ends_the_restore() -> None:
    async def scenario() -> None:
        server, commands, peer = restoring()
        await peer.send(HEAD + bytes(1000))
        peer.connection.connection_lost(None)
        await turn()
        assert commands.process.is_killed
        assert (len(server.pool.tasks), len(commands.limits.restores)) == (0, 0)

    run_virtually(scenario())


def test_neither_client_nor_server_ends_a_restore_whose_body_has_come() -> None:
    async def scenario() -> None:
        server, commands, peer = restoring()
        await peer.send(HEAD + bytes(BODY_BYTES))
        assert commands.process.is_finishing
        await server.close()
        assert peer.transport.is_open
        peer.connection.connection_lost(None)
        await turn()
        assert not commands.process.is_killed
        assert (len(server.pool.tasks), len(commands.limits.restores)) == (0, 1)
        await commands.limits.restores.end()
        assert commands.process.is_killed

    run_virtually(scenario())


def test_a_restore_is_answered_though_its_server_has_gone() -> None:
    async def scenario() -> None:
        server, commands, peer = restoring()
        await peer.send(HEAD + bytes(BODY_BYTES))
        await server.close()
        commands.process.done.set()
        await turn()
        assert peer.transport.written.startswith(b"HTTP/1.1 200 ")
        assert b'"last_zxid" : 7' in peer.transport.written

    run_virtually(scenario())
