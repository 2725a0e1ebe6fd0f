"""Members with different states: who is right, and what becomes of the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import paddock
from paddock.server.cluster.disputes import UNKNOWN, Disputes
from paddock.server.config.config import ServerConfig
from paddock.server.replication.pacing import DISPUTED, Pacing
from paddock.server.server import Server
from paddock.server.supervisor import Supervisor
from paddock.state.entry import BALLOT, LEAVE, Entry
from paddock.state.roster import LEFT, VOTED
from paddock.state.roster_bodies import BallotRequest
from paddock.storage.replay import OtherStateError
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, connect, staged, view_of
from tests.unit.state.shared_state import A, B, C, SharedState, join_entry

D, E = b"boot-ddd", b"boot-eee"
RIGHT, WRONG = 7, 8
INDEX = 3


class Case:
    """Members that have some digest at a record, and count each other's ballots."""

    def __init__(self, digests: dict[bytes, int | None]) -> None:
        self.state = SharedState()
        self.disputes: dict[bytes, Disputes] = {}
        self.pacing: dict[bytes, Pacing] = {}
        self.outvoted: list[bytes] = []
        self.upheld: list[bytes] = []
        # Entries that were proposed and are not in the log yet.
        self.proposed: list[tuple[bytes, Entry]] = []
        for boot, digest in digests.items():
            self.join(boot, digest)

    def join(self, boot: bytes, digest: int | None) -> None:
        """Have a new server join."""
        self.state.join(boot)
        self.pacing[boot] = Pacing(lambda: 0.0, 1_000)
        self.disputes[boot] = self._dispute(boot, digest)
        self.disputes[boot].joined(boot)

    def replace(self, boot: bytes, successor: bytes) -> None:
        """Have a server join under a new name."""
        entry = join_entry(self.state.roster.index, replaces=boot)
        dispute = self.disputes[successor] = self.disputes.pop(boot)
        self.pacing[successor] = self.pacing.pop(boot)
        dispute.on_outvoted = self._noting(self.outvoted, successor)
        dispute._propose = lambda entry: self.proposed.append((successor, entry))
        self.commit(successor, entry)
        dispute.joined(successor)

    def _dispute(self, boot: bytes, digest: int | None) -> Disputes:
        made = Disputes(
            self.state.roster,
            self.pacing.setdefault(boot, Pacing(lambda: 0.0, 1_000)),
            {INDEX: digest}.get,
            lambda entry: self.proposed.append((boot, entry)),
            "member {}".format,
        )
        made.on_outvoted = self._noting(self.outvoted, boot)
        made.on_upheld = lambda: self.upheld.append(boot)
        return made

    @staticmethod
    def _noting(boots: list[bytes], boot: bytes) -> Callable[[OtherStateError], None]:
        return lambda _: boots.append(boot)

    def commit_all(self) -> None:
        while self.proposed:
            self.commit(*self.proposed.pop(0))

    def commit(self, boot: bytes, entry: Entry) -> None:
        (outcome,) = self.state.commit(boot, entry)
        assert outcome.error == 0, outcome.body
        for change in self.state.changes():
            for dispute in self.disputes.values():
                if change.kind == VOTED:
                    assert change.ballot is not None
                    dispute.voted(change.boot, change.ballot)
                elif change.kind == LEFT:
                    dispute.gone(change.boot, change.successor)

    def is_restrained(self) -> list[bool]:
        return [pacing.restraint == DISPUTED for pacing in self.pacing.values()]


def test_who_is_alone_is_outvoted_whoever_has_seen_the_difference() -> None:
    for seen_by, of in ((A, C), (C, A)):
        case = Case({A: RIGHT, B: RIGHT, C: WRONG})
        case.disputes[seen_by].differs(of, INDEX)
        case.commit_all()
        assert (case.outvoted, case.upheld) == ([C], [A, B])
        assert not any(dispute.is_open() for dispute in case.disputes.values())
        assert case.is_restrained() == [False, False, False]


def test_each_member_votes_once_about_a_record() -> None:
    case = Case({A: RIGHT, B: RIGHT, C: WRONG})
    case.disputes[A].differs(C, INDEX)
    case.disputes[B].differs(C, INDEX)
    case.disputes[B].differs(C, INDEX + 1)
    case.commit_all()
    assert case.state.roster.index == 3 + 3


