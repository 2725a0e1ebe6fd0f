"""Two servers on one log: each applies what the other proposed, and both have the same state."""

from __future__ import annotations

import asyncio
import random

import pytest

from paddock.errors import NO_NODE, OK, SESSION_EXPIRED, SYSTEM_ERROR
from paddock.protocol.opcodes import CREATE, CREATE_SESSION
from paddock.server.durability.log_recovery import LogRecovery
from paddock.server.replication.proposals import Submitter
from paddock.state.entry import EXPIRE, Batch, Entry
from paddock.state.machine import Outcome
from tests.property.dump import dump
from tests.support import requests as rq
from tests.support.records import Mode
from tests.unit.server.harness import FakeClient, encoded, errors, numbers, run, turn
from tests.unit.server.replication.shared_log import IN_FLIGHT_MAX, Member, SharedWorld

EVENT_XID = -1


def events(client: FakeClient) -> int:
    """Count the events that a client was told, and forget its replies."""
    return sum(xid == EVENT_XID for xid, _, _ in client.replies())


def expire(member: Member, session: int, generation: int) -> list[int]:
    """Propose the end of a session on `member`, whichever server tracks it."""
    outcomes: list[int] = []

    def note(entry: Entry, outcome: Outcome) -> None:
        if entry.operation == EXPIRE:
            outcomes.append(outcome.error)

    member.replica.on_entry = note
    member.proposer.submit(Entry(EXPIRE, b"", session, generation), Submitter())
    return outcomes


def rq_frame(xid: int, path: str) -> bytes:
    return encoded(xid, rq.create(path))


def test_each_applies_what_the_other_proposed_and_tells_its_own_watchers() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        here, there = await first.client(), await second.client()
        for client in (here, there):
            client.send(rq.exists("/n", watch=True))
            assert errors(client) == [NO_NODE]
        here.send(rq.create("/n", b"data"))
        await world.settle()
        assert events(there) == 1
        assert [(xid, error) for xid, error, _ in here.replies()] == [(EVENT_XID, 0), (1, OK)]
        there.send(rq.get_data("/n"))
        ((_, _, body),) = there.replies()
        assert body.startswith(b"\0\0\0\4data")
        # Our own batches are not decoded again.
        assert first.decoded == [2]
        assert second.decoded == [1, 3]
        assert dump(first.machine) == dump(second.machine)

    run(scenario)


def test_session_ids_come_from_the_log_and_differ_though_both_servers_give_them() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        clients = [member.new_client() for member in world.members for _ in range(3)]
        for client in clients:
            client.send_handshake()
        await world.settle()
        ids = {client.take_handshake().session_id for client in clients}
        assert len(ids) == 6
        assert all(world.members[0].tracks(one) for one in clients[:3])
        assert not any(world.members[0].tracks(one) for one in clients[3:])
        assert all(world.members[1].tracks(one) for one in clients[3:])

    run(scenario)


def test_a_session_that_moves_leaves_its_connection_and_its_late_writes_behind() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        old = await first.client()
        old.send(rq.create("/mine", flags=Mode.EPHEMERAL))
        await world.settle()
        new = second.new_client()
        new.send_handshake(old.session, old.password)
        await turn()
        second.port.commit()
        # The first server has not heard of it yet.
        old.send(rq.exists("/"), rq.create("/late"))
        old.replies()
        await turn()
        first.port.commit()
        await world.settle()
        assert new.take_handshake().session_id == old.session
        assert not old.transport.is_open
        assert old.replies() == []
        assert (first.tracks(old), second.tracks(old)) == (False, True)
        new.send(rq.exists("/late"), rq.exists("/mine"))
        assert errors(new) == [NO_NODE, OK]
        # And back again.
        back = first.new_client()
        await back.attach(new.session, new.password)
        assert back.session == new.session
        assert not new.transport.is_open
        assert (first.tracks(back), second.tracks(back)) == (True, False)

    run(scenario)


