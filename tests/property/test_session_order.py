"""A read sees its session's earlier writes and no later ones, however all of it arrives."""

from __future__ import annotations

import asyncio
import itertools

from hypothesis import given
from hypothesis import strategies as st

from paddock.errors import NO_NODE, OK
from tests.support import requests as rq
from tests.support.records import Request
from tests.unit.server.harness import Harness, encoded, turn

WRITES = st.sampled_from(["create", "set", "delete"])
READS = st.sampled_from(["get", "exists", "get"])


@given(
    kinds=st.lists(st.one_of(WRITES, READS), min_size=1, max_size=25),
    cuts=st.lists(st.integers(0, 2000), max_size=6),
    settles=st.lists(st.booleans(), min_size=7, max_size=7),
    others=st.lists(st.integers(0, 25), max_size=4),
)
def test_a_pipelined_read_sees_exactly_the_writes_before_it(
    kinds: list[str], cuts: list[int], settles: list[bool], others: list[int]
) -> None:
    """`cuts` say how the bytes are cut into reads, `settles` when the log is heard of."""
    asyncio.run(_scenario(kinds, cuts, settles, others))


async def _scenario(
    kinds: list[str], cuts: list[int], settles: list[bool], others: list[int]
) -> None:
    harness = Harness()
    client, other = await harness.client(), await harness.client()
    value: bytes | None = None
    stream = b""
    # What each request must be answered: an error, and the data for a get.
    expected: list[tuple[int, bytes | None]] = []
    for xid, kind in enumerate(kinds, 1):
        request, error, value, data = _step(kind, xid, value)
        stream += encoded(xid, request)
        expected.append((error, data))
    edges = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        client.receive(stream[start:end])
        if number in others:
            other.send(rq.create(f"/other{number}"), rq.get_children("/"))
        if settles[number % len(settles)]:
            await turn()
            if harness.log.number is not None:
                harness.log.settle()
                await turn()
    await harness.settle()
    replies = client.replies()
    assert [xid for xid, _, _ in replies] == list(range(1, len(kinds) + 1))
    for kind, (error, data), (_, answered, body) in zip(kinds, expected, replies, strict=True):
        assert answered == error, kind
        if data is not None:
            assert body[4 : 4 + len(data)] == data


def _step(
    kind: str, number: int, value: bytes | None
) -> tuple[Request, int, bytes | None, bytes | None]:
    """Return a request, its expected error, the value after it, and what a get must read."""
    written = b"%06d" % number
    if kind == "create":
        return rq.create("/n", written), OK if value is None else -110, value or written, None
    if kind == "set":
        error = NO_NODE if value is None else OK
        return rq.set_data("/n", written), error, None if value is None else written, None
    if kind == "delete":
        return rq.delete("/n"), NO_NODE if value is None else OK, None, None
    if kind == "get":
        return rq.get_data("/n"), NO_NODE if value is None else OK, value, value
    return rq.exists("/n"), NO_NODE if value is None else OK, value, None