def test_what_an_outvoted_member_still_sends_is_not_disputed_again() -> None:
    case = Case({A: RIGHT, B: RIGHT, C: WRONG})
    case.disputes[A].differs(C, INDEX)
    case.commit_all()
    case.disputes[A].differs(C, INDEX)
    assert case.proposed == []
    case.disputes[A].differs(B, INDEX)
    assert len(case.proposed) == 1


def test_a_member_that_does_not_know_the_digest_any_more_abstains() -> None:
    case = Case({A: None, B: None, C: RIGHT, D: RIGHT, E: WRONG})
    case.disputes[C].differs(E, INDEX)
    case.commit_all()
    assert (case.outvoted, case.upheld) == ([E], [A, B, C, D])


def test_nothing_is_decided_before_all_have_voted_or_are_gone() -> None:
    case = Case({A: RIGHT, B: RIGHT, C: WRONG})
    case.disputes[A].differs(C, INDEX)
    case.commit(*case.proposed.pop(0))
    case.commit(*case.proposed.pop(0))
    assert case.disputes[A].is_open()
    assert [boot for boot, _ in case.proposed] == [C]
    case.disputes.pop(C)
    case.commit(C, Entry(LEAVE, b""))
    assert not case.disputes[A].is_open()
    assert (case.outvoted, case.is_restrained()[:2]) == ([], [False, False])


def test_in_a_tie_no_write_is_accepted_until_one_side_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    case = Case({A: RIGHT, B: WRONG})
    case.disputes[A].differs(B, INDEX)
    case.commit_all()
    assert (case.outvoted, case.upheld) == ([], [])
    assert case.is_restrained() == [True, True]
    ties = [one.getMessage() for one in caplog.records if one.levelno == logging.CRITICAL]
    assert len(ties) == 2
    assert "member 1 against member 2" in ties[0]
    case.disputes.pop(B)
    case.commit(B, Entry(LEAVE, b""))
    assert case.is_restrained()[0] is False
    assert (case.outvoted, case.upheld) == ([], [A])


def test_all_count_the_same_voters_though_one_joins_before_the_first_ballot() -> None:
    case = Case({A: RIGHT, B: WRONG, C: RIGHT})
    case.disputes[A].differs(B, INDEX)
    case.join(D, WRONG)
    case.commit_all()
    assert case.is_restrained() == [True, True, True, True]
    assert case.outvoted == []


def test_a_tie_goes_on_when_a_member_comes_back_under_another_name() -> None:
    case = Case({A: RIGHT, B: WRONG})
    case.disputes[A].differs(B, INDEX)
    case.commit_all()
    case.disputes[B].suspend()
    assert case.is_restrained() == [True, True]
    # It knows what it had, though that is long ago.
    case.disputes[B]._digest_at = lambda index: None
    case.replace(B, C)
    assert case.is_restrained() == [True, True]
    case.commit_all()
    assert case.is_restrained() == [True, True]
    assert (case.outvoted, case.upheld) == ([], [])
    case.disputes.pop(C)
    case.commit(C, Entry(LEAVE, b""))
    assert (case.is_restrained()[0], case.upheld) == (False, [A])


def test_a_tie_is_over_when_a_member_comes_back_with_another_state() -> None:
    """In a new process, which knows of no vote: the others vote again."""
    for digest in (RIGHT, None):
        case = Case({A: RIGHT, B: WRONG})
        case.disputes[A].differs(B, INDEX)
        case.commit_all()
        case.disputes[B] = case._dispute(B, digest)
        case.pacing[B] = Pacing(lambda: 0.0, 1_000)
        case.replace(B, C)
        assert case.is_restrained()[0]
        case.commit_all()
        assert not any(dispute.is_open() for dispute in case.disputes.values())
        assert not any(case.is_restrained())
        assert (case.outvoted, case.upheld) == ([], [A])


def test_a_server_can_be_outvoted_while_it_is_no_member() -> None:
    case = Case({A: RIGHT, B: RIGHT, C: WRONG})
    case.disputes[A].differs(C, INDEX)
    case.commit(*case.proposed.pop(0))
    case.commit(*case.proposed.pop(0))
    (ballot,) = [entry for boot, entry in case.proposed if boot == C]
    case.disputes[C].suspend()
    case.commit(C, ballot)
    assert case.outvoted == [C]


def test_a_vote_whose_beginning_was_missed_is_not_waited_for() -> None:
    case = Case({A: RIGHT, B: RIGHT})
    late = case._dispute(C, RIGHT)
    case.disputes[A].differs(B, INDEX)
    case.commit(*case.proposed.pop(0))
    case.disputes[C], case.pacing[C] = late, case.pacing[A]
    case.commit_all()
    case.state.join(C)
    late.joined(C)
    assert not late.is_open()


