"""The conversation of one connection: its bounds, its ends, and steps that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from paddock.protocol.acl import SUPER, Identity
from paddock.server.sasl.conversation import (
    STEPS_MAX,
    TOKEN_BYTES_MAX,
    Conversation,
    Offer,
    Verdict,
)
from paddock.server.sasl.mechanism import SaslError, Step

DEADLINE_S: Final = 30.0


class Script:
    """A mechanism that does what tokens say, and an exchange of it at the same time."""

    def __init__(self, name: str = "SCRIPT", *, blocks: bool = False, first: bytes = b"") -> None:
        self.name = name
        self.blocks = blocks
        self.gate = threading.Event()
        self.tokens: list[bytes] = []
        self.threads: set[int] = set()
        self.started = self.closed = 0
        self.on_close: Callable[[], None] = lambda: None
        self._first = first

    def accepts(self, first: bytes) -> bool:
        return first.startswith(self._first)

    def start(self) -> Script:
        self.started += 1
        return self

    def step(self, token: bytes) -> Step:
        if self.blocks:
            self.gate.wait(DEADLINE_S)
        self.tokens.append(token)
        self.threads.add(threading.get_ident())
        if token == b"wrong":
            raise SaslError("as the test wants it")
        if token == b"broken":
            raise RuntimeError("as the test wants it")
        return Step(b"proof", "bob") if token == b"done" else Step(b"to " + token)

    def close(self) -> None:
        self.closed += 1
        self.on_close()


def receive(conversation: Conversation, token: bytes) -> Verdict:
    verdict = conversation.receive(token, lambda _: pytest.fail("it does not block"))
    assert verdict is not None
    return verdict


def test_steps_are_answered_until_an_identity_is_proved() -> None:
    script = Script()
    conversation = Conversation(Offer((script,)))
    assert receive(conversation, b"") == Verdict(b"to ")
    assert receive(conversation, b"a") == Verdict(b"to a")
    assert script.closed == 0
    assert receive(conversation, b"done") == Verdict(b"proof", (Identity("sasl", "bob"),))
    assert (script.started, script.closed) == (1, 1)


def test_a_superuser_is_super_as_well() -> None:
    conversation = Conversation(Offer((Script(),), frozenset({"ann", "bob"})))
    assert receive(conversation, b"done").identities == (Identity("sasl", "bob"), SUPER)
    conversation = Conversation(Offer((Script(),), frozenset({"ann"})))
    assert receive(conversation, b"done").identities == (Identity("sasl", "bob"),)


@pytest.mark.parametrize(
    ("token", "failure"),
    [
        (b"wrong", "SASL SCRIPT: as the test wants it"),
        (b"broken", "SASL SCRIPT: failed unexpectedly: RuntimeError: as the test wants it"),
    ],
)
def test_a_failure_is_final(token: bytes, failure: str) -> None:
    script = Script()
    conversation = Conversation(Offer((script,)))
    receive(conversation, b"")
    assert receive(conversation, token) == Verdict(None, (), failure, is_final=True)
    assert script.closed == 1


@pytest.mark.parametrize("last", [b"done", b"wrong"])
def test_there_is_one_conversation(last: bytes) -> None:
    script = Script()
    conversation = Conversation(Offer((script,)))
    receive(conversation, last)
    for token in (b"", b"done"):
        verdict = receive(conversation, token)
        assert verdict == Verdict(None, (), "SASL SCRIPT: the conversation is over", is_final=True)
    assert script.tokens == [last]


def test_who_fails_may_stay_if_the_settings_say_so_and_gets_no_second_chance() -> None:
    script = Script()
    conversation = Conversation(Offer((script,), allows_failed=True))
    for token in (b"wrong", b"", b"done"):
        verdict = receive(conversation, token)
        assert verdict.failure
        assert (verdict.reply, verdict.identities, verdict.is_final) == (None, (), False)
    assert script.tokens == [b"wrong"]


def test_steps_and_bytes_are_bounded() -> None:
    script = Script()
    conversation = Conversation(Offer((script,)))
    for _ in range(STEPS_MAX):
        assert not receive(conversation, b"a").failure
    assert receive(conversation, b"a").failure == f"SASL SCRIPT: more than {STEPS_MAX} steps"
    assert len(script.tokens) == STEPS_MAX
    script = Script()
    conversation = Conversation(Offer((script,)))
    assert not receive(conversation, b"a" * TOKEN_BYTES_MAX).failure
    verdict = receive(conversation, b"a" * (TOKEN_BYTES_MAX + 1))
    assert verdict.failure == f"SASL SCRIPT: a token of {TOKEN_BYTES_MAX + 1} bytes"
    assert len(script.tokens) == 1


def test_the_first_token_chooses_the_mechanism() -> None:
    tickets, others = Script("TICKETS", first=b"`"), Script("OTHERS")
    offer = Offer((tickets, others))
    receive(Conversation(offer), b"`a")
    receive(Conversation(offer), b"b")
    conversation = Conversation(offer)
    receive(conversation, b"")
    # Not later ones.
    receive(conversation, b"`a")
    assert tickets.tokens == [b"`a"]
    assert others.tokens == [b"b", b"", b"`a"]
    verdict = receive(Conversation(Offer((tickets,))), b"b")
    assert verdict.failure == "SASL: a first token of no known mechanism"


def test_a_connection_that_closes_ends_its_conversation() -> None:
    script = Script()
    conversation = Conversation(Offer((script,)))
    conversation.close()
    assert script.closed == 0
    conversation = Conversation(Offer((script,)))
    receive(conversation, b"")
    conversation.close()
    conversation.close()
    assert script.closed == 1


def blocking() -> tuple[Script, Offer]:
    script = Script(blocks=True)
    return script, Offer((script,), executor=ThreadPoolExecutor(1))


def test_a_step_that_may_block_runs_in_a_thread_and_is_told_later() -> None:
    script, offer = blocking()

    async def scenario() -> None:
        conversation = Conversation(offer)
        for token, expected in (
            (b"a", Verdict(b"to a")),
            (b"done", Verdict(b"proof", (Identity("sasl", "bob"),))),
        ):
            later = asyncio.get_running_loop().create_future()
            script.gate.clear()
            assert conversation.receive(token, later.set_result) is None
            assert conversation.is_busy
            script.gate.set()
            assert await later == expected
            assert not conversation.is_busy

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))
    assert threading.get_ident() not in script.threads
    assert script.closed == 1
    offer.close()


def test_what_a_step_proves_after_its_connection_was_closed_is_dropped() -> None:
    script, offer = blocking()

    async def scenario() -> None:
        conversation, closed = Conversation(offer), asyncio.Event()
        script.on_close = closed.set
        assert conversation.receive(b"done", lambda _: pytest.fail("it is closed")) is None
        conversation.close()
        # Not while the thread uses it.
        assert script.closed == 0
        script.gate.set()
        await closed.wait()
        assert script.closed == 1

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))
    offer.close()


def test_no_thread_works_for_connections_that_are_closed() -> None:
    script, offer = blocking()

    async def scenario() -> None:
        first, others = Conversation(offer), [Conversation(offer) for _ in range(5)]
        later = asyncio.get_running_loop().create_future()
        first.receive(b"a", later.set_result)
        for one in others:
            one.receive(b"b", lambda _: pytest.fail("it is closed"))
            one.close()
        honest = asyncio.get_running_loop().create_future()
        Conversation(offer).receive(b"c", honest.set_result)
        script.gate.set()
        await later
        await honest
        assert script.tokens == [b"a", b"c"]
        assert script.closed == len(others)

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))
    offer.close()


def test_a_step_that_never_ran_is_dropped_when_the_server_stops() -> None:
    script, offer = blocking()

    async def scenario() -> None:
        first, second, closed = Conversation(offer), Conversation(offer), asyncio.Event()
        later = asyncio.get_running_loop().create_future()
        script.on_close = closed.set
        first.receive(b"a", later.set_result)
        second.receive(b"b", lambda _: pytest.fail("there is no thread for it"))
        offer.close()
        await closed.wait()
        script.gate.set()
        await later

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))
    assert script.tokens == [b"a"]