def test_a_session_that_another_server_opened_is_attached_before_we_know_of_it() -> None:
    """Our own state is behind: the log decides, not what we have applied."""

    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        old = first.new_client()
        old.send_handshake()
        await turn()
        first.port.commit()
        first.port.deliver()
        await turn()
        old.take_handshake()
        old.connection.connection_lost(None)
        assert old.session not in second.machine.sessions.by_id
        new = second.new_client()
        new.send_handshake(old.session, old.password, zxid=first.machine.zxid)
        thief = second.new_client()
        thief.send_handshake(old.session, b"wrong")
        await world.settle()
        assert new.take_handshake().session_id == old.session
        assert thief.take_handshake().session_id == 0
        assert new.transport.is_open

    run(scenario)


def test_a_client_that_is_ahead_even_when_it_is_attached_is_turned_away() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        old = await first.client()
        new = second.new_client()
        new.send_handshake(old.session, old.password, zxid=1 << 40)
        await world.settle()
        assert new.transport.frames() == []
        assert not new.transport.is_open
        # Its owner notices nothing.
        assert old.transport.is_open
        assert (first.tracks(old), second.tracks(old)) == (True, False)
        old.send(rq.create("/n"))
        await world.settle()
        assert errors(old) == [OK]

    run(scenario)


def test_the_server_that_has_a_session_expires_it_and_both_see_its_nodes_go() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        for member in world.members:
            member.service.tracker.start()
        silent, watcher = await first.client(), await second.client()
        silent.send(rq.create("/mine", flags=Mode.EPHEMERAL))
        await world.settle()
        watcher.send(rq.exists("/mine", watch=True))
        watcher.replies()
        for _ in range(12):
            await asyncio.sleep(1)
            watcher.send(rq.ping())
            await world.settle()
        assert silent.session not in second.machine.sessions.by_id
        assert watcher.session in first.machine.sessions.by_id
        assert events(watcher) == 1
        assert not silent.transport.is_open
        ended = [member.service.statistics.sessions_expired for member in world.members]
        assert ended == [1, 1]
        for member in world.members:
            member.service.tracker.stop()

    run(scenario)


def test_an_end_that_a_server_without_the_connection_proposes_closes_it() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        client = await first.client()
        told = expire(second, client.session, 1)
        await turn()
        # A write of the session that is ordered behind its end.
        client.send(rq.create("/late"))
        await turn()
        second.port.commit()
        await world.settle()
        assert told == [OK]
        assert not client.transport.is_open
        assert not first.tracks(client)
        assert b"/late" not in first.machine.tree.nodes

    run(scenario)


def test_an_end_proposed_before_the_session_moved_does_nothing() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        old = await first.client()
        first.service.lifecycle.expire(first.liveness_of(old))
        new = second.new_client()
        new.send_handshake(old.session, old.password)
        await turn()
        second.port.commit()
        await world.settle()
        assert new.take_handshake().session_id == old.session
        assert not old.transport.is_open
        assert (first.tracks(old), second.tracks(old)) == (False, True)

    run(scenario)


def test_a_session_whose_end_comes_first_cannot_be_attached_any_more() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        old = await first.client()
        first.service.lifecycle.expire(first.liveness_of(old))
        new = second.new_client()
        new.send_handshake(old.session, old.password)
        old.send(rq.exists("/"))
        await turn()
        first.port.commit()
        await world.settle()
        assert new.take_handshake().session_id == 0
        assert errors(old) == [SESSION_EXPIRED]

    run(scenario)


def test_a_session_opened_for_a_connection_that_is_gone_is_tracked_by_its_server_alone() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        client = first.new_client()
        client.send_handshake()
        client.connection.connection_lost(None)
        await world.settle()
        (session,) = second.machine.sessions.by_id
        assert first.service.tracker.get(session) is not None
        assert second.service.tracker.get(session) is None

    run(scenario)


