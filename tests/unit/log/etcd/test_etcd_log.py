"""The shared log in etcd, as a server sees it."""

from __future__ import annotations

import asyncio

import pytest

from paddock.log.interface import (
    ForbiddenError,
    LogError,
    OtherHistoryError,
    Position,
    TrimmedError,
)
from paddock.testing.simulation.key_space import KeySpace
from tests.unit.log.etcd.helpers import (
    Heard,
    Member,
    close,
    position_of,
    quiet,
    start,
    trim,
    virtually,
)


def test_every_server_is_told_the_same() -> None:
    async def scenario() -> None:
        members = await start(quiet(), "one", "two", "three")
        for _ in range(20):
            for member in members:
                member.propose(b"%d" % member.next)
            await asyncio.sleep(0.001)
        for member in members:
            await member.heard.index(60)
        one, two, three = (member.heard.records for member in members)
        assert [record.index for record in one] == [*range(1, 61)]
        assert one == two == three
        assert {record.payload for record in one} == {b"%d" % number for number in range(20)}
        await close(*members)

    virtually(scenario())


def test_following_begins_behind_a_position() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(10)
        two = Member(model, "two")
        await two.follow(position_of(one.heard.records[6]))
        assert two.heard.records == one.heard.records[7:]
        await close(one, two)

    virtually(scenario())


def test_follow_returns_when_everything_is_told_that_was_there() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(300)
        two = Member(model, "two")
        await two.follow()
        assert two.heard.indices == [*range(1, 301)]
        assert two.log.last_index == 300
        assert two.log.figures.lag == 0
        await close(one, two)

    virtually(scenario())


def test_follow_says_that_etcd_cannot_be_reached() -> None:
    async def scenario() -> None:
        model = quiet()
        member = Member(model, "one")
        member.link.cut()
        with pytest.raises(LogError):
            await member.follow()
        member.link.heal()
        await member.follow()
        await member.write(1)
        await close(member)

    virtually(scenario())


def test_a_cancelled_follow_tells_nothing_any_more() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(200)
        two = Member(model, "two")
        two.heard.fill()
        following = asyncio.create_task(two.follow())
        await two.heard.index(1)
        following.cancel()
        await asyncio.wait((following,))
        assert following.cancelled()
        told = len(two.heard.records)
        two.heard.make_room()
        await one.write(1)
        await asyncio.sleep(10)
        assert len(two.heard.records) == told
        await close(one, two)

    virtually(scenario())


def test_following_anew_ends_the_former_listener() -> None:
    async def scenario() -> None:
        (one,) = await start(quiet(), "one")
        await one.write(3)
        former, one.heard = one.heard, Heard()
        await one.follow(former.position)
        await one.write(2)
        assert former.indices == [1, 2, 3]
        assert one.heard.indices == [4, 5]
        await close(one)

    virtually(scenario())


def test_a_new_name_ends_the_former_one() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        one.link.cut()
        one.propose(b"given up")
        one.log.begin(b"8 bytes!")
        assert one.log.server == b"8 bytes!"
        one.log.propose(0, b"new")
        one.link.heal()
        await two.heard.index(1)
        await asyncio.sleep(60)
        assert two.heard.proposals == [(b"8 bytes!", 0)]
        await close(one, two)

    virtually(scenario())


def test_nothing_is_sent_after_withdraw() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        one.link.cut()
        one.propose(b"0", b"1", b"2")
        await asyncio.sleep(0.5)
        one.log.withdraw()
        one.link.heal()
        await two.write(1)
        await asyncio.sleep(60)
        assert two.heard.proposals == [(two.boot, 0)]
        # It still follows.
        assert one.heard.proposals == [(two.boot, 0)]
        assert one.log.server == b""
        await close(one, two)

    virtually(scenario())


def test_what_is_in_flight_at_withdraw_may_come_out() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        model.lose_quorum()
        one.propose(b"0")
        await asyncio.sleep(0.5)
        one.log.withdraw()
        await asyncio.sleep(100)
        model.regain_quorum()
        await two.heard.index(1)
        assert two.heard.proposals == [(one.boot, 0)]
        await one.heard.index(1)
        assert one.heard.failure is None
        await close(one, two)

    virtually(scenario())


@pytest.mark.parametrize("after_s", [0.0, 0.0005, 0.002, 0.5, 3.0])
@pytest.mark.parametrize("trouble", ["none", "cut", "stalled", "full"])
def test_close_ends_everything_at_any_time(after_s: float, trouble: str) -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        if trouble == "cut":
            one.link.cut()
        elif trouble == "stalled":
            model.lose_quorum()
        elif trouble == "full":
            model.fill()
        one.propose(b"0", b"1")
        await asyncio.sleep(after_s)
        await close(one, two)

    virtually(scenario())


def test_close_while_following_begins() -> None:
    async def scenario() -> None:
        model = quiet()
        model.lose_quorum()
        member = Member(model, "one")
        following = asyncio.create_task(member.follow())
        await asyncio.sleep(1)
        await member.log.close()
        following.cancel()
        await asyncio.wait((following,))
        await member.close()

    virtually(scenario())


