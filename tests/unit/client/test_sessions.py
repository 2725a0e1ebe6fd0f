"""Programs in one session after the other: what begins again, what ends them, and who wins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest

import paddock
from paddock import (
    AuthenticationError,
    Client,
    ConnectionLostError,
    GrantLostError,
    InvalidArgumentError,
    SessionExpiredError,
    SessionState,
    run_in_sessions,
)
from paddock.recipes import Lock
from paddock.testing import EmbeddedServer, FaultProxy, expire_session, run_virtually

TIMEOUT_S = 6.0


class Stage:
    """A server, and clients of it that come through a proxy."""

    def __init__(self, server: EmbeddedServer, proxy: FaultProxy) -> None:
        self.server = server
        self.proxy = proxy
        self.clients: list[Client] = []

    def connect(self) -> Client:
        client = paddock.connect(
            self.proxy.hosts, random=Random(len(self.clients)), session_timeout=TIMEOUT_S
        )
        self.clients.append(client)
        return client

    async def expire(self, client: Client) -> None:
        await expire_session(self.server.address, client.session_id, client.session_password)


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
        yield Stage(server, proxy)
        proxy.heal()


def play(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with staged() as stage:
            await scenario(stage)
            assert all(client.state.is_final for client in stage.clients)

    run_virtually(main())


def test_a_body_that_waits_is_cancelled_with_the_reason_and_begins_again() -> None:
    async def scenario(stage: Stage) -> None:
        told: list[str] = []

        async def work(client: Client) -> str:
            await client.create("/worker", ephemeral=True)
            if told:
                return "done"
            await stage.expire(client)
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError as error:
                # It is over, and its scopes end before anything else happens.
                assert client.state is SessionState.EXPIRED
                told.append(str(error))
                raise
            raise AssertionError("it is cancelled")

        assert await run_in_sessions(stage.connect, work) == "done"
        first, second = stage.clients
        assert told == [f"session 0x{first.session_id:x} has expired"]
        assert first.session_id != second.session_id

    play(scenario)


@pytest.mark.parametrize("ending", ["call", "lock", "group", "swallow"])
def test_every_way_in_which_a_body_learns_of_the_expiry_begins_it_again(ending: str) -> None:
    async def scenario(stage: Stage) -> None:
        async def work(client: Client) -> int:
            if len(stage.clients) == 3:
                return 3
            if ending == "call":
                await stage.expire(client)
                await client.sync()
            elif ending == "lock":
                async with Lock(client, "/lock"):
                    await stage.expire(client)
                    await asyncio.sleep(1000)
            elif ending == "group":
                async with asyncio.TaskGroup() as group:
                    await stage.expire(client)
                    for _ in range(3):
                        group.create_task(_sync(client))
            else:
                await stage.expire(client)
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(1000)
                # It goes on, and is cancelled again.
                await asyncio.sleep(1000)
            raise AssertionError("it does not come here")

        assert await run_in_sessions(stage.connect, work) == 3

    play(scenario)


async def _sync(client: Client) -> None:
    while True:
        await client.sync()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_locked", [True, False])
def test_a_body_that_ends_while_the_session_may_be_over_begins_again(is_locked: bool) -> None:
    async def scenario(stage: Stage) -> None:
        async def work(client: Client) -> int:
            if len(stage.clients) > 1:
                return len(stage.clients)
            stage.proxy.refuse(3 * TIMEOUT_S)
            if is_locked:
                async with Lock(client, "/lock"):
                    await asyncio.sleep(1000)
            await client.set("/", b"")
            raise AssertionError("nobody answers")

        assert await run_in_sessions(stage.connect, work) >= 2

    play(scenario)


def test_a_session_that_is_overdue_and_lives_is_kept() -> None:
    async def scenario(stage: Stage) -> None:
        async def work(client: Client) -> list[SessionState]:
            states: list[SessionState] = []
            client.add_listener(states.append)
            # The server is told that somebody is there; the client hears nothing.
            stage.proxy.blackhole(paddock.testing.Direction.TO_CLIENT)
            await asyncio.sleep(1.1 * TIMEOUT_S)
            stage.proxy.heal()
            await client.wait_connected()
            await client.sync()
            return states

        states = await run_in_sessions(stage.connect, work)
        assert SessionState.OVERDUE in states
        assert len(stage.clients) == 1

    play(scenario)


def test_what_is_no_expiry_is_raised() -> None:
    async def scenario(stage: Stage) -> None:
        async def fail_in_cleanup(client: Client) -> None:
            await stage.expire(client)
            try:
                await asyncio.sleep(1000)
            finally:
                raise ValueError("of its own")

        async def fail_in_part(client: Client) -> None:
            await stage.expire(client)
            raise ExceptionGroup("two", [SessionExpiredError("sync"), ValueError("of its own")])

        async def lose_a_node(client: Client) -> None:
            async with Lock(client, "/lock") as grant:
                await client.delete(grant.path)
                await asyncio.sleep(1000)

        async def close_it(client: Client) -> None:
            await client.close()
            await client.sync()

        async def use_another(client: Client) -> None:
            async with paddock.connect(stage.server.hosts) as other:
                await stage.expire(other)
                await other.sync()

        async def meet_a_lost_reply(client: Client) -> None:
            raise ConnectionLostError("set", "/")

        for work, error in (
            (fail_in_cleanup, ValueError),
            (fail_in_part, ExceptionGroup),
            (lose_a_node, GrantLostError),
            (close_it, SessionExpiredError),
            (use_another, SessionExpiredError),
            (meet_a_lost_reply, ConnectionLostError),
        ):
            stage.clients.clear()
            with pytest.raises(error):
                await run_in_sessions(stage.connect, work)
            assert len(stage.clients) == 1

    play(scenario)


def test_a_result_counts_although_the_session_is_over() -> None:
    async def scenario(stage: Stage) -> None:
        async def work(client: Client) -> str:
            await stage.expire(client)
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                return "done"
            raise AssertionError("it is cancelled")

        assert await run_in_sessions(stage.connect, work) == "done"
        # Nothing of the cancellation is left.
        await asyncio.sleep(100)

    play(scenario)


def test_the_deadline_and_the_cancellation_of_the_caller_win() -> None:
    async def scenario(stage: Stage) -> None:
        async def last_for_ever(client: Client) -> None:
            if len(stage.clients) == 1:
                await stage.expire(client)
            try:
                await asyncio.sleep(1000)
            finally:
                # An error of the session on the way out is no reason to begin again.
                if len(stage.clients) == 2:
                    await stage.expire(client)
                    while True:
                        await client.sync()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(50):
                await run_in_sessions(stage.connect, last_for_ever)
        assert len(stage.clients) == 2

        stage.clients.clear()

        async def wait(client: Client) -> None:
            await asyncio.sleep(1000)

        running = asyncio.create_task(run_in_sessions(stage.connect, wait))
        await asyncio.sleep(1)
        # Both at once.
        await stage.expire(stage.clients[0])

        def cancel(state: SessionState) -> None:
            running.cancel()

        stage.clients[0].add_listener(cancel)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(stage.clients) == 1

    play(scenario)


def test_no_server_for_long_is_waited_for_but_not_at_the_first_time() -> None:
    async def scenario(stage: Stage) -> None:
        async def work(client: Client) -> int:
            if len(stage.clients) == 1:
                await stage.expire(client)
                try:
                    await asyncio.sleep(1000)
                finally:
                    stage.proxy.refuse(10 * TIMEOUT_S)
            return len(stage.clients)

        stage.proxy.refuse()
        with pytest.raises(ConnectionLostError, match="connect: no server gave us a session"):
            await run_in_sessions(stage.connect, work)
        stage.proxy.heal()
        stage.clients.clear()
        assert await run_in_sessions(stage.connect, work) > 5

    play(scenario)


def test_sessions_that_end_at_once_are_opened_with_growing_pauses() -> None:
    async def scenario(stage: Stage) -> None:
        async def work(client: Client) -> None:
            await stage.expire(client)
            await asyncio.sleep(1000)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await run_in_sessions(stage.connect, work)
        assert 20 < len(stage.clients) < 100

    play(scenario)


def test_credentials_that_are_refused_end_it() -> None:
    async def scenario(stage: Stage) -> None:
        async def work(client: Client) -> None:
            client.add_auth("nobody knows this", b"").add_done_callback(lambda one: one.exception())
            await asyncio.sleep(1000)

        with pytest.raises(AuthenticationError):
            await run_in_sessions(stage.connect, work)
        assert len(stage.clients) == 1

    play(scenario)


def test_programs_nest() -> None:
    async def scenario(stage: Stage) -> None:
        runs = {"outer": 0, "inner": 0}

        async def outer(client: Client) -> str:
            runs["outer"] += 1

            async def inner(own: Client) -> str:
                runs["inner"] += 1
                if runs["inner"] == 1:
                    await stage.expire(own)
                elif runs["inner"] == 2:
                    await stage.expire(client)
                elif runs["inner"] == 3:
                    await asyncio.gather(stage.expire(own), stage.expire(client))
                else:
                    return "done"
                await asyncio.sleep(1000)
                raise AssertionError("it is cancelled")

            return await run_in_sessions(stage.connect, inner)

        assert await run_in_sessions(stage.connect, outer) == "done"
        assert runs == {"outer": 3, "inner": 4} or runs == {"outer": 2, "inner": 4}

    play(scenario)


def test_what_connect_returns_has_to_be_a_client() -> None:
    async def scenario(stage: Stage) -> None:
        async def work(client: Client) -> None:
            raise AssertionError("it does not come here")

        with pytest.raises(InvalidArgumentError, match="connect: expected"):
            await run_in_sessions(lambda: None, work)  # type: ignore[arg-type, return-value]

    play(scenario)
