"""The server that a client sits on is killed, again and again, while it watches and writes.

Every one-shot watch fires or is still set, every stream arrives at the last state, no acknowledged
write is lost and none happens twice, and the session is the same all the time. In an exact session
no write is in doubt. On three servers, Apache's and ours, where another takes over, and on one
Paddock, which is started again.

CRASH_ROUNDS says how often, CRASH_SEED with which choices; they do not decide how things meet.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock import Client, Event, SessionState
from paddock.testing import ServerProcess
from tests.fault.stage.client_campaign import Blow, campaign
from tests.support.members import Ensemble

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "2"))
SEED = int(os.environ.get("CRASH_SEED", secrets.randbits(32)))

#: The longest that there is: a busy machine took more than 40 s to elect a leader.
SESSION_S = 60.0
#: After so many, an ensemble begins with an empty tree: a member that comes back loads everything
#: that was ever written, so each round takes longer than the one before.
ENSEMBLE_ROUNDS = 20
#: A client leaves a silent server after two thirds of it. The last third is for going elsewhere,
#: so it is no shorter; where it comes back to a server that was away itself, it has more time.
SILENCE_SESSION_S = 15.0
SILENCE_OF_ALL_SESSION_S = 6.0

#: Our own three are killed under a larger load in every run (test_cluster_crash.py).
ON_BOTH = pytest.mark.parametrize(
    "several",
    ["ensemble", pytest.param("cluster", marks=[pytest.mark.cluster, pytest.mark.long])],
    indirect=True,
)

_numbers = itertools.count()


@pytest.fixture
def folder() -> str:
    """The name of a node that does not exist yet."""
    return f"/campaign{next(_numbers)}"


@pytest.fixture
def paddock_server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "data", ("--max-session-timeout-ms", "60000")) as server:
        yield server


def run(
    hosts: str, folder: str, blow: Blow, rounds: int, session_timeout: float, exact: bool = False
) -> None:
    print(f"\nCRASH_SEED={SEED}")
    fighting = campaign(
        hosts, folder, blow, rounds, session_timeout=session_timeout, seed=SEED, exact=exact
    )
    asyncio.run(fighting)


@pytest.mark.judge
@ON_BOTH
def test_a_client_survives_the_kill_of_each_member_it_comes_to(
    several: Ensemble, folder: str
) -> None:
    async def kill(client: Client) -> None:
        member = await asyncio.to_thread(several.member_of, client.session_id)
        await asyncio.to_thread(member.kill)
        # Those that never elect a leader are started again, before the client gives up.
        await asyncio.to_thread(several.wait_quorum)
        # Answered as soon as it sits on another one.
        await client.sync()
        assert await asyncio.to_thread(several.member_of, client.session_id) is not member
        await asyncio.to_thread(member.launch)
        await asyncio.to_thread(several.wait_quorum)

    for done in range(0, ROUNDS, ENSEMBLE_ROUNDS):
        if done:
            several.renew()
        run(several.hosts, folder, kill, min(ENSEMBLE_ROUNDS, ROUNDS - done), SESSION_S)


@pytest.mark.judge
@ON_BOTH
def test_a_client_leaves_each_member_that_hangs_by_its_own_clock(
    several: Ensemble, folder: str
) -> None:
    async def pause(client: Client) -> None:
        member = await asyncio.to_thread(several.member_of, client.session_id)
        member.pause()
        # Its connection stays open, so nobody but the client can end it; and in time, since the
        # session goes on elsewhere.
        await client.sync()
        assert await asyncio.to_thread(several.member_of, client.session_id) is not member
        member.resume()
        await asyncio.to_thread(several.wait_quorum)

    run(several.hosts, folder, pause, max(1, ROUNDS // 4), SILENCE_SESSION_S)


@pytest.mark.parametrize("exact", [False, True])
def test_a_client_survives_every_crash_of_paddock(
    paddock_server: ServerProcess, folder: str, exact: bool
) -> None:
    async def kill(client: Client) -> None:
        await asyncio.to_thread(paddock_server.kill)
        await asyncio.to_thread(paddock_server.start)
        await client.sync()

    run(paddock_server.hosts, folder, kill, ROUNDS, SESSION_S, exact)


@pytest.mark.judge
@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.parametrize("several", ["cluster"], indirect=True)
def test_calls_of_an_exact_session_are_never_in_doubt_when_their_server_is_killed(
    several: Ensemble, folder: str
) -> None:
    async def kill(client: Client) -> None:
        member = await asyncio.to_thread(several.member_of, client.session_id)
        await asyncio.to_thread(member.kill)
        await client.sync()
        await asyncio.to_thread(member.launch)
        await asyncio.to_thread(several.wait_quorum)

    run(several.hosts, folder, kill, ROUNDS, SESSION_S, exact=True)


def test_a_client_leaves_a_paddock_that_hangs_and_comes_back(
    paddock_server: ServerProcess, folder: str
) -> None:
    async def pause(client: Client) -> None:
        left = asyncio.Event()

        def listen(event: Event) -> None:
            if event.state is SessionState.DISCONNECTED:
                left.set()

        await client.exists(f"{folder}/none", watch=listen)
        paddock_server.pause()
        await left.wait()
        paddock_server.resume()
        await client.sync()
        client.forget_watcher(listen)

    run(paddock_server.hosts, folder, pause, max(1, ROUNDS // 4), SILENCE_OF_ALL_SESSION_S)
