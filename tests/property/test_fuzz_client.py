"""A client that is sent anything stays a client: every call ends, with an answer or our error.

The server's bytes are made of good frames, spoiled ones and noise, cut anywhere, on one connection
after the other, until it becomes a good server. In virtual time.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paddock.api import connect
from paddock.client.client import Client
from paddock.client.states import Event
from paddock.errors import PaddockError
from paddock.testing import run_virtually
from tests.property.bounds import examples
from tests.support.scripted import (
    SESSION_ID,
    ScriptedServer,
    Talk,
    buffer,
    event,
    good_body,
    handshake_reply,
    reply,
)

TIMEOUT_S = 9.0

numbers = st.sampled_from([-(2**31), -112, -101, -8, -4, -2, -1, 0, 1, 2, 3, 5, 2**31 - 1])
bodies = st.one_of(
    st.binary(max_size=80),
    st.sampled_from([good_body(operation) for operation in range(-11, 108)]),
)
frames = st.one_of(
    st.builds(
        lambda xid, code, body: reply(xid, body, code=code),
        st.one_of(numbers, st.integers(1, 20)),
        numbers,
        bodies,
    ),
    st.builds(event, numbers, st.sampled_from([b"/", b"/n", b"/n/m", b"", b"n", b"/\xff", b"//"])),
    st.builds(
        handshake_reply,
        st.sampled_from([0, SESSION_ID, -1]),
        st.sampled_from([-1, 0, 400, 9000, 2**31 - 1]),
        st.sampled_from([None, bytes(16)]),
    ),
    st.binary(max_size=40),
)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Draw a good frame with something cut out, put in or changed."""
    whole = buffer(draw(frames))
    place = draw(st.integers(0, len(whole)))
    end = draw(st.integers(place, len(whole)))
    return whole[:place] + draw(st.binary(max_size=6)) + whole[end:]


chunks = st.one_of(frames.map(buffer), spoiled(), st.binary(max_size=60))
# What comes on one connection; whether the handshake is a good one; whether it is closed then.
connections = st.tuples(st.booleans(), st.lists(chunks, max_size=8), st.booleans())


@examples(150)
@given(st.lists(connections, min_size=1, max_size=4), st.integers(0, 2**32))
def test_any_bytes_of_a_server_leave_a_client_whose_calls_all_end(
    conversations: list[tuple[bool, list[bytes], bool]], seed: int
) -> None:
    async def script(talk: Talk) -> None:
        if talk.number >= len(conversations):
            await talk.grant()
            await talk.serve()
        is_greeted, said, closes = conversations[talk.number]
        if is_greeted:
            await talk.grant()
        for chunk in said:
            # Between requests, so that the client is at different places.
            talk.writer.write(chunk)
            await asyncio.sleep(0.01)
        if not closes:
            await talk.wait_left()

    async def main() -> list[str]:
        problems: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: problems.append(f"{context['message']} {context.get('exception')}")
        )
        # A server may grant as much as 24 days, and then say nothing: what is long is no hanging.
        async with asyncio.timeout(1e9), ScriptedServer(script) as server:
            client = connect(server.hosts, session_timeout=TIMEOUT_S, random=Random(seed))
            try:
                await client.start()
            except PaddockError:
                assert client.state.is_final
            answers: list[Any] = []
            for _ in range(3):
                answers += await asyncio.gather(*every_call(client), return_exceptions=True)
            waiting = every_call(client)
            await client.close()
            answers += await asyncio.gather(*waiting, return_exceptions=True)
            assert client.state.is_final
        for answer in answers:
            assert not isinstance(answer, BaseException) or isinstance(answer, PaddockError)
        session = client._session
        assert session.dispatcher.transport is None
        assert not session.in_flight.unsent
        assert not session.in_flight.sent
        assert session.watches.everybody() == []
        return problems

    assert run_virtually(main()) == []


def every_call(client: Client) -> list[asyncio.Future[Any]]:
    def watcher(event: Event) -> None:
        assert (event.path is None) == (event.type == -1)

    return [
        client.get("/n", watch=watcher),
        client.exists("/n", watch=watcher),
        client.children("/n", watch=watcher),
        client.set("/n", b""),
        client.set("/n", b"marked", version=0, mark=b"marked"),
        client.create("/n"),
        client.create("/n/m", protected=True, make_parents=True),
        client.delete_tree("/n"),
        client.add_watch("/n", watcher, recursive=True),
        client.remove_watches("/n"),
        client.get_acl("/n"),
        client.who_am_i(),
        client.add_auth("digest", b"a:b"),
        asyncio.ensure_future(client.transaction().set("/n", b"").commit()),
    ]
