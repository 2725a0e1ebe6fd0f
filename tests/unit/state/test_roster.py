"""Which batches of which server count: the fold over the log."""

from __future__ import annotations

import pytest

from paddock.protocol.jute import Reader
from paddock.state.entry import CLOCK, LEAVE, SYNC, Entry
from paddock.state.roster import ADDRESSES_MAX, HELD_MAX, JOIN_AGE_MAX, Roster
from paddock.state.roster_bodies import DeposeRequest, JoinRequest, clock_body
from tests.unit.state.driver import encode
from tests.unit.state.shared_state import SERVICE, A, B, C, SharedState, join_entry, payload_of

JOIN_BATCH = payload_of(join_entry())
OTHER = payload_of(Entry(SYNC, b"x"))


def member_of(roster: Roster, boot: bytes = A) -> Roster:
    """Admit a boot as the machine does when it applies a JOIN."""
    roster.take(roster.index + 1, 1, boot, 0, JOIN_BATCH)
    roster.admit(boot, JoinRequest(0, 3, "", "", "", b"", 0))
    return roster


@pytest.fixture
def roster() -> Roster:
    return member_of(Roster(SERVICE))


def take(roster: Roster, number: int, payload: bytes = OTHER, boot: bytes = A) -> list[int]:
    """Take a record; return the numbers that it releases."""
    released = roster.take(roster.index + 1, 7 * (roster.index + 1), boot, number, payload)
    return [number for number, _, _ in released]


class TestUnknownBoot:
    def test_its_lone_join_is_released_and_makes_it_no_member(self) -> None:
        roster = Roster(SERVICE)
        assert roster.take(1, 5, A, 0, JOIN_BATCH) == [(0, JOIN_BATCH, 1)]
        assert not roster.members

    @pytest.mark.parametrize(
        "payload",
        [
            pytest.param(OTHER, id="other entry"),
            pytest.param(payload_of(), id="empty"),
            pytest.param(payload_of(join_entry(), join_entry()), id="two"),
            pytest.param(payload_of(join_entry(), Entry(SYNC, b"")), id="not alone"),
            pytest.param(b"", id="no batch"),
            pytest.param(JOIN_BATCH[:-1], id="cut"),
        ],
    )
    def test_anything_else_is_void(self, payload: bytes) -> None:
        assert take(Roster(SERVICE), 0, payload) == []

    def test_a_join_under_another_number_is_void(self) -> None:
        assert take(Roster(SERVICE), 1, JOIN_BATCH) == []


class TestNumbers:
    def test_batches_are_released_in_turn(self, roster: Roster) -> None:
        assert [take(roster, number) for number in (1, 2, 3)] == [[1], [2], [3]]
        assert roster.members[A].next == 4

    def test_a_number_from_before_is_void(self, roster: Roster) -> None:
        take(roster, 1)
        last = roster.members[A].last_index
        assert [take(roster, number) for number in (0, 1)] == [[], []]
        assert roster.members[A].last_index == last

    def test_what_comes_too_early_is_held_and_released_behind_the_one_it_waits_for(
        self, roster: Roster
    ) -> None:
        assert [take(roster, number) for number in (3, 2, 5)] == [[], [], []]
        assert roster.held_count == 3
        assert take(roster, 1) == [1, 2, 3]
        assert (roster.held_count, roster.members[A].next) == (1, 4)
        assert take(roster, 4) == [4, 5]
        assert roster.held_count == 0

    def test_the_first_of_two_under_a_number_is_held(self, roster: Roster) -> None:
        take(roster, 2, b"first")
        last = roster.members[A].last_index
        take(roster, 2, b"second")
        assert roster.members[A].last_index == last
        assert roster.held_count == 1
        assert roster.take(99, 1, A, 1, b"now") == [(1, b"now", 99), (2, b"first", 2)]

    def test_one_too_far_ahead_is_void(self, roster: Roster) -> None:
        assert take(roster, 1 + HELD_MAX) == []
        assert roster.held_count == 0
        assert roster.members[A].last_index == 1
        assert take(roster, HELD_MAX) == []
        assert (roster.held_count, roster.members[A].last_index) == (1, 3)

    def test_what_is_held_is_bounded(self, roster: Roster) -> None:
        for number in range(2, 500):
            take(roster, number)
        assert roster.held_count == HELD_MAX - 1
        assert len(take(roster, 1)) == HELD_MAX

    def test_what_a_member_has_written_is_released_whatever_it_is(self, roster: Roster) -> None:
        assert roster.take(9, 9, A, 1, b"?") == [(1, b"?", 9)]

    def test_members_do_not_wait_for_each_other(self, roster: Roster) -> None:
        member_of(roster, B)
        take(roster, 2)
        assert take(roster, 1, boot=B) == [1]
        assert take(roster, 1) == [1, 2]


