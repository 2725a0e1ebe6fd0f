"""Elections: one leader at a time, the next one leads when it goes, and everybody is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    LockStateError,
    NoAuthError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.protocol.acl import READ_ONLY
from paddock.recipes import Election, ElectionEvent
from tests.support.apis import recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service

START, OFFER, DETERMINING, READY, ELECTED, FAILED, STOPPED = ElectionEvent


def election_of(client: Client, path: str, **settings: Any) -> Any:
    return recipe(Election)(client, path, **settings)


@pytest.mark.everywhere
def test_ten_candidates_who_step_down_as_soon_as_they_lead(service: Service, path: str) -> None:
    async def scenario() -> None:
        tokens, leaders = [], 0

        async def stand(client: Client) -> None:
            nonlocal leaders
            election = election_of(client, path)
            async with election.lead() as leadership:
                leaders += 1
                assert leaders == 1
                assert election.is_leader
                tokens.append(leadership.token)
                # Time enough for another one to lead as well, if that could be.
                await client.sync()
                leaders -= 1
            assert not election.is_leader

        async with clients(service, 10) as all_of_them:
            await asyncio.gather(*map(stand, all_of_them))
            assert await election_of(all_of_them[0], path).candidates() == []
        assert len(tokens) == 10
        assert tokens == sorted(set(tokens))

    run(scenario)


def test_ten_candidates_in_the_background_who_stop_as_soon_as_they_lead(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        leaders: list[int] = []

        async def stand(number: int, election: Any) -> None:
            leadership = await election.wait_leader()
            assert [one.is_leader for one in candidates] == [one is election for one in candidates]
            leaders.append(number)
            await election.stop()
            assert not leadership.is_held

        async with clients(service, 10) as all_of_them:
            candidates = [election_of(client, path) for client in all_of_them]
            for election in candidates:
                await election.start()
            await asyncio.gather(*(stand(*one) for one in enumerate(candidates)))
        assert leaders == list(range(10))

    run(scenario)


@pytest.mark.everywhere
def test_a_step_down_and_a_crash_both_promote_the_next(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as all_of_them:
            first, second, third = (election_of(client, path) for client in all_of_them)
            for election in (first, second, third):
                await election.start()
            was = await first.wait_leader()
            await first.step_down()
            leads = await second.wait_leader()
            assert leads.token > was.token
            # Who steps down stands at the end of the line.
            await expire(service, all_of_them[1])
            last = await third.wait_leader()
            assert last.token > leads.token
            await third.stop()
            again = await first.wait_leader()
            assert again.token > last.token
            assert not third.is_leader
            # Its client finds out when it comes back.
            await until(lambda: not second.is_leader)
            await first.stop()

    run(scenario)


def test_everything_that_happens_is_told_in_order(service: Service, path: str) -> None:
    async def scenario() -> None:
        heard: list[ElectionEvent] = []
        async with clients(service, 2) as [one, two]:
            first, second = election_of(one, path), election_of(two, path)
            await first.start()
            second.add_listener(heard.append)
            events = second.events()
            await second.start()
            await until(lambda: _is(heard, [START, OFFER, DETERMINING, READY]))
            await first.stop()
            await second.wait_leader()
            await second.step_down()
            # Nobody else stands in the line.
            told = [START, OFFER, DETERMINING, READY, DETERMINING, ELECTED]
            told += [OFFER, DETERMINING, ELECTED]
            await until(lambda: _is(heard, told))
            await second.stop()
            await until(lambda: _is(heard, [*told, STOPPED]))
            assert [event async for event in events] == [*told, STOPPED]
            assert await _read(second, until=STOPPED) == [STOPPED]

    run(scenario)


async def _is(heard: list[ElectionEvent], expected: list[ElectionEvent]) -> bool:
    return heard == expected


async def _read(election: Any, until: ElectionEvent) -> list[ElectionEvent]:
    seen = [event async for event in election.events()]
    assert seen[-1] is until
    return seen


def test_a_scope_tells_the_same_and_can_be_entered_again(service: Service, path: str) -> None:
    async def scenario() -> None:
        heard: list[ElectionEvent] = []
        async with clients(service, 1) as [client]:
            election = election_of(client, path)
            election.add_listener(heard.append)
            round_of_one = [START, OFFER, DETERMINING, ELECTED, STOPPED]
            for number in (1, 2):
                async with election.lead():
                    pass
                await until(lambda number=number: _is(heard, round_of_one * number))  # type: ignore[misc]
            election.remove_listener(heard.append)
            async with election.lead():
                pass
            assert heard == round_of_one * 2

    run(scenario)


def test_a_candidate_hears_only_of_the_one_before_it(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as all_of_them:
            elections = [election_of(client, path) for client in all_of_them]
            heard: list[list[ElectionEvent]] = [[], [], []]
            for election, events in zip(elections, heard, strict=True):
                election.add_listener(events.append)
                await election.start()
            await until(lambda: _is(heard[2], [START, OFFER, DETERMINING, READY]))
            await elections[0].stop()
            await elections[1].wait_leader()
            assert heard[2] == [START, OFFER, DETERMINING, READY]
            # The one in the middle leaves, and the last one looks further ahead.
            late = election_of(all_of_them[0], path)
            await late.start()
            await elections[2].stop()
            assert not late.is_leader
            await elections[1].stop()
            await late.wait_leader()
            await late.stop()

    run(scenario)


def test_who_leads_and_who_waits_can_be_seen_by_all(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:
            observer = election_of(three, path)
            assert await observer.leader() is None
            assert await observer.candidates() == []
            first, second = election_of(one, path, data=b"one"), election_of(two, path, data=b"two")
            async with first, second:
                leadership = await first.wait_leader()
                leader = await observer.leader()
                assert (leader.data, leader.session_id) == (b"one", one.session_id)
                assert (leader.token, leader.path) == (leadership.token, leadership.path)
                assert [one.data for one in await observer.candidates()] == [b"one", b"two"]
                # The names that Curator's latch gives.
                assert "-latch-000000000" in leader.path
            assert await observer.candidates() == []

    run(scenario)


def test_a_guarded_write_succeeds_only_while_we_lead(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            election = election_of(client, f"{path}/election")
            await client.create(f"{path}/data", make_parents=True)
            async with election:
                leadership = await election.wait_leader()
                async with leadership.guard() as transaction:
                    transaction.set(f"{path}/data", b"by the leader")
                late = leadership.guard()
                late.set(f"{path}/data", b"too late")
                await election.step_down()
                with pytest.raises(TransactionFailedError):
                    await late.commit()
            assert (await client.get(f"{path}/data")).data == b"by the leader"

    run(scenario)


def test_a_deleted_node_ends_a_scope(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, other]:
            election = election_of(one, path)

            async def lead() -> None:
                async with election.lead() as leadership:
                    await other.delete(leadership.path)
                    await leadership.wait_over()
                    assert not election.is_leader

            with pytest.raises(GrantLostError, match="held no more"):
                await lead()
            assert await _read(election, until=FAILED) == [FAILED]
            with pytest.raises(GrantLostError):
                await election.wait_leader()

    run(scenario)


def test_in_the_background_a_deleted_node_is_made_anew_at_the_end_of_the_line(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, operator]:
            first, second = election_of(one, path), election_of(two, path)
            async with first, second:
                leadership = await first.wait_leader()
                # First a leader's, then that of one who waits.
                await operator.delete(leadership.path)
                await second.wait_leader()
                await until(lambda: _count(second, 2))
                [_, waiting] = await second.candidates()
                assert waiting.session_id == one.session_id
                await operator.delete(waiting.path)
                await second.stop()
                assert (await first.wait_leader()).token > waiting.token

    run(scenario)


async def _count(election: Any, count: int) -> bool:
    return len(await election.candidates()) == count


def test_an_expired_session_ends_the_election_which_says_so(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            election = election_of(one, path)
            await election.start()
            leadership = await election.wait_leader()
            await expire(service, one)
            assert (await _read(election, until=FAILED))[-1] is FAILED
            assert leadership.is_lost
            assert not election.is_leader
            with pytest.raises(SessionExpiredError):
                await election.wait_leader()
            with pytest.raises(SessionExpiredError):
                await election.start()
            await election.stop()
            assert await election_of(two, path).candidates() == []

    run(scenario)


def test_a_waiting_scope_whose_session_expires_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [leader, waiter]:
            async with election_of(leader, path).lead():
                election = election_of(waiter, path)

                async def wait() -> None:
                    async with election.lead():
                        raise AssertionError("there is a leader")

                waiting = asyncio.create_task(wait())
                await until(lambda: _count(election, 2))
                await expire(service, waiter)
                with pytest.raises(SessionExpiredError):
                    await waiting
                assert await _read(election, until=FAILED) == [FAILED]

    run(scenario)


def test_a_node_of_an_older_session_of_ours_leads_until_it_has_gone(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [older, newer]:
            # A process that comes back under its old name before its old session is over.
            former = election_of(older, path, data=b"same name")
            await former.start()
            was = await former.wait_leader()
            async with election_of(newer, path, data=b"same name") as election:
                leader = await election.leader()
                assert (leader.token, leader.session_id) == (was.token, older.session_id)
                assert not election.is_leader
                await expire(service, older)
                leadership = await election.wait_leader()
                assert leadership.token > was.token
                assert (await election.leader()).session_id == newer.session_id

    run(scenario)


def test_nothing_is_created_after_the_stop(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [leader, client]:
            async with election_of(leader, path).lead() as leadership:
                waiting = election_of(client, path)
                await waiting.start()
                # Its create is sent when it is stopped, or even before that.
                hasty = election_of(client, path)
                starting = asyncio.create_task(hasty.start())
                await asyncio.sleep(0)
                await hasty.stop()
                await asyncio.wait([starting])
                await waiting.stop()
                await client.sync()
                names = await leader.children(path)
                assert names == [leadership.path.rpartition("/")[2]]
            for stopped in (waiting, hasty):
                await stopped.stop()
                with pytest.raises(LockStateError, match="it was stopped"):
                    await stopped.start()
                with pytest.raises(LockStateError, match="it was stopped"):
                    await stopped.wait_leader()
                with pytest.raises(LockStateError, match="it was stopped"):
                    async with stopped.lead():
                        pass
            assert await election_of(leader, path).candidates() == []

    run(scenario)


def test_nothing_is_created_after_the_client_was_closed(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [observer]:
            async with clients(service, 1) as [client]:
                leading, waiting = election_of(client, path), election_of(client, path)
                await leading.start()
                await waiting.start()
                await leading.wait_leader()
            for election in (leading, waiting):
                assert (await _read(election, until=FAILED))[-1] is FAILED
                with pytest.raises(SessionExpiredError):
                    await election.wait_leader()
            assert await election_of(observer, path).candidates() == []

    run(scenario)


def test_who_is_cancelled_leaves_the_line(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            async with election_of(one, path).lead():
                election = election_of(two, path)

                async def wait() -> None:
                    async with election.lead():
                        raise AssertionError("there is a leader")

                waiting = asyncio.create_task(wait())
                await until(lambda: _count(election, 2))
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                await until(lambda: _count(election, 1))
                assert await _read(election, until=STOPPED) == [STOPPED]

    run(scenario)


def test_misuse_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            election = election_of(client, path)
            with pytest.raises(LockStateError, match="we do not lead"):
                await election.step_down()
            async with election.lead() as leadership:
                with pytest.raises(LockStateError, match="it stands in the line already"):
                    await election.start()
                with pytest.raises(LockStateError, match="a scope waits or leads; leave it"):
                    await election.stop()
                assert leadership.is_held
                await election.step_down()
                assert not election.is_leader
                with pytest.raises(LockStateError, match="we do not lead"):
                    await election.step_down()
            await election.start()
            await election.stop()
            never_started = election_of(client, path)
            await never_started.stop()
            with pytest.raises(LockStateError, match="it was stopped; make another one"):
                await never_started.start()

    run(scenario)


def test_what_keeps_us_from_the_line_is_raised(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path, acl=READ_ONLY)
            election = election_of(client, path)
            with pytest.raises(NoAuthError):
                await election.start()
            with pytest.raises(NoAuthError):
                await election.wait_leader()
            with pytest.raises(NoAuthError):
                async with election.lead():
                    pass
            assert await _read(election, until=FAILED) == [FAILED]

    run(scenario)


def test_the_body_may_raise_what_it_likes(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            election = election_of(client, path)
            with pytest.raises(ZeroDivisionError):
                async with election.lead():
                    raise ZeroDivisionError
            assert await _read(election, until=STOPPED) == [STOPPED]
            assert await election.candidates() == []

    run(scenario)


def test_strangers_below_the_election_are_of_no_matter(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for name in ("stranger", "latch-", "latch-12", "lock-0000000000", "latch-0000000001-x"):
                await client.create(f"{path}/{name}", make_parents=True)
            async with election_of(client, path).lead() as leadership:
                assert isinstance(leadership.token, int)
                assert leadership.is_held

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                election_of(client, "no slash")
            for argument in ({"data": "text"}, {"acl": ()}):
                with pytest.raises(InvalidArgumentError, match=f"{next(iter(argument))}: "):
                    election_of(client, "/a", **argument)
            with pytest.raises(InvalidArgumentError, match="listener: "):
                election_of(client, "/a").add_listener(None)

    run(scenario)
