"""What is known of a line by who was alone in it: in which order news and answers may come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.client.watches import Watcher
from paddock.protocol.records import Stat
from paddock.recipes._solitude import Solitude

GONE = Event(SessionState.CONNECTED, EventType.DELETED, "/line")


class Asked(Client):
    """A client that is asked whether the parent is there, and never answers by itself."""

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []
        self.answers: list[asyncio.Future[Stat | None]] = []
        self.has_removed = False

    def exists(self, path: str, *, watch: object = None) -> asyncio.Future[Stat | None]:
        assert path == "/line"
        assert callable(watch)
        self.watchers.append(watch)
        self.answers.append(asyncio.get_running_loop().create_future())
        return self.answers[-1]

    def has_watcher(self, path: str, watcher: Watcher) -> bool:
        return not self.has_removed

    def forget_watcher(self, watcher: Watcher) -> None:
        pass


def go(scenario: Callable[[Asked, Solitude], Awaitable[None]]) -> None:
    async def main() -> None:
        client = Asked()
        await scenario(client, Solitude(client, "/line"))

    asyncio.run(main())


def come_and_go(solitude: Solitude, number: int) -> None:
    solitude.came(number, is_alone=True)
    solitude.left(number)


async def become_sure(client: Asked, solitude: Solitude) -> None:
    come_and_go(solitude, 6)
    assert not solitude.is_likely()
    client.answers[-1].set_result(Stat(*[0] * 11))
    await asyncio.sleep(0)
    come_and_go(solitude, 7)


def test_the_next_number_is_certainty_and_any_other_is_not() -> None:
    async def scenario(client: Asked, solitude: Solitude) -> None:
        await become_sure(client, solitude)
        assert solitude.is_likely()
        assert solitude.is_certain(8)
        # Our own node is there now.
        assert not solitude.is_likely()
        assert not solitude.is_certain(9)
        assert solitude.is_likely() is False
        come_and_go(solitude, 9)
        assert solitude.is_likely()
        assert not solitude.is_certain(11)
        assert not solitude.is_likely()

    go(scenario)


def test_what_has_not_left_is_there() -> None:
    async def scenario(client: Asked, solitude: Solitude) -> None:
        await become_sure(client, solitude)
        solitude.came(8, is_alone=True)
        solitude.left(7)
        assert not solitude.is_likely()
        assert not solitude.is_certain(9)

    go(scenario)


def test_news_between_the_create_and_its_answer_count() -> None:
    async def scenario(client: Asked, solitude: Solitude) -> None:
        await become_sure(client, solitude)
        assert solitude.is_likely()
        client.watchers[-1](GONE)
        assert not solitude.is_certain(8)

    go(scenario)


def test_a_watch_that_has_fired_before_its_answer_was_looked_at_is_none() -> None:
    async def scenario(client: Asked, solitude: Solitude) -> None:
        come_and_go(solitude, 6)
        assert not solitude.is_likely()
        client.answers[-1].set_result(Stat(*[0] * 11))
        # Both came with one read, and whoever waits for the answer has not run yet.
        client.watchers[-1](GONE)
        await asyncio.sleep(0)
        come_and_go(solitude, 7)
        assert not solitude.is_likely()
        assert len(client.answers) == 2

    go(scenario)


def test_a_watch_that_somebody_has_removed_is_none() -> None:
    async def scenario(client: Asked, solitude: Solitude) -> None:
        await become_sure(client, solitude)
        assert solitude.is_likely()
        client.has_removed = True
        assert not solitude.is_certain(8)
        come_and_go(solitude, 8)
        # It is set again, and counts from now on.
        assert not solitude.is_likely()
        client.has_removed = False
        assert not solitude.is_certain(9)

    go(scenario)


def test_without_a_watch_nothing_is_known() -> None:
    async def scenario(client: Asked, solitude: Solitude) -> None:
        come_and_go(solitude, 6)
        assert not solitude.is_likely()
        for answer in ("missing", "lost", "given up"):
            asked = client.answers[-1]
            if answer == "missing":
                asked.set_result(None)
            elif answer == "lost":
                asked.set_exception(ConnectionResetError())
            else:
                asked.cancel()
            await asyncio.sleep(0)
            assert not solitude.is_likely()
            assert not solitude.is_certain(7)
            come_and_go(solitude, 6)
            assert not solitude.is_likely()

    go(scenario)
