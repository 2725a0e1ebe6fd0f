"""A client on an Apache ZooKeeper that lost its peers and is in read-only mode."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from paddock import Client, ConnectionLostError, NotReadOnlyError, SessionState, connect
from tests.support.ensemble import ApacheMember, choose_ports
from tests.support.server import Options, ServerMissingError

DEADLINE_S = 120.0
READ_ONLY = SessionState.CONNECTED_READ_ONLY

pytestmark = pytest.mark.judge


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[ApacheMember]]:
    ports = choose_ports()
    members = [
        ApacheMember(number, ports, Options(), tmp_path / f"{number}", has_read_only_mode=True)
        for number in (1, 2, 3)
    ]
    yield members
    for member in members:
        member.kill()


async def wait_for(client: Client, wanted: SessionState) -> None:
    async for state in client.states():
        if state is wanted:
            return
        assert not state.is_final, state


def test_from_a_read_only_server_to_one_that_can_be_written_to(members: list[ApacheMember]) -> None:
    first, second, _ = members
    hosts = ",".join(member.hosts for member in members)

    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            # Nobody who may want to write is served by one of three.
            with pytest.raises(ConnectionLostError, match=f"{first.hosts}: "):
                await connect(first.hosts, session_timeout=1, random=Random(1)).start()
            async with connect(
                hosts, read_only=True, session_timeout=60, random=Random(1)
            ) as client:
                assert client.state is READ_ONLY
                assert await client.children("/") == ["zookeeper"]
                with pytest.raises(NotReadOnlyError, match="create /x: a read-only server"):
                    await client.create("/x")
                local = client.session_id
                second.launch()
                await wait_for(client, SessionState.CONNECTED)
                assert client.session_id != local
                await client.create("/x", b"1", ephemeral=True)
                assert client.session_valid_until > asyncio.get_running_loop().time()

    try:
        first.launch()
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    asyncio.run(main())
