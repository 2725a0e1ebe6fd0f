"""A shared state that follows the log without a server."""

import pytest

from paddock.errors import BAD_ARGUMENTS, OK
from paddock.log.interface import LogCorruptError, Record
from paddock.state.entry import FORGET, JOIN, LEAVE, RULES, Batch, Entry
from paddock.state.machine import StateMachine
from paddock.state.roster_bodies import JoinRequest, forget_body
from paddock.storage.cluster.shared_replay import SharedReplay
from paddock.storage.replay import OtherStateError, UnreadableBatchError

SERVICE = bytes(16)
BOOT = b"boot-one"


def new_replay(*skipped: int) -> SharedReplay:
    machine = StateMachine()
    machine.share(SERVICE)
    return SharedReplay(machine, frozenset(skipped))


def batch(operation: int, body: bytes = b"", index: int = -1, digest: int = 0) -> bytes:
    # Nobody has a digest of a state before the first.
    return Batch([Entry(operation, body)], index, digest).encode()


def join(applied: int = 0) -> bytes:
    return batch(JOIN, JoinRequest(applied, RULES, "one:1", "", "1", b"", 0).encode())


def record(index: int, payload: bytes, number: int, boot: bytes = BOOT) -> Record:
    return Record(index, payload, boot, number, 10 * index)


def test_what_a_record_releases_is_applied_in_the_order_of_numbers() -> None:
    replay = new_replay()
    [(number, [outcome])] = replay.apply(record(1, join(), 0))
    assert (number, outcome.error) == (0, OK)
    assert replay.apply(record(2, batch(LEAVE), 2)) == []
    # The one before it came later.
    released = replay.apply(record(3, batch(FORGET, forget_body("other")), 1))
    assert [(number, outcomes[0].error) for number, outcomes in released] == [
        (1, BAD_ARGUMENTS),
        (2, OK),
    ]
    assert (replay.roster.members, replay.roster.index, replay.roster.revision) == ({}, 3, 30)


def test_a_skipped_record_has_no_effect_and_those_behind_it_have() -> None:
    replay = new_replay(2)
    replay.apply(record(1, join(), 0))
    assert replay.apply(record(2, batch(LEAVE), 1)) == [(1, [])]
    assert BOOT in replay.roster.members
    [(number, [outcome])] = replay.apply(record(3, batch(LEAVE), 2))
    assert (number, outcome.error) == (2, OK)


def test_a_record_that_the_log_has_emptied_is_a_skipped_one() -> None:
    replay = new_replay()
    replay.apply(record(1, join(), 0))
    assert replay.apply(record(2, b"", 1)) == [(1, [])]


def test_a_gap_is_noticed() -> None:
    replay = new_replay()
    with pytest.raises(LogCorruptError, match="batch 1 is missing before 2"):
        replay.apply(record(2, join(), 0))


def test_a_batch_that_cannot_be_read_is_named() -> None:
    replay = new_replay()
    replay.apply(record(1, join(), 0))
    with pytest.raises(UnreadableBatchError, match="batch 2 of the log cannot be read"):
        replay.apply(record(2, b"no batch", 1))


def test_a_held_batch_that_cannot_be_read_is_named_by_its_own_index() -> None:
    replay = new_replay()
    replay.apply(record(1, join(), 0))
    replay.apply(record(2, b"no batch", 2))
    with pytest.raises(UnreadableBatchError, match="batch 2 of the log cannot be read"):
        replay.apply(record(3, batch(LEAVE), 1))


def test_a_state_that_differs_from_the_one_of_a_server_is_not_used() -> None:
    replay = new_replay()
    replay.apply(record(1, join(), 0))
    digest = replay.machine.shared_digest()
    replay.apply(record(2, batch(FORGET, forget_body("x"), 1, digest), 1))
    with pytest.raises(OtherStateError, match="batch 3: its server had another state at 2"):
        replay.apply(record(3, batch(LEAVE, b"", 2, digest + 1), 2))
