"""What an exact session keeps of its writes."""

from __future__ import annotations

import pytest

from paddock.errors import (
    BAD_VERSION,
    MARSHALLING_ERROR,
    NO_NODE,
    OK,
    SESSION_EXPIRED,
    SESSION_MOVED,
)
from paddock.protocol import opcodes
from paddock.protocol.exact import KeptReply
from paddock.protocol.jute import Reader
from paddock.protocol.requests import CreateRequest, SetDataRequest, VersionRequest
from paddock.state.entry import NEVER_EXACT, SYNC, Entry
from paddock.state.kept_replies import (
    ALL_BYTES_MAX,
    CHUNK,
    CHUNK_BYTES,
    OWN_BYTES,
    REPLY_BYTES_MIN,
    SESSION_BYTES_MAX,
    WINDOW,
    KeptReplies,
)
from paddock.state.machine import StateMachine, session_body
from paddock.state.snapshot import Snapshot, restore
from tests.property.dump import dump
from tests.unit.state.driver import OPEN, PASSWORD, Connection, World, encode
from tests.unit.state.shared_state import A, B, SharedState


@pytest.fixture
def exact(world: World) -> Connection:
    return world.open(is_exact=True)


def replies(kept: KeptReplies) -> list[KeptReply]:
    reader = Reader(kept.data())
    found = [KeptReply.read(reader) for _ in range(kept.count)]
    assert reader.rest() == b""
    return found


def long_path(number: int, length: int) -> bytes:
    return b"/%0*d" % (length - 1, number)


def bodies(kept: KeptReplies) -> list[int | None]:
    """Return the length of each body, or None if it was not kept."""
    return [None if one.body is None else len(one.body) for one in replies(kept)]


def test_every_write_that_was_applied_is_kept_with_its_reply(
    world: World, exact: Connection
) -> None:
    outcomes = [
        exact.create(b"/a"),
        exact.set(b"/a", b"data", 5),
        exact.multi((opcodes.CREATE, CreateRequest(b"/a/b", b"", OPEN, 0))),
        exact.multi(
            (opcodes.DELETE, VersionRequest(b"/a/b", -1)),
            (opcodes.SET_DATA, SetDataRequest(b"/none", b"", -1)),
            (opcodes.DELETE, VersionRequest(b"/a", -1)),
        ),
        exact.send(opcodes.SET_DATA, b"?"),
        exact.send(opcodes.RECONFIG, b"?"),
        exact.delete(b"/none"),
    ]
    kept = world.kept(exact.session)
    assert (kept.generation, kept.confirmed) == (1, 0)
    bodies_of: list[bytes | None] = [outcome.body for outcome in outcomes]
    # Of a transaction that was refused, whose reply says OK, it is kept why and where.
    bodies_of[3] = None
    assert [(one.xid, one.zxid, one.body) for one in replies(kept)] == [
        (number, outcome.zxid, body)
        for number, (outcome, body) in enumerate(zip(outcomes, bodies_of, strict=True), 1)
    ]
    assert [one.failed for one in replies(kept)] == [-1, -1, -1, 1, -1, -1, -1]
    errors = [OK, BAD_VERSION, OK, OK, MARSHALLING_ERROR, MARSHALLING_ERROR, NO_NODE]
    assert [outcome.error for outcome in outcomes] == errors
    errors[3] = NO_NODE
    assert [one.error for one in replies(kept)] == errors


def test_an_ordinary_session_keeps_nothing(world: World) -> None:
    client = world.open()
    client.create(b"/a")
    assert world.machine.sessions.by_id[client.session].kept is None


def test_no_session_is_exact_under_former_rules(world: World) -> None:
    world.rules = NEVER_EXACT
    client = world.open(is_exact=True)
    world.rules = NEVER_EXACT + 1
    client.create(b"/a")
    assert world.machine.sessions.by_id[client.session].kept is None


def test_what_comes_behind_the_fence_has_no_effect_and_is_not_kept(
    world: World, exact: Connection
) -> None:
    exact.create(b"/before")
    _, attached = world.attach(exact.session)
    assert exact.create(b"/after").error == SESSION_MOVED
    kept = world.kept(exact.session)
    assert (kept.generation, attached.generation) == (1, 2)
    assert [one.xid for one in replies(kept)] == [1]
    assert b"/after" not in world.machine.tree.nodes


