"""What is made of clocks that differ."""

from __future__ import annotations

import asyncio

import pytest

from paddock.server.cluster.clocks import ClockError, Clocks
from paddock.server.replication.lease import Lease
from paddock.state.entry import CLOCK, LEAVE, Entry
from paddock.state.roster_bodies import clock_body
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, staged
from tests.unit.state.shared_state import A, B, SharedState, join_entry

NOW_MS = 1_000_000


class Told:
    """A shared state whose statements are heard by a server, and its lines about them."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.state = SharedState()
        self.proposed: list[Entry] = []
        lease = Lease(lambda: 0.0, 4.0)
        self.clocks = Clocks(
            self.state.roster,
            lease,
            lambda: NOW_MS,
            self.proposed.append,
            lambda number: f"member {number}",
        )

    def commit(self, boot: bytes, entry: Entry) -> list[str]:
        self._caplog.clear()
        self.state.commit(boot, entry)
        for change in self.state.changes():
            self.clocks.stated(change)
        return [f"{one.levelname} {one.getMessage()}" for one in self._caplog.records]

    def join(self, boot: bytes, time_ms: int) -> list[str]:
        return self.commit(boot, join_entry(self.state.roster.index, time_ms=time_ms))

    def state_clock(self, boot: bytes, time_ms: int) -> list[str]:
        return self.commit(boot, Entry(CLOCK, clock_body(time_ms)))


@pytest.mark.parametrize(("ahead_ms", "level"), [(1_500, "WARNING"), (61_500, "ERROR")])
def test_who_is_ahead_is_told_of_once(
    caplog: pytest.LogCaptureFixture, ahead_ms: int, level: str
) -> None:
    told = Told(caplog)
    (line,) = told.join(A, NOW_MS + ahead_ms)
    assert line.startswith(f"{level} the clock of member 1 is {ahead_ms / 1000} s ahead of the one")
    assert told.state_clock(A, NOW_MS + ahead_ms + 100) == []
    assert told.join(B, NOW_MS + ahead_ms) != []


def test_who_gets_far_ahead_is_told_of_again(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    assert told.join(A, NOW_MS) == []
    assert told.state_clock(A, NOW_MS + 2_000) != []
    (line,) = told.state_clock(A, NOW_MS + 70_000)
    assert line.startswith("ERROR the clock of member 1 is 70.0 s ahead")
    assert told.state_clock(A, NOW_MS + 80_000) == []


@pytest.mark.parametrize("time_ms", [NOW_MS + 900, NOW_MS - 900, NOW_MS - 500_000, 0])
def test_what_was_stated_earlier_may_have_come_late_and_gets_no_line(
    caplog: pytest.LogCaptureFixture, time_ms: int
) -> None:
    told = Told(caplog)
    assert told.join(A, time_ms) == []
    assert told.state_clock(A, time_ms) == []


@pytest.mark.parametrize(("ahead_ms", "words"), [(90_000, "ahead of"), (-90_000, "behind")])
@in_virtual_time
async def test_a_server_whose_clock_is_a_minute_off_does_not_join(
    ahead_ms: int, words: str
) -> None:
    async with staged() as stage:
        await stage.start("a", advertise="a:1")
        # Idle for long: what was written last says nothing of the time.
        await asyncio.sleep(100)
        stage.ahead_ms["b"] = ahead_ms
        with pytest.raises(ClockError) as caught:
            await stage.start("b")
        told = str(caught.value)
        prefix, seconds = "this server does not join, since its clock is ", told.split()[9]
        assert told.startswith(f"{prefix}{seconds} s {words} that of member 1 (a:1): more than 60")
        assert abs(float(seconds) - 90) < 1
        # Nothing has come into the log.
        assert stage.members("a") == [1]
        stage.ahead_ms["b"] = ahead_ms // 2
        await stage.start("b")
        await stage.settle()
        assert stage.members("a") == [1, 2]


@in_virtual_time
async def test_a_server_whose_clock_is_right_joins_at_once() -> None:
    async with staged("a", "b") as stage:
        await asyncio.sleep(100)
        async with asyncio.timeout(T / 16):
            await stage.start("c")


@in_virtual_time
async def test_a_busy_member_states_what_its_clock_says_as_well() -> None:
    async with staged("a") as stage:
        core = stage.core(stage.servers["a"])
        roster = core.machine.roster
        assert roster is not None
        (member,) = roster.members.values()
        for _ in range(1_000):
            await asyncio.sleep(T / 100)
            core.proposer.renew()
        assert 0 <= core.wall_clock_ms() - member.time_ms <= T / 4 * 1000


@in_virtual_time
async def test_with_nobody_alive_there_is_nobody_to_differ_from() -> None:
    stage = Stage()
    await stage.start("a")
    await stage.start("b")
    await stage.kill("a")
    await stage.kill("b")
    await asyncio.sleep(3_600)
    async with asyncio.timeout(T):
        await stage.start("c")
    assert stage.members("c") == [1, 2, 3]
    await stage.stop()


@in_virtual_time
async def test_who_has_left_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    told.join(A, NOW_MS - 500_000)
    checking = asyncio.create_task(told.clocks.check(b"", 1_000))
    await asyncio.sleep(1)
    assert not checking.done()
    told.commit(A, Entry(LEAVE, b""))
    told.clocks.gone(A)
    async with asyncio.timeout(1):
        await checking


@in_virtual_time
async def test_a_service_whose_clock_was_set_back_starts_again() -> None:
    """Its stamps, and a member that is dead, are an hour ahead."""
    stage = Stage()
    stage.ahead_ms["a"] = 3_600_000
    await stage.start("a")
    await stage.kill("a")
    stage.ahead_ms["a"] = 0
    async with asyncio.timeout(T):
        await stage.start("a")
    async with asyncio.timeout(T):
        await stage.start("b")
    assert stage.is_serving("a")
    await stage.stop()


@in_virtual_time
async def test_a_member_that_agrees_is_enough() -> None:
    async with staged("a", "b") as stage:
        # It has jumped after it had joined. It is the one that speaks first, each time.
        stage.ahead_ms["a"] = 200_000
        await asyncio.sleep(T)
        await stage.start("c")
        await stage.settle()
        assert stage.members("a") == [1, 2, 3]
        stage.ahead_ms["d"] = -200_000
        with pytest.raises(ClockError, match=r"400\.\d s behind that of .* 200\.\d s behind"):
            await stage.start("d")


@in_virtual_time
async def test_a_join_that_is_applied_late_is_neither_refused_nor_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with staged("a", "b") as stage:
        stage.etcd.link("b").cut()
        await asyncio.sleep(300)
        stage.etcd.link("b").heal()
        async with asyncio.timeout(2 * T):
            while not stage.is_serving("b"):  # noqa: ASYNC110 (virtual)
                await asyncio.sleep(0.01)
        assert stage.members("a") == [1, 3]
        # The next that joins does not go by the time that was in the JOIN.
        await asyncio.sleep(T / 8)
        core = stage.core(stage.servers["a"])
        assert core.machine.roster is not None
        member = core.machine.roster.numbered(3)
        assert member is not None
        assert core.wall_clock_ms() - member.time_ms < T / 8 * 1000
    assert "the clock of" not in caplog.text


@in_virtual_time
async def test_a_difference_is_told_by_the_server_that_is_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with staged() as stage:
        stage.ahead_ms["b"] = -5_000
        for name in "ab":
            await stage.start(name, advertise=f"{name}:1")
        await asyncio.sleep(T)
    lines = [one.getMessage() for one in caplog.records if "the clock of" in one.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith("the clock of member 1 (a:1) is 5.0 s ahead of")
