"""Whatever bytes a client sends, in whatever pieces, its connection survives them or closes.

Nothing is raised to the event loop, what is sent back are whole frames, and others are served.
"""

from __future__ import annotations

import asyncio
import struct
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectResponse, ReplyHeader, WatcherEvent
from paddock.server.connections.request_handler import CLOSED
from tests.property.bounds import examples
from tests.property.messages import connects, encode, int32s, nearly, others, queries, writes
from tests.property.spoiled import mostly, several, spoiled
from tests.support import requests as rq
from tests.support.records import INT
from tests.unit.server.harness import FakeClient, Harness, framed

# Of those that may close the connection there are few, so that the stream goes on.
_requests = nearly(mostly(st.one_of(queries, writes), others, 6))
_frames = st.tuples(mostly(st.integers(1, 50), int32s), _requests).map(
    lambda drawn: framed(struct.pack(">ii", drawn[0], drawn[1][0]) + drawn[1][1])
)
_streams = several(_frames).map(b"".join)
_handshakes = mostly(
    st.just(framed(INT.pack(0) + bytes(8) + INT.pack(6000) + bytes(8) + INT.pack(0))),
    connects.map(lambda request: framed(encode(request))),
)
_whole = st.tuples(_handshakes, _streams).map(b"".join)
any_streams = mostly(mostly(_whole, spoiled(_whole), 4), st.binary(max_size=100))
cut_places = st.lists(st.integers(0, 1500), max_size=10)


@examples(150)
@given(any_streams, cut_places, st.lists(st.booleans(), min_size=1, max_size=8))
def test_any_stream_is_survived(stream: bytes, cuts: list[int], settles: list[bool]) -> None:
    asyncio.run(_send(stream, cuts, settles))


async def _send(stream: bytes, cuts: list[int], settles: list[bool]) -> None:
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: problems.append(f"{context['message']}: {context.get('exception')!r}")
    )
    harness = Harness(max_reply_bytes_per_connection=1 << 20, max_watches_per_session=10)
    other = await harness.client()
    other.send(rq.create("/a"), rq.add_watch("/", 1))
    await harness.settle()
    other.transport.frames()
    client = FakeClient(harness)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for number, (start, end) in enumerate(pairwise(edges)):
        # A transport hands nothing over while it is not read from, nor when it was closed.
        if not client.transport.is_reading_now:
            await harness.settle()
        if not client.transport.is_open or not client.transport.is_reading_now:
            break
        client.receive(stream[start:end])
        if settles[number % len(settles)]:
            await harness.settle()
    await harness.settle()
    assert problems == []
    _check_sent(client)
    # The one that was there before is served as before.
    other.transport.frames()
    other.send(rq.get_data("/"))
    assert [(xid, error) for xid, error, _ in other.replies()] == [(1, 0)]
    # And once it is gone, nothing is left of the stranger.
    client.connection.connection_lost(None)
    await harness.settle()
    assert client.connection not in harness.service.connections
    assert (client.watcher.watch_count, client.watcher.watch_bytes) == (0, 0)


def _check_sent(client: FakeClient) -> None:
    """Read everything that was sent; whole frames, of which the first is the handshake."""
    frames = client.transport.frames()
    if not client.transport.written:
        for number, frame in enumerate(frames):
            reader = Reader(frame)
            if number == 0:
                ConnectResponse.read(reader)
                continue
            header = ReplyHeader.read(reader)
            # A client may number a request as events are, and it may be refused.
            if (header.xid, header.zxid, header.error) == (-1, -1, 0):
                WatcherEvent.read(reader)
    else:
        # A four-letter word was answered, with text.
        assert client.handler.stage == CLOSED
        assert not frames
