"""The client on three servers: what one alone cannot show."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import paddock
from paddock import SessionState
from tests.integration.test_client import path
from tests.support.apis import lose_connection
from tests.support.ensemble import ApacheEnsemble
from tests.support.members import Ensemble
from tests.support.paddock_cluster import PaddockCluster
from tests.support.server import ServerMissingError

__all__ = ["path"]

pytestmark = pytest.mark.judge

DEADLINE_S = 120.0
#: Long enough that no session ends while a slow machine starts a member or elects a leader.
SESSION_S = 40.0


@pytest.fixture(scope="module", params=[ApacheEnsemble, PaddockCluster])
def own_several(request: pytest.FixtureRequest) -> Iterator[Ensemble]:
    """Three servers that go on for readers when there is no quorum."""
    with contextlib.ExitStack() as stack:
        try:
            several = stack.enter_context(request.param(has_read_only_mode=True))
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield several


@pytest.fixture
def read_only_several(own_several: Ensemble) -> Ensemble:
    """The same, with all members."""
    own_several.heal()
    return own_several


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scenario()

    asyncio.run(main())


@pytest.mark.parametrize("written_at", ["leader", "follower"])
def test_after_sync_a_client_of_a_follower_reads_what_was_written_at_another_member(
    shared_several: Ensemble, path: str, written_at: str
) -> None:
    """Apache's leader answers a sync of its own clients at once.

    So one that is slow to apply its commits may answer before a write that a follower has answered.
    """
    first, second = shared_several.followers()
    writing_at = shared_several.leader() if written_at == "leader" else second

    async def scenario() -> None:
        async with (
            paddock.connect(writing_at.hosts) as writer,
            paddock.connect(first.hosts) as reader,
        ):
            await writer.create(path, b"")
            for number in range(100):
                await writer.set(path, b"%d" % number)
                await reader.sync()
                assert (await reader.get(path)).data == b"%d" % number

    run(scenario)


def test_a_client_that_leaves_a_server_never_sees_an_older_state_at_the_next(
    shared_several: Ensemble, path: str
) -> None:
    async def scenario() -> None:
        async with (
            paddock.connect(shared_several.hosts) as client,
            paddock.connect(shared_several.hosts) as other,
        ):
            await other.create(path, b"")
            await client.sync()
            visited = set()
            for number in range(30):
                await other.set(path, b"%d" % number)
                seen = (await client.get(path)).stat.version
                lose_connection(client)
                assert (await client.get(path)).stat.version >= seen
                member = await asyncio.to_thread(shared_several.member_of, client.session_id)
                visited.add(member.number)
            assert visited == {1, 2, 3}

    run(scenario)


def test_a_session_that_moves_keeps_its_ephemerals_and_ends_with_them(
    several: Ensemble, path: str
) -> None:
    async def scenario() -> None:
        async with paddock.connect(several.hosts, session_timeout=SESSION_S) as other:
            async with paddock.connect(several.hosts, session_timeout=SESSION_S) as client:
                session_id = client.session_id
                made = await client.create_with_stat(path, ephemeral=True)
                # Its server, and then the leader, which all sessions depend on.
                for choose in (lambda: several.member_of(session_id), several.leader):
                    lost = await asyncio.to_thread(choose)
                    await asyncio.to_thread(lost.kill)
                    await asyncio.to_thread(several.wait_quorum)
                    assert await client.ephemerals() == [path]
                    assert client.session_id == session_id
                    await other.sync()
                    assert await other.exists(path) == made.stat
                    await asyncio.to_thread(lost.start)
            await other.sync()
            assert await other.exists(path) is None

    run(scenario)


@pytest.mark.parametrize("is_content_with_reading", [False, True])
def test_a_session_outlives_the_time_without_a_quorum(
    read_only_several: Ensemble, path: str, is_content_with_reading: bool
) -> None:
    several = read_only_several

    async def scenario() -> None:
        async with paddock.connect(
            several.hosts, session_timeout=SESSION_S, read_only=is_content_with_reading
        ) as client:
            seen: list[SessionState] = []
            client.add_listener(seen.append)
            await client.create(path, ephemeral=True)
            session_id = client.session_id
            # All but the one that surely knows what the client knows.
            last = await asyncio.to_thread(several.member_of, session_id)
            await asyncio.to_thread(several.end_quorum, last)
            await asyncio.to_thread(last.wait_mode, "read-only")
            # It serves, but it cannot give us the session that we have.
            async with paddock.connect(
                last.hosts, session_timeout=SESSION_S, read_only=True
            ) as reader:
                assert reader.state is SessionState.CONNECTED_READ_ONLY
                assert (await reader.get(path)).stat.ephemeral_owner == session_id
            await asyncio.to_thread(several.begin_quorum)
            async for state in client.states():
                if state is SessionState.CONNECTED:
                    break
            assert (await client.set(path, b"")).ephemeral_owner == session_id
            assert client.session_id == session_id
            states = set(seen)
            if is_content_with_reading and several.name == "cluster":
                # A Paddock that is cut off knows the session, and lets it read.
                states.discard(SessionState.CONNECTED_READ_ONLY)
            assert states == {SessionState.DISCONNECTED, SessionState.CONNECTED}

    run(scenario)