def test_a_restored_etcd_is_another_history() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        await one.write(5)
        backup = model.backup()
        await one.write(5)
        await two.heard.index(10)
        model.restore(backup)
        for member in (one, two):
            error = await member.heard.failing()
            assert isinstance(error, OtherHistoryError)
            assert "paddock cluster epoch" in str(error)
        # Neither proposes any more.
        assert one.log.server == two.log.server == b""
        # A server that had seen less goes on.
        three = Member(model, "three")
        await three.follow()
        assert three.heard.indices == [1, 2, 3, 4, 5]
        await close(one, two, three)

    virtually(scenario())


def test_another_history_is_noticed_however_far_it_has_gone_on() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(5)
        backup = model.backup()
        await one.write(5)
        one.link.cut()
        model.restore(backup)
        (other,) = await start(model, "other")
        await other.write(100)
        one.link.heal()
        error = await one.heard.failing()
        assert isinstance(error, OtherHistoryError)
        assert one.heard.indices == [*range(1, 11)]
        # The same at a start.
        again = Member(model, "one")
        with pytest.raises(OtherHistoryError, match="record 10"):
            await again.follow(one.heard.position)
        await close(one, other, again)

    virtually(scenario())


def test_another_cluster_is_another_history() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(5)
        model.restore(KeySpace())
        assert isinstance(await one.heard.failing(), OtherHistoryError)
        await close(one)

    virtually(scenario())


def test_the_id_of_the_service_must_stay() -> None:
    async def scenario() -> None:
        model = quiet()
        model.space.swap(model.keys.id, b"this service", 0, None)
        (one,) = await start(model, "one")
        model.restore(KeySpace())
        model.space.swap(model.keys.id, b"that service", 0, None)
        # It had seen no record, so nothing else differs.
        error = await one.heard.failing()
        assert isinstance(error, OtherHistoryError)
        assert "id has changed" in str(error)
        with pytest.raises(OtherHistoryError):
            await one.follow()
        await close(one)

    virtually(scenario())


def test_a_trimmed_position_is_said_so() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(20)
        trim(model, one.heard.records[14])
        two = Member(model, "two")
        for after in (Position(), *map(position_of, one.heard.records[:14])):
            with pytest.raises(TrimmedError):
                await two.follow(after)
        # Behind these everything is there.
        for record in one.heard.records[14:]:
            two.heard = Heard()
            await two.follow(position_of(record))
            assert two.heard.indices == [*range(record.index + 1, 21)]
        await close(one, two)

    virtually(scenario())


def test_a_server_that_was_away_while_the_log_was_trimmed_is_told_so() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        await one.write(5)
        await two.heard.index(5)
        two.link.cut()
        two.link.break_streams()
        await one.write(20)
        trim(model, one.heard.records[14])
        two.link.heal()
        assert isinstance(await two.heard.failing(), TrimmedError)
        assert two.heard.indices == [1, 2, 3, 4, 5]
        # It goes on behind the snapshot, with the same log.
        two.heard = Heard()
        await two.follow(position_of(one.heard.records[15]))
        assert two.heard.indices == [17, 18, 19, 20, 21, 22, 23, 24, 25]
        await two.write(1)
        await close(one, two)

    virtually(scenario())


def test_a_forbidden_write_ends_the_log() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        one.link.forbidden = "permission denied"
        one.propose(b"0", b"1")
        error = await one.heard.failing()
        assert isinstance(error, ForbiddenError)
        assert "permission denied" in str(error)
        await two.write(1)
        await asyncio.sleep(10)
        assert one.heard.records == []
        await close(one, two)

    virtually(scenario())


def test_a_record_that_is_to_be_skipped_is_empty() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(3)
        model.space.swap(model.keys.skip(2), b"", 0, None)
        two = Member(model, "two")
        await two.follow()
        assert [record.payload == b"" for record in two.heard.records] == [False, True, False]
        assert two.heard.proposals == one.heard.proposals
        assert two.heard.indices == [1, 2, 3]
        # Our own is compared with what was proposed before it is made void.
        model.space.swap(model.keys.skip(4), b"", 0, None)
        one.link.break_streams()
        await asyncio.sleep(10)
        await one.write(1)
        assert one.heard.records[-1].payload == b""
        assert one.heard.failure is None
        await close(one, two)

    virtually(scenario())


def test_a_listener_that_raises_ends_the_log() -> None:
    class Clumsy(Heard):
        def committed(self, record: object) -> None:
            raise ZeroDivisionError

    async def scenario() -> None:
        (one,) = await start(quiet(), "one")
        one.heard = Clumsy()
        await one.follow()
        one.propose(b"0")
        error = await one.heard.failing()
        assert isinstance(error.__cause__, ZeroDivisionError)
        await close(one)

    virtually(scenario())
