"""What an observer is told of requests: each once, with the reply's own zxid, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any

import pytest

import paddock
from paddock import Client, ConnectionLostError, NoNodeError, SessionState, UsageError
from paddock.client.observer import Follow, ObservedSession, Observer, WaitObserver
from paddock.client.states import EventType
from paddock.errors import InvalidArgumentError
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.support.scripted import ScriptedServer, Talk

_WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Notes:
    """An observer that notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[NotedCall] = []
        self.states: list[SessionState] = []
        self.events: list[EventType] = []
        self.session: ObservedSession | None = None

    def observe(self, session: ObservedSession) -> Notes:
        self.session = session
        return self

    def call(self, operation: str, path: str | None) -> NotedCall:
        self.calls.append(NotedCall(operation, path))
        return self.calls[-1]

    def composed(self, operation: str, path: str | None) -> AbstractContextManager[Follow]:
        return nullcontext(lambda future: future)

    def acquire(self, kind: str, path: str) -> AbstractContextManager[WaitObserver]:
        raise AssertionError("there is no lock")

    def state(self, state: SessionState) -> None:
        self.states.append(state)

    def event(self, kind: EventType) -> None:
        self.events.append(kind)

    def background(self) -> Context:
        return copy_context()

    def of(self, operation: str) -> list[NotedCall]:
        return [one for one in self.calls if one.operation == operation]


class NotedCall:
    def __init__(self, operation: str, path: str | None) -> None:
        self.operation = operation
        self.path = path
        self.who = _WHO.get()
        self.answers: list[tuple[int, int]] = []
        self.ends: list[tuple[BaseException | None, int]] = []

    def answered(self, xid: int, zxid: int) -> None:
        self.answers.append((xid, zxid))

    def end(self, error: BaseException | None, losses: int = 0) -> None:
        self.ends.append((error, losses))


def observed(scenario: Callable[[Client, Notes, FaultProxy], Any]) -> Notes:
    """Run a scenario with a client that is observed, behind a proxy; return what was noted."""
    notes = Notes()

    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with paddock.connect(proxy.hosts, random=Random(1), observer=notes) as client:
                await scenario(client, notes, proxy)

    run_virtually(main())
    return notes


def test_a_request_is_told_of_once_with_its_own_answer() -> None:
    async def scenario(client: Client, notes: Notes, _: FaultProxy) -> None:
        asked = [client.create_with_stat(f"/{one}") for one in range(5)]
        czxids = [(await one).stat.czxid for one in asked]
        calls = notes.of("create")
        assert [one.path for one in calls] == [f"/{one}" for one in range(5)]
        assert [one.answers for one in calls] == [[(one + 1, czxids[one])] for one in range(5)]
        assert [one.ends for one in calls] == [[(None, 0)]] * 5
        with pytest.raises(NoNodeError):
            await client.get("/nothing")
        [(error, losses)] = notes.of("get")[0].ends
        assert losses == 0
        assert isinstance(error, NoNodeError)

    observed(scenario)


def test_one_that_is_sent_again_is_the_same_call() -> None:
    async def scenario(client: Client, notes: Notes, proxy: FaultProxy) -> None:
        proxy.when(operation="get").cut_after()
        await client.get("/", watch=print)
        assert [one.ends for one in notes.of("get")] == [[(None, 1)]]

    notes = observed(scenario)
    connected, closed = SessionState.CONNECTED, SessionState.CLOSED
    assert notes.states == [connected, SessionState.DISCONNECTED, connected, closed]


def test_every_call_ends_however_the_client_does() -> None:
    async def scenario(client: Client, notes: Notes, proxy: FaultProxy) -> None:
        proxy.blackhole()
        left, given_up = client.get("/"), client.get("/")
        given_up.cancel()
        await client.close()
        with pytest.raises(ConnectionLostError):
            await left

    notes = observed(scenario)
    assert len(notes.of("get")) == 2
    assert [len(one.ends) for one in notes.calls] == [1] * len(notes.calls)
    kinds = [type(one.ends[0][0]) for one in notes.of("get")]
    assert kinds == [ConnectionLostError, asyncio.CancelledError]


def test_what_cannot_be_asked_is_no_call() -> None:
    async def main() -> None:
        notes = Notes()
        client = paddock.connect("127.0.0.1:1", observer=notes)
        with pytest.raises(UsageError):
            client.get("/")
        assert notes.calls == []

    asyncio.run(main())


def test_a_session_that_is_not_granted_is_a_call_that_failed() -> None:
    notes = Notes()

    async def lead(talk: Talk) -> None:
        await talk.wait_left()

    async def main() -> None:
        async with ScriptedServer(lead) as server:
            with pytest.raises(ConnectionLostError):
                await paddock.connect(server.hosts, observer=notes).start()

    run_virtually(main())
    [(error, _)] = notes.of("connect")[0].ends
    assert isinstance(error, ConnectionLostError)


def test_a_call_is_told_in_the_context_of_its_caller() -> None:
    async def scenario(client: Client, notes: Notes, _: FaultProxy) -> None:
        async def ask(who: str) -> None:
            _WHO.set(who)
            await client.get(f"/{who}")

        asking = (ask(who) for who in ("alice", "bob"))
        await asyncio.gather(*asking, return_exceptions=True)
        assert [(one.who, one.path) for one in notes.of("get")] == [
            ("alice", "/alice"),
            ("bob", "/bob"),
        ]

    observed(scenario)


def test_events_of_watches_are_told_and_those_of_the_session_are_states() -> None:
    async def scenario(client: Client, notes: Notes, _: FaultProxy) -> None:
        await client.exists("/a", watch=print)
        await client.create("/a")

    notes = observed(scenario)
    assert notes.events == [EventType.CREATED]
    assert notes.states == [SessionState.CONNECTED, SessionState.CLOSED]


def test_the_session_says_where_it_is() -> None:
    async def scenario(client: Client, notes: Notes, proxy: FaultProxy) -> None:
        session = notes.session
        assert session is not None
        assert (session.id, session.server) == (client.session_id, proxy.address)
        assert (session.chroot, session.metrics().connections) == ("", 1)

    notes = observed(scenario)
    assert notes.session is not None
    assert notes.session.server is None


def test_another_client_has_the_same_observer() -> None:
    async def scenario(client: Client, notes: Notes, _: FaultProxy) -> None:
        async with client.another():
            assert len(notes.of("connect")) == 2

    observed(scenario)


def test_what_is_no_observer_is_refused() -> None:
    async def main() -> None:
        wrong: Any = print
        with pytest.raises(InvalidArgumentError, match="observer: expected an Observer, not <bu"):
            paddock.connect("127.0.0.1", observer=wrong)
        assert isinstance(Notes(), Observer)

    asyncio.run(main())
