"""Who is told of a session's state, and in which order."""

from __future__ import annotations

import asyncio

from paddock.client.session.state_publisher import StatePublisher
from paddock.client.states import SessionState


def test_a_state_that_comes_while_others_are_told_waits_for_its_turn() -> None:
    async def main() -> None:
        announcer = StatePublisher(asyncio.get_running_loop())
        first: list[SessionState] = []
        last: list[SessionState] = []

        def react(state: SessionState) -> None:
            first.append(state)
            if state is SessionState.CONNECTED:
                announcer.publish(SessionState.DISCONNECTED)
                assert announcer.state is SessionState.DISCONNECTED

        announcer.add(react)
        announcer.add(last.append)
        announcer.publish(SessionState.CONNECTED)
        assert first == last == [SessionState.CONNECTED, SessionState.DISCONNECTED]

    asyncio.run(main())


def test_whoever_is_removed_by_an_earlier_listener_is_not_told() -> None:
    async def main() -> None:
        announcer = StatePublisher(asyncio.get_running_loop())
        heard: list[SessionState] = []
        announcer.add(lambda state: announcer.remove(heard.append))
        announcer.add(heard.append)
        announcer.publish(SessionState.CONNECTED)
        assert heard == []

    asyncio.run(main())


def test_the_same_state_again_is_no_news() -> None:
    async def main() -> None:
        announcer = StatePublisher(asyncio.get_running_loop())
        heard: list[SessionState] = []
        announcer.add(heard.append)
        announcer.publish(SessionState.CONNECTED)
        announcer.publish(SessionState.CONNECTED)
        assert heard == [SessionState.CONNECTED]

    asyncio.run(main())
