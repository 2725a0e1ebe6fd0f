"""What a page is told that takes its events slowly."""

import asyncio

import pytest

from paddock.dashboard import watched
from paddock.dashboard.watched import Stream


def test_a_slow_page_is_told_to_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "QUEUE_MAX", 3)

    async def main() -> None:
        stream = Stream(["/"])
        # The last one comes when it is to read anew already.
        for number in range(5):
            stream.change({"path": f"/{number}"})
        assert await stream.next() == [("resync", {})]
        stream.change({"path": "/5"})
        assert await stream.next() == [("changed", {"path": "/5"})]

    asyncio.run(main())


def test_of_states_and_overviews_the_newest_counts() -> None:
    async def main() -> None:
        stream = Stream(["/"])
        for number in range(3):
            stream.tell("overview", {"number": number})
        stream.change({"path": "/a"})
        assert await stream.next() == [("overview", {"number": 2}), ("changed", {"path": "/a"})]
        stream.close()
        assert await stream.next() == []

    asyncio.run(main())
