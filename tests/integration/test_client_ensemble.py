"""The client on an ensemble: what one server alone cannot show."""

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
from tests.support.judges import skip_or_fail
from tests.support.server import ServerMissingError

__all__ = ["path"]

pytestmark = pytest.mark.judge

DEADLINE_S = 120.0
#: Long enough that no session ends while a slow machine starts a member or elects a leader.
SESSION_S = 40.0


@pytest.fixture(scope="module")
def own_ensemble() -> Iterator[ApacheEnsemble]:
    """One whose members go on for readers when there is no quorum."""
    with contextlib.ExitStack() as stack:
        try:
            ensemble = stack.enter_context(ApacheEnsemble(has_read_only_mode=True))
        except ServerMissingError as missing:
            skip_or_fail(str(missing))
        yield ensemble


@pytest.fixture
def read_only_ensemble(own_ensemble: ApacheEnsemble) -> ApacheEnsemble:
    """The same, with all its members."""
    own_ensemble.heal()
    return own_ensemble


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scenario()

    asyncio.run(main())


@pytest.mark.parametrize("written_at", ["leader", "follower"])
def test_after_sync_a_client_of_a_follower_reads_what_was_written_at_another_member(
    shared_ensemble: ApacheEnsemble, path: str, written_at: str
) -> None:
    """Apache's leader answers a sync of its own clients at once.

    So one that is slow to apply its commits may answer before a write that a follower has answered.
    """
    first, second = shared_ensemble.followers()
    writing_at = shared_ensemble.leader() if written_at == "leader" else second

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
    shared_ensemble: ApacheEnsemble, path: str
) -> None:
    async def scenario() -> None:
        async with (
            paddock.connect(shared_ensemble.hosts) as client,
            paddock.connect(shared_ensemble.hosts) as other,
        ):
            await other.create(path, b"")
            await client.sync()
            visited = set()
            for number in range(30):
                await other.set(path, b"%d" % number)
                seen = (await client.get(path)).stat.version
                lose_connection(client)
                assert (await client.get(path)).stat.version >= seen
                member = await asyncio.to_thread(shared_ensemble.member_of, client.session_id)
                visited.add(member.number)
            assert visited == {1, 2, 3}

    run(scenario)


def test_a_session_that_moves_keeps_its_ephemerals_and_ends_with_them(
    ensemble: ApacheEnsemble, path: str
) -> None:
    async def scenario() -> None:
        async with paddock.connect(ensemble.hosts, session_timeout=SESSION_S) as other:
            async with paddock.connect(ensemble.hosts, session_timeout=SESSION_S) as client:
                session_id = client.session_id
                made = await client.create_with_stat(path, ephemeral=True)
                # Its server, and then the leader, which all sessions depend on.
                for choose in (lambda: ensemble.member_of(session_id), ensemble.leader):
                    lost = await asyncio.to_thread(choose)
                    await asyncio.to_thread(lost.kill)
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
    read_only_ensemble: ApacheEnsemble, path: str, is_content_with_reading: bool
) -> None:
    ensemble = read_only_ensemble

    async def scenario() -> None:
        async with paddock.connect(
            ensemble.hosts, session_timeout=SESSION_S, read_only=is_content_with_reading
        ) as client:
            seen: list[SessionState] = []
            client.add_listener(seen.append)
            await client.create(path, ephemeral=True)
            session_id = client.session_id
            # All but the one that surely knows what the client knows.
            last = await asyncio.to_thread(ensemble.member_of, session_id)
            lost, other = ensemble.others(last)
            for member in (lost, other):
                await asyncio.to_thread(member.kill)
            await asyncio.to_thread(last.wait_mode, "read-only")
            # It serves, but it cannot give us the session that we have.
            async with paddock.connect(
                last.hosts, session_timeout=SESSION_S, read_only=True
            ) as reader:
                assert reader.state is SessionState.CONNECTED_READ_ONLY
                assert (await reader.get(path)).stat.ephemeral_owner == session_id
            await asyncio.to_thread(lost.start)
            assert (await client.set(path, b"")).ephemeral_owner == session_id
            assert client.session_id == session_id
            assert set(seen) == {SessionState.DISCONNECTED, SessionState.CONNECTED}

    run(scenario)