class TestPlace:
    def test_every_record_counts_for_the_place_in_the_log(self, roster: Roster) -> None:
        for boot, number in ((A, 1), (A, 1), (A, 9), (C, 4)):
            take(roster, number, boot=boot)
            place = roster.index, roster.revision, roster.last_boot, roster.last_number
            assert place == (place[0], 7 * place[0], boot, number)
        assert roster.index == 5

    def test_records_go_on_in_order(self, roster: Roster) -> None:
        with pytest.raises(AssertionError):
            roster.take(roster.index, 1, A, 1, OTHER)

    def test_a_held_batch_is_the_last_of_its_member(self, roster: Roster) -> None:
        take(roster, 3)
        assert roster.members[A].last_index == roster.index

    @pytest.mark.parametrize(
        ("digest_index", "lag"), [(7, 3), (10, 0), (0, 10), (-5, 10), (11, 0), (-(2**63), 10)]
    )
    def test_the_lag_is_fixed_when_a_batch_arrives(
        self, roster: Roster, digest_index: int, lag: int
    ) -> None:
        roster.take(10, 1, A, 2, payload_of(digest_index=digest_index))
        assert roster.members[A].lag == lag
        take(roster, 0)
        take(roster, 1, b"short")
        assert roster.members[A].lag == lag


class TestEnd:
    def test_a_boot_that_has_ended_is_void(self, roster: Roster) -> None:
        take(roster, 2)
        roster.remove(A)
        assert (roster.held_count, roster.members) == (0, {})
        assert [take(roster, number) for number in (1, 2, 3)] == [[], [], []]
        assert take(roster, 0, JOIN_BATCH) == []

    def test_it_is_remembered_for_as_long_as_its_join_could_count(self, roster: Roster) -> None:
        roster.remove(A)
        end = roster.index
        roster.take(end + JOIN_AGE_MAX, 1, B, 5, OTHER)
        assert roster.ended == {A: end}
        roster.take(end + JOIN_AGE_MAX + 1, 1, B, 5, OTHER)
        assert roster.ended == {}

    def test_only_the_eldest_are_forgotten(self, roster: Roster) -> None:
        roster.remove(A)
        member_of(roster, B)
        roster.remove(B)
        roster.take(1 + JOIN_AGE_MAX + 1, 1, C, 5, OTHER)
        assert list(roster.ended) == [B]


def test_duty_is_the_eldest_member(roster: Roster) -> None:
    member_of(member_of(roster, B), C)
    duty = roster.duty()
    assert duty is not None
    assert (duty.boot, duty.number) == (A, 1)
    roster.remove(A)
    member_of(roster, b"boot-ddd")
    duty = roster.duty()
    assert duty is not None
    assert (duty.boot, duty.number) == (B, 2)
    assert Roster(SERVICE).duty() is None


def test_a_member_is_found_by_its_number(roster: Roster) -> None:
    member_of(roster, B)
    found = roster.numbered(2)
    assert found is not None
    assert found.boot == B
    assert roster.numbered(3) is None


def test_the_addresses_that_no_member_has_are_bounded() -> None:
    state = SharedState()
    state.join(A, "first:1")
    for number in range(ADDRESSES_MAX + 10):
        state.join(b"%08d" % number, f"host{number}:1")
        state.commit(b"%08d" % number, Entry(LEAVE, b""))
    assert len(state.roster.addresses) == ADDRESSES_MAX
    assert state.roster.addresses[:2] == ["first:1", "host11:1"]
    assert state.roster.addresses[-1] == f"host{ADDRESSES_MAX + 9}:1"


def test_requests_come_back_as_encoded() -> None:
    join = JoinRequest(5, 3, "höst:2181", "a=b\nc=d", "1.2", B, 1_700_000_000_000)
    assert JoinRequest.decode(join.encode()) == join
    depose = DeposeRequest(B, 77)
    assert DeposeRequest.decode(depose.encode()) == depose


def test_a_roster_comes_back_as_written() -> None:
    state = SharedState()
    state.join(A, "a:1")
    state.join(B, "b:2")
    state.commit(A, Entry(LEAVE, b""))
    state.join(C)
    state.commit(C, Entry(CLOCK, clock_body(77_000)))
    wire = encode(state.roster)
    again = Roster.read(Reader(wire))
    assert encode(again) == wire
    assert list(again.members) == [B, C]
    assert again.members[C].time_ms == 77_000
    assert (again.ended, again.addresses) == ({A: 3}, ["a:1", "b:2"])


def test_what_is_held_is_in_no_snapshot(roster: Roster) -> None:
    take(roster, 2)
    with pytest.raises(AssertionError, match="held"):
        encode(roster)