def test_a_server_that_is_no_member_for_now_does_not_vote() -> None:
    case = Case({A: RIGHT, B: WRONG})
    case.disputes[A].suspend()
    case.disputes[A].differs(B, INDEX)
    assert case.proposed == []
    ballot = Entry(BALLOT, BallotRequest(INDEX, WRONG).encode())
    case.commit(B, ballot)
    assert [boot for boot, _ in case.proposed] == []


def test_unknown_is_no_digest() -> None:
    case = Case({A: None, B: None})
    case.disputes[A].differs(B, INDEX)
    ballots = [BallotRequest.decode(entry.body) for _, entry in case.proposed]
    assert ballots == [BallotRequest(INDEX, UNKNOWN)]
    case.commit_all()
    assert (case.outvoted, case.upheld, case.is_restrained()) == ([], [], [False, False])


# On servers.


def damage(stage: Stage, server: Server) -> None:
    """Change the state of one server by a fault of the machine."""
    node = stage.core(server).machine.tree.nodes[b"/n"]
    assert node is not None
    stage.core(server).machine.tree.set_silently(b"/n", node, b"damaged")


@in_virtual_time
async def test_the_outvoted_server_speaks_no_more_and_the_others_go_on() -> None:
    async with staged("a", "b", "c") as stage, connect(stage, "a") as client:
        await client.create("/n", b"0")
        await stage.settle()
        damage(stage, stage.servers["c"])
        await client.create("/m", b"1")
        await asyncio.sleep(T)
        assert isinstance(stage.lost.pop("c"), OtherStateError)
        assert stage.lost == {}
        assert [stage.is_serving(name) for name in "abc"] == [True, True, False]
        await client.set("/n", b"2")
        await stage.kill("c")
        await stage.settle()


@in_virtual_time
async def test_an_outvoted_server_starts_again_with_the_right_state(tmp_path: Path) -> None:
    async with staged("a", "b") as stage, connect(stage, "a") as client:
        made: list[Server] = []

        def make(config: ServerConfig) -> Server:
            made.append(stage.make("c", config))
            return made[-1]

        supervisor = Supervisor(stage.config(tmp_path / "c"), make, lambda: 0)
        await supervisor.start()
        stage.servers["c"] = made[0]
        await client.create("/n", b"0")
        await stage.settle()
        await made[0].take_snapshot()
        damage(stage, made[0])
        await client.create("/m", b"1")
        await asyncio.sleep(2 * T)
        assert len(made) == 2
        stage.servers["c"] = made[1]
        node = stage.core(made[1]).machine.tree.nodes[b"/n"]
        assert node is not None
        assert node.data == b"0"
        await stage.settle()
        kept = sorted(
            path.suffix for path in (tmp_path / "c").rglob("*snapshot*") if path.is_file()
        )
        assert ".aside" in kept
        del stage.servers["c"]
        over = asyncio.Event()
        over.set()
        await supervisor.serve_until(over)


@in_virtual_time
async def test_two_servers_that_differ_accept_no_writes_and_serve_reads() -> None:
    async with staged("a", "b") as stage, connect(stage, "a") as client:
        await client.create("/n", b"0")
        await stage.settle()
        damage(stage, stage.servers["b"])
        await client.create("/m", b"1")
        await asyncio.sleep(T)
        for refused in (client.create("/x"), client.delete("/m")):
            with pytest.raises(paddock.ServiceError):
                await refused
        assert (await client.get("/n")).data == b"0"
        assert view_of(stage, "a").is_disputed()
        await stage.servers.pop("b").stop()
        await client.sync("/")
        assert not view_of(stage, "a").is_disputed()
        await client.create("/x")


@in_virtual_time
async def test_no_write_is_acknowledged_while_a_member_comes_back_in_a_tie() -> None:
    async with staged("a", "b") as stage, connect(stage, "a", timeout=60) as client:
        await client.create("/n", b"0")
        await stage.settle()
        damage(stage, stage.servers["b"])
        await client.create("/m", b"1")
        await asyncio.sleep(T)
        stage.cluster(stage.servers["b"]).membership.lose("etcd was slow")
        for _ in range(400):
            with pytest.raises(paddock.ServiceError):
                await client.set("/m", b"2")
            await asyncio.sleep(0.005)
        assert stage.members("a") == [1, 3]
        assert view_of(stage, "b").is_disputed()
