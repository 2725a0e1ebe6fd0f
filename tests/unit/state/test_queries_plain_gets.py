"""Plain gets: what they are answered in a row is what each would be answered alone."""

from __future__ import annotations

import random

from librt.strings import BytesWriter

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, ANYONE, READ, Identity
from paddock.protocol.records import ReplyHeader
from paddock.protocol.requests import WatchedRequest
from paddock.state.access import NOBODY, Identities
from paddock.state.queries import LARGE_BYTES
from paddock.state.watcher import ALL_MODES
from tests.unit.state.driver import Connection, World, encode

BOB = Identity("digest", "bob:hash")
LONG = b"/" + b"x" * 5_000
MANY = 1 << 30


def frame(xid: int, operation: int, body: bytes) -> bytes:
    header = xid.to_bytes(4, "big", signed=True) + operation.to_bytes(4, "big")
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


def get(path: bytes, watch: bool = False) -> tuple[int, bytes]:
    return opcodes.GET_DATA, encode(WatchedRequest(path, watch))


def reply(world: World, xid: int, error: int, body: bytes) -> bytes:
    header = encode(ReplyHeader(xid, world.machine.zxid, error))
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


def answered(
    world: World,
    frames: bytes,
    position: int = 0,
    *,
    identities: Identities = NOBODY,
    count_max: int = MANY,
    size_max: int = MANY,
) -> tuple[bytes, int, int]:
    """Return the replies to the plain gets from a position on, their count and their end."""
    replies = BytesWriter()
    count, end = world.queries.answer_plain_gets(
        frames, position, len(frames), count_max, identities, replies, size_max
    )
    return replies.getvalue(), count, end


def furnished(world: World) -> Connection:
    """Create nodes of every kind, and ask for some of them; return who did."""
    client = world.open()
    client.be(BOB)
    client.create(b"/a", b"data")
    client.create(b"/null", None)
    client.create(b"/read", b"r", acls=[ACL(READ, ANYONE), ACL(ALL, BOB)])
    client.create(b"/secret", b"s", acls=[ACL(ALL & ~READ, ANYONE), ACL(ALL, BOB)])
    client.create(b"/large", b"l" * LARGE_BYTES)
    # Its data is small, but not its answer.
    client.create(b"/nearly", b"n" * (LARGE_BYTES - 1))
    client.create(LONG, b"long")
    for path in (b"/a", b"/secret", b"/nearly", LONG, b""):
        client.get(path)
    return client


PLAIN = [get(b"/a"), get(b"/null"), get(b"/read"), get(b"")]
OTHERS = [
    get(b"/a", watch=True),
    get(b"/none"),
    get(b"/secret"),
    get(b"/large"),
    get(b"/nearly"),
    get(LONG),
    (opcodes.EXISTS, encode(WatchedRequest(b"/a", False))),
    (opcodes.GET_CHILDREN, encode(WatchedRequest(b"/a", False))),
    # A path that is null, or of a negative length; of -6 it would be empty and end at a zero.
    (opcodes.GET_DATA, b"\xff\xff\xff\xff\0"),
    (opcodes.GET_DATA, b"\xff\xff\xff\xfe\0"),
    (opcodes.GET_DATA, b"\xff\xff\xff\xfa\0"),
    # Too long, without what comes behind it, and without anything.
    (opcodes.GET_DATA, b"\0\0\0\x03/a\0"),
    (opcodes.GET_DATA, b"\x7f\xff\xff\xff/a\0"),
    (opcodes.GET_DATA, b"\0\0\0\x02/a"),
    (opcodes.GET_DATA, b"\0\0\0\0"),
    (opcodes.GET_DATA, b"\0\0"),
    (opcodes.GET_DATA, b""),
]


def test_a_plain_get_is_answered_as_it_would_be_alone(world: World) -> None:
    client = furnished(world)
    for operation, body in (*PLAIN, (opcodes.GET_DATA, b"\0\0\0\x02/a\0behind it")):
        error, answer = client.ask(operation, body)
        assert error == OK
        frames = frame(-7, operation, body)
        assert answered(world, frames) == (reply(world, -7, OK, answer), 1, len(frames))


def test_everything_else_is_left_alone(world: World) -> None:
    client = furnished(world)
    for operation, body in OTHERS:
        # Alone, and where what follows looks as if it belonged to it.
        for behind in (b"", frame(2, *get(b"/a"))):
            frames = frame(1, operation, body) + behind
            assert answered(world, frames) == (b"", 0, 0), (operation, body[:20])
    # Large data is not copied into an answer that is kept.
    assert world.machine.tree.nodes[b"/large"].wire is None
    # The one that asks for a watch has not set it.
    assert not world.watches.data.contains(b"/a", client, ALL_MODES)


def test_a_row_ends_before_the_first_that_is_something_else(world: World) -> None:
    client = furnished(world)
    chance = random.Random(23)
    for _ in range(200):
        row = [chance.choice(PLAIN) for _ in range(chance.randrange(6))]
        frames = b"".join(frame(xid, *one) for xid, one in enumerate(row))
        replies = b"".join(reply(world, xid, *client.ask(*one)) for xid, one in enumerate(row))
        before = frame(99, *chance.choice(OTHERS))
        behind = frame(100, *chance.choice(OTHERS)) + frame(101, *PLAIN[0])
        found = answered(world, before + frames + behind, len(before))
        assert found == (replies, len(row), len(before) + len(frames))


def test_a_row_ends_where_it_is_to_end(world: World) -> None:
    furnished(world)
    one = frame(1, *get(b"/a"))
    size = len(answered(world, one)[0])
    assert answered(world, one * 5, count_max=3)[1:] == (3, 3 * len(one))
    # One more than fits: then there is enough to be sent.
    assert answered(world, one * 5, size_max=2 * size)[1:] == (3, 3 * len(one))
    assert answered(world, one * 5, size_max=2 * size - 1)[1:] == (2, 2 * len(one))
    assert answered(world, one * 5, count_max=0) == (b"", 0, 0)
    replies = BytesWriter()
    count, end = world.queries.answer_plain_gets(
        one * 5, 0, 2 * len(one), MANY, NOBODY, replies, MANY
    )
    assert (count, end) == (2, 2 * len(one))


def test_it_is_the_newest_answer_for_those_who_may_read_it(world: World) -> None:
    client = furnished(world)
    one = frame(1, *get(b"/a"))
    client.set(b"/a", b"new")
    found = answered(world, one)[0]
    assert found.endswith(b"new" + encode(world.stat(b"/a")))
    assert found == reply(world, 1, *client.ask(*get(b"/a")))
    client.set_acl(b"/a", [ACL(ALL, BOB)])
    assert answered(world, one)[1] == 0
    # The first who asks has the list indexed, which takes as long as it is.
    assert answered(world, one, identities=client.identities)[1] == 0
    assert client.ask(*get(b"/a"))[0] == OK
    assert answered(world, one)[1] == 0
    assert answered(world, one, identities=client.identities)[1] == 1
    client.delete(b"/a")
    assert answered(world, one, identities=client.identities)[1] == 0


def test_each_is_counted(world: World) -> None:
    furnished(world)
    before = world.counts.get_data
    answered(world, frame(1, *get(b"/a")) * 3 + frame(2, *get(b"/none")))
    assert world.counts.get_data == before + 3