def test_replies_stay_until_a_write_shows_that_they_were_read(
    world: World, exact: Connection
) -> None:
    exact.create(b"/a")
    exact.create(b"/b")
    world.attach(exact.session)
    # The answer to this one was lost, and the next one lists the same.
    _, attached = world.attach(exact.session)
    assert [one.xid for one in replies(world.kept(exact.session))] == [1, 2]
    attached.xid = 40
    attached.create(b"/c")
    kept = world.kept(exact.session)
    assert (kept.generation, kept.confirmed) == (3, 0)
    assert [one.xid for one in replies(kept)] == [41]


def test_a_wrong_password_and_an_end_by_others_leave_no_trace(
    world: World, exact: Connection
) -> None:
    exact.create(b"/a")
    assert world.attach(exact.session, password=b"another")[0].error == SESSION_EXPIRED
    assert [one.xid for one in replies(world.kept(exact.session))] == [1]
    world.expire(exact.session, 1)
    assert exact.create(b"/b").error == SESSION_EXPIRED
    assert world.machine.sessions.kept_bytes == 0
    dump(world.machine)


def test_a_close_ends_what_is_kept(world: World, exact: Connection) -> None:
    exact.create(long_path(1, OWN_BYTES))
    assert world.machine.sessions.kept_bytes == 4
    assert exact.close().error == OK
    assert world.machine.sessions.kept_bytes == 0
    # Nor does it count for the session that writes next.
    other = world.open(is_exact=True)
    other.create(b"/b")
    assert [one.xid for one in replies(world.kept(other.session))] == [1]


def test_a_window_of_replies_is_kept_whatever_goes(world: World, exact: Connection) -> None:
    kept = world.kept(exact.session)
    for number in range(1, 2 * WINDOW):
        exact.delete(b"/none")
        assert kept.count >= min(number, WINDOW)
        assert kept.confirmed == number - kept.count
    assert [one.xid for one in replies(kept)] == list(range(kept.confirmed + 1, 2 * WINDOW))
    dump(world.machine)


def test_a_chunk_goes_when_there_is_a_window_without_it(world: World, exact: Connection) -> None:
    kept = world.kept(exact.session)
    for _ in range(WINDOW + CHUNK - 1):
        exact.delete(b"/none")
    assert (kept.confirmed, kept.count) == (0, WINDOW + CHUNK - 1)
    exact.delete(b"/none")
    assert (kept.confirmed, kept.count) == (CHUNK, WINDOW)
    assert [one.xid for one in replies(kept)] == list(range(CHUNK + 1, WINDOW + CHUNK + 1))
    dump(world.machine)


def test_no_chunk_goes_while_one_reply_of_a_window_is_missing(
    world: World, exact: Connection
) -> None:
    exact.create(long_path(0, CHUNK_BYTES))
    for _ in range(WINDOW - 2):
        exact.delete(b"/none")
    # It ends its chunk, one reply too early.
    exact.create(long_path(1, CHUNK_BYTES))
    kept = world.kept(exact.session)
    assert (kept.confirmed, kept.count) == (0, WINDOW)
    exact.create(long_path(2, CHUNK_BYTES))
    assert (kept.confirmed, kept.count) == (1, WINDOW)


def test_a_chunk_ends_with_its_bytes_too(world: World, exact: Connection) -> None:
    half = CHUNK_BYTES // 2
    for number in range(5):
        exact.create(long_path(number, half))
    kept = world.kept(exact.session)
    assert [len(chunk) > half for chunk in kept.chunks()] == [True, True, True]
    assert len(kept.chunks()[0]) >= CHUNK_BYTES > len(kept.chunks()[-1])
    dump(world.machine)


def test_a_reply_takes_the_place_of_the_eldest_bodies(world: World, exact: Connection) -> None:
    third = SESSION_BYTES_MAX // 3
    for number in range(3):
        exact.create(long_path(number, third - 4))
    assert bodies(world.kept(exact.session)) == [third, third, third]
    exact.create(long_path(3, third - 4))
    assert bodies(world.kept(exact.session)) == [None, third, third, third]
    exact.delete(b"/none")
    exact.create(long_path(4, third))
    assert bodies(world.kept(exact.session)) == [None, None, None, third, 0, third + 4]
    dump(world.machine)