def test_several_proposals_are_in_flight_and_foreign_records_come_between_them() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        here, there = await first.client(), await second.client()
        decoded = len(first.decoded)
        for number in range(IN_FLIGHT_MAX + 2):
            here.receive(rq_frame(number, f"/own{number}"))
            await turn()
        assert len(first.port.in_flight) == IN_FLIGHT_MAX
        there.send(rq.create("/foreign"))
        await turn()
        first.port.commit()
        second.port.commit()
        first.port.commit()
        await turn()
        assert numbers(here) == [], "nothing is answered before it comes out of the log"
        for _ in range(3):
            assert first.port.deliver()
        await turn()
        assert numbers(here) == [0, 1]
        assert b"/foreign" in first.machine.tree.nodes
        assert b"/own0" not in second.machine.tree.nodes
        await world.settle()
        assert numbers(here) == list(range(2, IN_FLIGHT_MAX + 2))
        assert len(first.decoded) == decoded + 1
        assert first.replica.replay.verified > 0
        zxids = [first.machine.tree.nodes[path].czxid for path in (b"/own0", b"/foreign", b"/own1")]
        assert zxids == sorted(zxids)

    run(scenario)


def test_a_refused_proposal_is_answered_in_its_place() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        here, there = await first.client(), await second.client()
        for number in range(3):
            here.receive(rq_frame(number, f"/own{number}"))
            await turn()
        there.send(rq.create("/foreign"))
        await turn()
        first.port.commit()
        second.port.commit()
        first.port.deliver()
        first.port.refuse()
        await world.settle()
        assert [(xid, error) for xid, error, _ in here.replies()] == [
            (0, OK),
            (1, SYSTEM_ERROR),
            (2, OK),
        ]
        assert b"/own1" not in second.machine.tree.nodes

    run(scenario)


@pytest.mark.parametrize("survivors", [0, 1, 2])
def test_what_survives_an_unknown_outcome_comes_out_of_the_log_like_every_record(
    survivors: int,
) -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        first.proposer.on_unknown = LogRecovery(first.service, first.port).begin
        here, there = await first.client(), await second.client()
        for number in range(2):
            here.receive(rq_frame(number, f"/own{number}"))
            await turn()
        newcomer = first.new_client()
        newcomer.send_handshake()
        there.send(rq.create("/foreign"))
        await turn()
        second.port.commit()
        first.port.fail(survivors)
        await turn()
        assert not here.transport.is_open
        await asyncio.sleep(1)
        assert first.service.is_open
        await world.settle()
        for number in range(2):
            assert (f"/own{number}".encode() in first.machine.tree.nodes) == (number < survivors)
        assert b"/foreign" in first.machine.tree.nodes
        assert first.tracks(here)
        again = first.new_client()
        await again.attach(here.session, here.password)
        again.send(rq.create("/again"))
        await world.settle()
        assert errors(again) == [OK]
        assert dump(first.machine) == dump(second.machine)

    run(scenario)


def test_a_session_that_an_unknown_outcome_opened_is_tracked() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, second = world.members
        first.proposer.on_unknown = LogRecovery(first.service, first.port).begin
        client = first.new_client()
        client.send_handshake()
        await turn()
        first.port.fail(1)
        await asyncio.sleep(1)
        await world.settle()
        (session,) = first.machine.sessions.by_id
        assert first.service.tracker.get(session) is not None
        assert second.service.tracker.get(session) is None

    run(scenario)


def test_a_batch_of_another_state_ends_the_server() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, _ = world.members
        await first.client()
        entry = Entry(CREATE, b"", 1, 1)
        batch = Batch([entry], first.replica.applied, first.machine.digest() + 1)
        world.log.append(batch.encode(), b"stranger", 0)
        first.port.deliver()
        await turn()
        assert first.replica.is_dead()
        (reason,) = first.fatal
        assert "another state" in reason

    run(scenario)


def test_a_server_that_starts_later_has_what_the_others_have() -> None:
    async def scenario() -> None:
        world = SharedWorld()
        first, _ = world.members
        client = await first.client()
        client.send(*[rq.create(f"/n{number}") for number in range(50)])
        await world.settle()
        late = Member(world, b"late")
        assert late.replica.applied == len(world.log.records)
        assert dump(late.machine) == dump(first.machine)
        world.members[1] = late
        other = await late.client()
        other.send(rq.create("/late"))
        await world.settle()
        assert errors(other) == [OK]
        assert dump(late.machine) == dump(first.machine)

    run(scenario)


