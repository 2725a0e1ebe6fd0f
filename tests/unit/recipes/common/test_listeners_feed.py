"""News for readers of any pace: each gets what is new, and what nobody reads is kept by nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from paddock.recipes.common.listeners import _KEPT_MAX, Feed

_LAST = 0


def stream_of(feed: Feed[int]) -> AsyncIterator[int]:
    return feed.stream(lambda news: news == _LAST)


def test_a_reader_gets_the_last_one_and_every_newer_one_to_the_end() -> None:
    async def scenario() -> None:
        feed = Feed[int]()
        early = stream_of(feed)
        feed.publish(1)
        feed.publish(2)
        late = stream_of(feed)
        feed.publish(3)
        feed.publish(_LAST)
        assert [one async for one in early] == [1, 2, 3, _LAST]
        assert [one async for one in late] == [2, 3, _LAST]
        assert [one async for one in stream_of(feed)] == [_LAST]

    asyncio.run(scenario())


def test_who_waits_is_woken_by_the_next_one() -> None:
    async def scenario() -> None:
        feed = Feed[int]()
        streams = [stream_of(feed), stream_of(feed)]
        waiting = [asyncio.ensure_future(anext(one)) for one in streams]
        await asyncio.sleep(0)
        feed.publish(7)
        assert await asyncio.gather(*waiting) == [7, 7]

    asyncio.run(scenario())


def test_who_is_far_behind_goes_on_with_the_oldest_that_is_kept() -> None:
    async def scenario() -> None:
        feed = Feed[int]()
        stream = stream_of(feed)
        for number in range(1, _KEPT_MAX + 11):
            feed.publish(number)
        feed.publish(_LAST)
        seen = [one async for one in stream]
        assert seen == [*range(12, _KEPT_MAX + 11), _LAST]

    asyncio.run(scenario())