def test_what_goes_makes_room_for_bodies(world: World, exact: Connection) -> None:
    third = SESSION_BYTES_MAX // 3
    for number in range(3):
        exact.create(long_path(number, third - 4))
    for _ in range(WINDOW):
        exact.delete(b"/none")
    kept = world.kept(exact.session)
    assert (kept.confirmed, kept.count, kept.size) == (3, WINDOW, 0)
    exact.create(long_path(4, third))
    assert bodies(kept)[-1] == third + 4
    dump(world.machine)


def test_many_bodies_leave_the_youngest(world: World, exact: Connection) -> None:
    size = 1 << 10
    for number in range(600):
        exact.create(long_path(number, size - 4))
    found = bodies(world.kept(exact.session))
    assert found == [None] * found.count(None) + [size] * found.count(size)
    assert (SESSION_BYTES_MAX - 2 * CHUNK_BYTES) // size < found.count(size)
    assert found.count(size) <= SESSION_BYTES_MAX // size
    dump(world.machine)


def test_chunks_that_have_lost_their_bodies_are_joined(world: World, exact: Connection) -> None:
    # Each is a chunk of its own.
    for number in range(WINDOW):
        exact.create(long_path(number, CHUNK_BYTES))
    kept = world.kept(exact.session)
    found = bodies(kept)
    full = found.count(CHUNK_BYTES + 4)
    assert found == [None] * (WINDOW - full) + [CHUNK_BYTES + 4] * full
    counts = [len(chunk) // REPLY_BYTES_MIN for chunk in kept.chunks()[: -full - 1]]
    assert counts == [CHUNK, CHUNK, CHUNK, WINDOW - full - 3 * CHUNK]
    for number in range(CHUNK):
        exact.create(long_path(WINDOW + number, CHUNK_BYTES))
    assert (kept.confirmed, kept.count) == (CHUNK, WINDOW)
    dump(world.machine)


def test_a_reply_that_is_too_large_keeps_its_error_and_its_zxid(
    world: World, exact: Connection
) -> None:
    exact.create(b"/small")
    path = long_path(1, SESSION_BYTES_MAX - 4)
    exact.create(path)
    exact.delete(path)
    outcome = exact.create(long_path(2, SESSION_BYTES_MAX - 3))
    kept = world.kept(exact.session)
    assert bodies(kept) == [None, SESSION_BYTES_MAX, 0, None]
    assert (replies(kept)[-1].error, replies(kept)[-1].zxid) == (OK, outcome.zxid)
    dump(world.machine)


def test_all_sessions_together_are_bounded(world: World) -> None:
    machine = world.machine
    clients = [world.open(is_exact=True) for _ in range(3)]
    clients[0].create(b"/first")
    # As if there were many more.
    machine.sessions.kept_bytes = ALL_BYTES_MAX - 100
    most = OWN_BYTES + 100
    clients[1].create(long_path(1, most - 4))
    assert bodies(world.kept(clients[1].session)) == [most]
    assert machine.sessions.kept_bytes == ALL_BYTES_MAX
    clients[2].create(long_path(2, OWN_BYTES - 3))
    assert bodies(world.kept(clients[2].session)) == [None]
    # What is its own, a session has in any case.
    clients[2].create(long_path(3, OWN_BYTES - 4))
    assert bodies(world.kept(clients[2].session)) == [None, OWN_BYTES]
    clients[2].create(long_path(4, OWN_BYTES - 4))
    assert bodies(world.kept(clients[2].session)) == [None, None, OWN_BYTES]
    assert machine.sessions.kept_bytes == ALL_BYTES_MAX
    # Whoever writes under another generation has room again.
    _, attached = world.attach(clients[1].session)
    attached.create(long_path(5, most - 7))
    assert bodies(world.kept(attached.session)) == [most - 3]
    assert machine.sessions.kept_bytes == ALL_BYTES_MAX - 3


@pytest.mark.parametrize("point", [0, 1, WINDOW, WINDOW + 5])
def test_a_snapshot_has_what_was_kept_at_its_point(world: World, point: int) -> None:
    client = world.open(is_exact=True)
    world.open(is_exact=True)
    for _ in range(point):
        client.set(b"/", b"")
    then = dump(world.machine)
    snapshot = Snapshot(world.machine)
    for _ in range(WINDOW + 1):
        client.set(b"/", b"")
    client.close()
    assert dump(restore(snapshot.chunks())) == then


def test_large_replies_go_into_several_chunks(world: World) -> None:
    for number in range(40):
        client = world.open(is_exact=True)
        client.create(long_path(number, SESSION_BYTES_MAX - 4))
        client.delete(long_path(number, SESSION_BYTES_MAX - 4))
    chunks = list(Snapshot(world.machine).chunks())
    assert max(map(len, chunks)) < 2 << 20
    assert dump(restore(chunks)) == dump(world.machine)


# Where servers share a log.


def commit_write(state: SharedState, boot: bytes, session: int, xid: int) -> int:
    generation = state.machine.sessions.by_id[session].generation
    body = encode(SetDataRequest(b"/", b"%d" % xid, -1))
    entry = Entry(opcodes.SET_DATA, body, session, generation, xid, rules=NEVER_EXACT + 1)
    (outcome,) = state.commit(boot, entry)
    return outcome.error


def open_exact(state: SharedState, boot: bytes) -> int:
    entry = Entry(opcodes.CREATE_SESSION, session_body(30_000, PASSWORD, True))
    (outcome,) = state.commit(boot, entry)
    assert outcome.session is not None
    return outcome.session.session


def kept_of(machine: StateMachine, session: int) -> KeptReplies:
    kept = machine.sessions.by_id[session].kept
    assert kept is not None
    return kept


def test_another_server_has_the_replies_and_the_digest_has_them_too() -> None:
    state = SharedState()
    state.join(A)
    state.join(B)
    session = open_exact(state, A)
    digests = {state.machine.shared_digest()}
    for xid in range(1, WINDOW + 4):
        assert commit_write(state, A, session, xid) == OK
        digests.add(state.machine.shared_digest())
    assert len(digests) == WINDOW + 4, "a digest for each write"
    state.attach(B, session)
    dump(state.machine)
    assert [one.xid for one in replies(kept_of(state.machine, session))][-1] == WINDOW + 3
    restored = restore(Snapshot(state.machine).chunks())
    assert dump(restored) == dump(state.machine)
    kept = kept_of(restored, session)
    *chunks, last = kept.chunks()
    fresh = restored.sessions.by_id[session].kept = KeptReplies()
    assert fresh.adopt(1, kept.confirmed, [*chunks, last[:-1] + b"?"])
    restored.sessions.adopt_digests()
    assert restored.shared_digest() != state.machine.shared_digest()


def test_bodies_that_go_leave_the_digest_too() -> None:
    state = SharedState()
    state.join(A)
    session = open_exact(state, A)
    for number in range(6):
        body = encode(CreateRequest(long_path(number, SESSION_BYTES_MAX // 3), b"", OPEN, 0))
        entry = Entry(opcodes.CREATE, body, session, 1, number + 1, rules=NEVER_EXACT + 1)
        (outcome,) = state.commit(A, entry)
        assert outcome.error == OK
        # It computes the digest anew.
        dump(state.machine)
    assert bodies(kept_of(state.machine, session)).count(None) == 4


def test_that_a_session_is_exact_is_in_the_digest() -> None:
    one, other = SharedState(), SharedState()
    for state in (one, other):
        state.join(A)
    open_exact(one, A)
    other.open(A)
    assert one.machine.shared_digest() != other.machine.shared_digest()


def test_a_close_leaves_nothing_in_the_digest() -> None:
    one, other = SharedState(), SharedState()
    for state in (one, other):
        state.join(A)
        session = open_exact(state, A)
        if state is one:
            commit_write(state, A, session, 1)
        (outcome,) = state.commit(A, Entry(opcodes.CLOSE_SESSION, b"", session, 1, 2))
        assert outcome.error == OK
        dump(state.machine)
    assert one.machine.sessions.digests == other.machine.sessions.digests == {}


def test_a_sync_is_not_kept() -> None:
    state = SharedState()
    state.join(A)
    session = open_exact(state, A)
    (outcome,) = state.commit(A, Entry(SYNC, b"\x00\x00\x00\x01/", session, 1, 1))
    assert outcome.error == OK
    assert commit_write(state, A, session, 2) == OK
    (opened,) = state.commit(A, Entry(opcodes.CREATE_SESSION, session_body(1, PASSWORD)))
    assert opened.error == OK
    assert [one.xid for one in replies(kept_of(state.machine, session))] == [2]


def test_a_state_that_is_not_shared_any_more_keeps_the_replies() -> None:
    state = SharedState()
    state.join(A)
    session = open_exact(state, A)
    commit_write(state, A, session, 1)
    state.machine.unshare()
    dump(state.machine)
    assert [one.xid for one in replies(kept_of(state.machine, session))] == [1]
