"""Whatever an entry holds, applying it is total, does the same each time, and undoes what fails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, ANYONE, Identity
from paddock.protocol.requests import CreateRequest
from paddock.state.access import Identities
from paddock.state.entry import (
    ATTACH,
    ENFORCE_QUOTA,
    EXPIRE,
    EXTENDED_TYPES,
    FORGET,
    JOIN,
    REAP,
    Batch,
    Entry,
)
from paddock.state.machine import StateMachine, session_body
from paddock.state.operation_counts import OperationCounts
from paddock.state.queries import Queries
from paddock.state.quota import Fault
from paddock.state.watcher import Watcher
from paddock.state.watches import Watches
from tests.property.bounds import examples
from tests.property.dump import dump
from tests.property.messages import deposals, encode, joins, nearly, queries, writes
from tests.property.spoiled import mostly, several, spoiled
from tests.unit.state.shared_state import A, B, SharedState

SESSION = 7
_WHO = Identities((Identity("ip", "127.0.0.1"), Identity("digest", "bob:hash")))

_sessions = mostly(st.just(SESSION), st.sampled_from([8, 0, -1]), 30)
_flags = st.sampled_from([EXTENDED_TYPES, EXTENDED_TYPES | ENFORCE_QUOTA, 0, 255])
_asked = nearly(writes)
_others = st.tuples(
    st.sampled_from([opcodes.CREATE_SESSION, opcodes.CLOSE_SESSION, ATTACH, EXPIRE, REAP, 0, 99])
    | st.integers(FORGET, JOIN),
    st.just(session_body(1000, bytes(16))) | st.binary(max_size=30),
)


def _entry(request: tuple[int, bytes], session: int, generation: int, flags: int) -> Entry:
    return Entry(request[0], request[1], session, generation, 1, 5, flags, _WHO)


_entries = st.builds(
    _entry,
    mostly(_asked, _others, 25),
    _sessions,
    mostly(st.just(1), st.sampled_from([0, 2]), 30),
    _flags,
)


_decided = {ATTACH, EXPIRE, REAP, opcodes.CREATE_SESSION}


def begun() -> StateMachine:
    """Return a machine with one session and two nodes."""
    machine = StateMachine()
    machine.apply(Entry(opcodes.CREATE_SESSION, session_body(1000, bytes(16)), SESSION, 0, 0, 1))
    for path in (b"/a", b"/b"):
        body = encode(CreateRequest(path, b"", [ACL(ALL, ANYONE)], 0))
        assert machine.apply(Entry(opcodes.CREATE, body, SESSION, 1)).error == OK
    return machine


@examples(150)
@given(several(_entries))
def test_any_entry_is_applied_the_same_way_each_time_and_leaves_nothing_half_done(
    entries: list[Entry],
) -> None:
    one, other = begun(), begun()
    # The other one reads them from the log.
    stored = Batch.decode(Batch(entries, 0, 0).encode()).entries
    for entry, again in zip(entries, stored, strict=True):
        before = dump(one)
        outcome = one.apply(entry)
        after = dump(one)
        repeated = other.apply(again)
        assert (outcome.error, outcome.zxid, outcome.body) == (
            *(repeated.error, repeated.zxid),
            repeated.body,
        )
        if entry.operation not in _decided:
            # Of what a client can send, nothing is a surprise.
            assert not isinstance(outcome.notice, Fault), outcome.notice.sentence()
        if outcome.error != OK:
            assert not outcome.changes
            assert before.pop("zxid") <= after.pop("zxid")
            assert before.pop("time_ms") <= after.pop("time_ms")
            assert after == before
    assert dump(one) == dump(other)


class _Listener(Watcher):
    def notify(self, event: bytes) -> None:
        assert len(event) >= 4


@examples(120)
@given(several(nearly(writes), 2), several(nearly(queries), 3))
def test_any_query_is_answered_and_changes_nothing(
    history: list[tuple[int, bytes]], asked: list[tuple[int, bytes]]
) -> None:
    machine, watches = begun(), Watches(100, 1000)
    answerer, listener = Queries(machine, watches, OperationCounts()), _Listener()
    listener.session = SESSION
    for request in history:
        machine.apply(_entry(request, SESSION, 1, EXTENDED_TYPES))
    state = dump(machine)
    for operation, body in asked:
        error, answer = answerer.answer(operation, body, 0, len(body), listener, _WHO)
        assert error <= 0
        assert error == OK or answer == b""
    assert dump(machine) == state
    # Several modes at one path are several watches, and one of those that are reported.
    assert listener.watch_count >= watches.data.size + watches.child.size
    assert listener.watch_count <= 100
    assert listener.watch_bytes <= 1000
    watches.remove_some(listener, 1 << 30)
    assert (watches.data.size, watches.child.size) == (0, 0)
    assert (listener.watch_count, listener.watch_bytes) == (0, 0)


_bodies = nearly(writes).map(lambda request: request[1])


@examples(100)
@given(st.sampled_from([ATTACH, EXPIRE, REAP, opcodes.CREATE_SESSION]), spoiled(_bodies))
def test_a_decision_of_the_server_that_cannot_be_read_changes_nothing_but_is_told(
    operation: int, body: bytes
) -> None:
    machine = begun()
    before = dump(machine)
    outcome = machine.apply(Entry(operation, body, 9, 1, 0, 5, EXTENDED_TYPES))
    if outcome.error != OK:
        after = dump(machine)
        for key in ("zxid", "time_ms"):
            del before[key], after[key]
        assert after == before


_roster_bodies = joins.map(encode) | deposals.map(encode) | st.binary(max_size=30)


@examples(150)
@given(
    several(
        st.tuples(
            st.sampled_from([A, B, b"boot-ccc", b"boot-ddd"]),
            st.integers(0, 3),
            st.integers(FORGET, JOIN),
            _roster_bodies | spoiled(_roster_bodies),
        )
    )
)
def test_any_entry_of_members_is_answered_and_changes_nothing_if_it_is_refused(
    records: list[tuple[bytes, int, int, bytes]],
) -> None:
    state = SharedState()
    state.join(A)
    state.join(B)
    state.open(A)
    for boot, number, operation, body in records:
        before = dump(state.machine)
        outcomes = state.commit(boot, Entry(operation, body, time_ms=7), number=number)
        after = dump(state.machine)
        assert not any(isinstance(outcome.notice, Fault) for outcome in outcomes)
        if all(outcome.error != OK for outcome in outcomes):
            # The place in the log goes on, and so does that of the proposer.
            for state_of in (before, after):
                del state_of["shared"]["roster"], state_of["shared"]["digest"]
                del state_of["shared"]["members"]
            assert after == before
    state.changes()
