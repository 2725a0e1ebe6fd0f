"""When a session is over, in virtual time."""

from __future__ import annotations

import asyncio

from paddock.server.sessions.tracker import Liveness, SessionTracker
from paddock.testing.clock import VirtualClockLoop, run_virtually

TICK = 2.0


class Watchman:
    """Writes down which sessions were expired, and when."""

    def __init__(self) -> None:
        self.expired: list[tuple[int, float]] = []
        self.tracker = SessionTracker(TICK, self._expire)

    def _expire(self, liveness: Liveness) -> None:
        self.expired.append((liveness.session, asyncio.get_running_loop().time()))

    def sessions(self) -> list[int]:
        return [session for session, _ in self.expired]


async def ends_once_after_four_seconds(watchman: Watchman) -> None:
    """See session 1 expire when its four seconds are over, not before, and not again."""
    await asyncio.sleep(3.9)
    assert watchman.sessions() == []
    await asyncio.sleep(TICK + 0.2)
    assert watchman.sessions() == [1]
    await asyncio.sleep(60)
    assert watchman.sessions() == [1]


def test_a_silent_session_expires_within_one_tick_after_its_timeout() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.start()
        for session, timeout in enumerate((4.0, 5.0, 5.9, 6.0, 13.7)):
            watchman.tracker.add(session, timeout)
        await asyncio.sleep(100)
        watchman.tracker.stop()
        for session, timeout in enumerate((4.0, 5.0, 5.9, 6.0, 13.7)):
            ((_, when),) = [one for one in watchman.expired if one[0] == session]
            assert timeout < when <= timeout + TICK + 1e-6

    run_virtually(scenario())


def test_hearing_from_a_session_gives_it_its_whole_timeout_again() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.start()
        liveness = watchman.tracker.add(1, 4.0)
        for _ in range(20):
            await asyncio.sleep(3)
            liveness.heard = watchman.tracker.now()
        assert watchman.sessions() == []
        await asyncio.sleep(4 + TICK + 0.1)
        assert watchman.sessions() == [1]
        watchman.tracker.stop()

    run_virtually(scenario())


def test_silence_does_not_count_while_another_server_may_speak_for_the_session() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.start()
        liveness = watchman.tracker.add(1, 4.0, spared=20.0)
        assert watchman.tracker.deadline(liveness) == 24.0
        await asyncio.sleep(3)
        # That it is heard of here does not make it shorter.
        liveness.heard = watchman.tracker.now()
        await asyncio.sleep(20.9)
        assert watchman.sessions() == []
        await asyncio.sleep(TICK + 0.2)
        assert watchman.sessions() == [1]
        watchman.tracker.stop()

    run_virtually(scenario())


def test_a_session_is_expired_once() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.start()
        watchman.tracker.add(1, 4.0)
        await asyncio.sleep(100)
        assert watchman.sessions() == [1]
        watchman.tracker.stop()

    run_virtually(scenario())


def test_restored_sessions_have_their_whole_timeout_from_the_start_on() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.add(1, 4.0)
        # The replay took a minute.
        await asyncio.sleep(60)
        watchman.tracker.start()
        await ends_once_after_four_seconds(watchman)
        watchman.tracker.stop()

    run_virtually(scenario())


def test_silence_while_we_do_not_read_does_not_count() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.start()
        liveness = watchman.tracker.add(1, 4.0)
        liveness.is_held = True
        await asyncio.sleep(60)
        liveness.is_held = False
        assert watchman.sessions() == []
        await asyncio.sleep(4 + 2 * TICK)
        assert watchman.sessions() == [1]
        watchman.tracker.stop()

    run_virtually(scenario())


def test_time_in_which_our_own_loop_was_late_does_not_count() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        watchman = Watchman()
        watchman.tracker.start()
        watchman.tracker.add(1, 4.0)
        await asyncio.sleep(1)
        loop.stall(30)
        await asyncio.sleep(0)
        await asyncio.sleep(2)
        assert watchman.sessions() == []
        await asyncio.sleep(4 + TICK)
        assert watchman.sessions() == [1]
        watchman.tracker.stop()

    run_virtually(scenario())


def test_a_session_that_is_removed_or_spared_is_not_expired() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.start()
        watchman.tracker.add(1, 4.0)
        watchman.tracker.remove(1)
        liveness = watchman.tracker.add(2, 4.0)
        await asyncio.sleep(10)
        assert watchman.sessions() == [2]
        watchman.tracker.spare(liveness)
        await asyncio.sleep(3)
        assert watchman.sessions() == [2]
        await asyncio.sleep(4)
        assert watchman.sessions() == [2, 2]
        watchman.tracker.stop()

    run_virtually(scenario())


def test_renewing_all_gives_each_its_whole_timeout_also_one_whose_end_was_proposed() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.start()
        for session in (1, 2, 3):
            watchman.tracker.add(session, 8.0 if session == 3 else 4.0)
        watchman.tracker.remove(1)
        await asyncio.sleep(6)
        assert watchman.sessions() == [2]
        watchman.tracker.renew_all()
        await asyncio.sleep(3.5)
        assert watchman.sessions() == [2]
        await asyncio.sleep(100)
        assert watchman.sessions() == [2, 2, 3]
        watchman.tracker.stop()

    run_virtually(scenario())


def test_a_session_that_is_attached_with_a_shorter_timeout_has_only_that() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.start()
        liveness = watchman.tracker.add(1, 40.0)
        await asyncio.sleep(3)
        watchman.tracker.renew(liveness, 4.0)
        await ends_once_after_four_seconds(watchman)
        watchman.tracker.stop()

    run_virtually(scenario())


def test_a_restored_session_that_was_closed_is_not_expired_later() -> None:
    async def scenario() -> None:
        watchman = Watchman()
        watchman.tracker.add(1, 40.0)
        await asyncio.sleep(10)
        watchman.tracker.start()
        watchman.tracker.remove(1)
        await asyncio.sleep(200)
        assert watchman.sessions() == []
        watchman.tracker.stop()

    run_virtually(scenario())
