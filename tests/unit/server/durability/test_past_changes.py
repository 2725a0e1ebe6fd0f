"""The process that reads the past for change feeds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock.server.connections.feeds import HistoryGone, PastPage
from paddock.server.durability import past_changes
from paddock.server.durability.past_changes import HistoryPages
from paddock.state.access import NOBODY
from tests.unit.history.folder import PastFolder

EVERYTHING = 1 << 30


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with PastFolder(tmp_path / "data") as folder:
        client = folder.world.open()
        client.create(b"/a", b"1")
        folder.snapshot()
        client.set(b"/a", b"2")
    return tmp_path / "data"


def test_a_process_that_has_ended_is_started_again(data: Path) -> None:
    async def main() -> None:
        pages = HistoryPages(data)
        first = await pages.read(b"/", 0, 3, EVERYTHING, NOBODY)
        assert first.until == 3
        process = pages._process
        assert process is not None
        assert (await pages.read(b"/", 2, 3, EVERYTHING, NOBODY)).until == 3
        assert pages._process is process
        process.kill()
        await process.wait()
        assert await pages.read(b"/", 0, 3, EVERYTHING, NOBODY) == first
        await pages.close()
        with pytest.raises(RuntimeError, match="the server stops"):
            await pages.read(b"/", 0, 3, EVERYTHING, NOBODY)

    asyncio.run(main())


def test_the_answer_to_a_request_that_was_given_up_is_nobody_elses(data: Path) -> None:
    async def main() -> None:
        pages = HistoryPages(data)
        asking = asyncio.create_task(pages.read(b"/", 0, 3, EVERYTHING, NOBODY))
        # It is asked, and the answer takes a process to start.
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.wait([asking])
        process = pages._process
        (change,) = [await pages.read(b"/", 2, 3, EVERYTHING, NOBODY)]
        assert (change.until, change.changes.count(b"/a")) == (3, 1)
        # It was not ended for that.
        assert pages._process is process is not None
        given_up = asyncio.create_task(pages.read(b"/", 0, 3, EVERYTHING, NOBODY))
        await asyncio.sleep(0)
        given_up.cancel()
        await pages.close()
        assert not pages._exchanges

    asyncio.run(main())


def test_a_process_that_is_asked_is_not_ended_for_want_of_requests(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        pages = HistoryPages(data)
        first = await pages.read(b"/", 0, 3, EVERYTHING, NOBODY)
        process = pages._process
        exchange = past_changes._exchange

        async def long(*request: Any) -> Any:
            # The time without requests would be over before the answer comes.
            if pages._idle is not None:
                pages._end()
            return await exchange(*request)

        monkeypatch.setattr(past_changes, "_exchange", long)
        assert await pages.read(b"/", 0, 3, EVERYTHING, NOBODY) == first
        assert pages._process is process is not None
        await pages.close()

    asyncio.run(main())


@pytest.mark.source
def test_what_is_gone_and_what_never_comes_are_told(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_changes, "_WRITTEN_SECONDS", 0.0)

    async def main() -> None:
        pages = HistoryPages(data)
        (data / "log" / f"{1:020d}.log").unlink()
        with pytest.raises(HistoryGone) as caught:
            await pages.read(b"/", 1, 3, EVERYTHING, NOBODY)
        assert caught.value.oldest == 2
        # Nothing was looked at: who asked knows what to do.
        assert await pages.read(b"/", 99, 100, EVERYTHING, NOBODY) == PastPage(b"", 99, 0)
        await pages.close()

    asyncio.run(main())
