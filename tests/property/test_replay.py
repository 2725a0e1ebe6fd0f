"""Any prefix of the log is a state, and the same one each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paddock.errors import OK
from paddock.protocol.opcodes import CLOSE_SESSION, CREATE_SESSION
from paddock.state.entry import ATTACH, EXPIRE, Batch
from paddock.state.machine import StateMachine
from tests.property.actions import Action, changes
from tests.property.bounds import examples
from tests.property.dump import dump
from tests.property.pair import log_of


@examples(60)
@given(changes, st.lists(st.integers(1, 6), min_size=1, max_size=8))
def test_every_prefix_of_the_encoded_log_replays_to_the_same_state(
    history: list[Action], sizes: list[int]
) -> None:
    log = log_of(history)
    first = StateMachine()
    stored: list[bytes] = []
    states = [dump(first)]
    index = 0
    while log:
        size = sizes[index % len(sizes)]
        batch, log = log[:size], log[size:]
        # As a proposer does: with the digest of what it had applied before.
        stored.append(Batch(batch, index, first.digest()).encode())
        for entry in batch:
            first.apply(entry)
        states.append(dump(first))
        index += 1
    again = StateMachine()
    for index, payload in enumerate(stored):
        decoded = Batch.decode(payload)
        assert (decoded.digest_index, decoded.digest) == (index, again.digest())
        for entry in decoded.entries:
            again.apply(entry)
        assert dump(again) == states[index + 1]


@examples(60)
@given(changes)
def test_what_is_refused_leaves_no_trace_but_its_zxid(history: list[Action]) -> None:
    machine = StateMachine()
    for entry in log_of(history):
        before = dump(machine)
        outcome = machine.apply(entry)
        after = dump(machine)
        about_a_session = entry.operation in (CREATE_SESSION, CLOSE_SESSION, ATTACH, EXPIRE)
        if outcome.error != OK or (not outcome.changes and not about_a_session):
            assert before.pop("zxid") <= after.pop("zxid")
            assert before.pop("time_ms") <= after.pop("time_ms")
            # An exact session keeps the reply.
            del before["kept"], after["kept"]
            assert after == before