class Storm:
    """Clients that write, move, close and vanish, while records are late at either server."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = SharedWorld()
        self.clients: list[tuple[Member, FakeClient]] = []

    async def run(self, steps: int) -> None:
        for _ in range(steps):
            await self.step()
            self.world.check()
        await self.world.settle()
        first, second = self.world.members
        assert dump(first.machine) == dump(second.machine)
        self.check_sessions()

    async def step(self) -> None:
        chance = self.chance
        member = chance.choice(self.world.members)
        match chance.randrange(16):
            case 0:
                self.connect(member, 0, b"")
            case 1 | 2 | 3 | 4 if self.clients:
                self.write(chance.choice(self.clients)[1])
            case 5 if self.clients:
                # Moves, with the old connection still there, or with a wrong password.
                _, old = chance.choice(self.clients)
                password = old.password if chance.random() < 0.8 else b"wrong"
                if old.session:
                    self.connect(member, old.session, password)
            case 6 if self.clients:
                chance.choice(self.clients)[1].send(rq.close_session())
            case 7 if self.clients:
                home, gone = self.clients.pop(chance.randrange(len(self.clients)))
                if gone.connection in home.service.connections:
                    gone.connection.connection_lost(None)
            case 8:
                sessions = list(member.machine.sessions.by_id.values())
                if sessions:
                    one = chance.choice(sessions)
                    expire(member, one.id, one.generation - chance.randrange(2))
            case 9 if member.port.in_flight and chance.random() < 0.3:
                member.port.refuse()
            case 10 | 11 if member.port.in_flight:
                member.port.commit()
            case 12 | 13 | 14:
                member.port.deliver()
            case _:
                await asyncio.sleep(0)
        if chance.random() < 0.5:
            await asyncio.sleep(0)
        for _, client in self.clients:
            if not client.session and client.transport.written:
                client.take_handshake()

    def connect(self, member: Member, session: int, password: bytes) -> None:
        client = member.new_client()
        client.send_handshake(session, password)
        self.clients.append((member, client))

    def write(self, client: FakeClient) -> None:
        if not client.session:
            return
        name = f"/n{self.chance.randrange(8)}"
        client.send(
            self.chance.choice(
                [
                    rq.create(name, flags=self.chance.choice([0, Mode.EPHEMERAL])),
                    rq.set_data(name, bytes(self.chance.randrange(50))),
                    rq.delete(name),
                    rq.exists(name, watch=True),
                    rq.multi(rq.check(name), rq.create(name + "x")),
                ]
            )
        )

    def check_sessions(self) -> None:
        """Every session of the log has one tracker, and at most one connection, both there."""
        for session in self.world.members[0].machine.sessions.by_id.values():
            found = [member.service.tracker.get(session.id) for member in self.world.members]
            (liveness,) = [one for one in found if one is not None]
            serving = [
                client
                for home, client in self.clients
                if client.connection in home.service.connections
                and client.watcher.session == session.id
            ]
            assert len(serving) <= 1
            for client in serving:
                assert liveness.connection is client.connection
                assert client.handler._generation == session.generation
        for member in self.world.members:
            for one in member.service.tracker.all():
                assert one.session in member.machine.sessions.by_id


@pytest.mark.parametrize("seed", range(25))
def test_both_have_the_same_state_after_every_record_whenever_they_hear_of_it(seed: int) -> None:
    async def scenario() -> None:
        storm = Storm(seed)
        await storm.run(400)
        opened = [one for one in storm.world.log.records if has(one.payload, CREATE_SESSION)]
        assert len(opened) > 5

    run(scenario)


def has(payload: bytes, operation: int) -> bool:
    return any(entry.operation == operation for entry in Batch.decode(payload).entries)
