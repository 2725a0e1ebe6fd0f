"""What is answered from memory, beside the watches."""

from __future__ import annotations

import pytest

from paddock.errors import (
    BAD_ARGUMENTS,
    MARSHALLING_ERROR,
    NO_AUTH,
    NO_NODE,
    OK,
    UNIMPLEMENTED,
)
from paddock.protocol import opcodes, operations
from paddock.protocol.acl import ACL, ADMIN, ALL, ANYONE, READ, WRITE, Identity
from paddock.protocol.jute import Reader
from paddock.protocol.records import MultiHeader
from paddock.protocol.replies import (
    ClientInfo,
    GetACLResponse,
    GetChildren2Response,
    IntResponse,
    StringsResponse,
    WhoAmIResponse,
)
from paddock.protocol.requests import PathRequest, WatchedRequest
from paddock.state.queries import SMALL_BYTES
from tests.unit.state.driver import Connection, Record, World, encode, multi_body

BOB = Identity("digest", "bob:hash")
HOME = Identity("ip", "127.0.0.1")


def error_of(client: Connection, operation: int, request: Record) -> int:
    error, body = client.ask(operation, encode(request))
    assert error == OK or body == b""
    return error


@pytest.mark.parametrize("path", [b"/none", b"//", b"/a/", b"a", b"/a/..", b"/\xff"])
def test_reads_do_not_validate_a_path(client: Connection, path: bytes) -> None:
    client.create(b"/a")
    request = WatchedRequest(path, False)
    for operation in (
        *(opcodes.GET_DATA, opcodes.EXISTS, opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2),
    ):
        assert error_of(client, operation, request) == NO_NODE
    assert error_of(client, opcodes.GET_ACL, PathRequest(path)) == NO_NODE


def test_a_nul_is_a_bad_argument_for_exists_only(client: Connection) -> None:
    assert error_of(client, opcodes.EXISTS, WatchedRequest(b"/\0", True)) == BAD_ARGUMENTS
    assert error_of(client, opcodes.GET_DATA, WatchedRequest(b"/\0", False)) == NO_NODE


def test_the_empty_path_is_the_root(client: Connection) -> None:
    assert client.get(b"") == client.get(b"/")
    assert client.children(b"") == [b"zookeeper"]


def test_children_come_with_the_stat(client: Connection, world: World) -> None:
    client.create(b"/a")
    client.create(b"/a/x")
    _, body = client.ask(opcodes.GET_CHILDREN2, encode(WatchedRequest(b"/a", False)))
    assert GetChildren2Response.read(Reader(body)) == GetChildren2Response(
        [b"x"], world.stat(b"/a")
    )


def test_an_answer_is_the_newest_after_every_change(client: Connection, world: World) -> None:
    client.create(b"/a", b"1")
    for data in (b"2", None, b""):
        client.set(b"/a", data)
        assert client.get(b"/a").data == data
        assert client.get(b"/a").stat == world.stat(b"/a")
    client.create(b"/a/x")
    assert client.get(b"/a").stat.num_children == 1
    assert client.children(b"/a") == [b"x"]
    client.delete(b"/a/x")
    assert client.children(b"/a") == []
    client.set_acl(b"/a", [ACL(ALL, ANYONE)])
    assert client.get(b"/a").stat.aversion == 1


def test_sync_echoes_its_path(client: Connection) -> None:
    for path in (b"/a", b"", None):
        assert client.sync(path) == (OK, encode(PathRequest(path)))


def test_get_acl_needs_read_or_admin_and_hides_hashes_without_admin(world: World) -> None:
    owner, stranger = world.open(), world.open()
    owner.be(BOB)
    owner.create(b"/read", acls=[ACL(READ, ANYONE), ACL(ALL, BOB)])
    owner.create(b"/admin", acls=[ACL(ADMIN, ANYONE), ACL(ALL, BOB)])
    owner.create(b"/write", acls=[ACL(WRITE, ANYONE), ACL(ALL, BOB)])

    def acls(client: Connection, path: bytes) -> list[ACL]:
        error, body = client.ask(opcodes.GET_ACL, encode(PathRequest(path)))
        assert error == OK
        response = GetACLResponse.read(Reader(body))
        assert response.stat == world.stat(path)
        return response.acls

    assert acls(owner, b"/read")[1] == ACL(ALL, BOB)
    assert acls(stranger, b"/read")[1] == ACL(ALL, Identity("digest", "bob:x"))
    assert acls(stranger, b"/admin")[1] == ACL(ALL, BOB)
    assert error_of(stranger, opcodes.GET_ACL, PathRequest(b"/write")) == NO_AUTH


def test_reads_need_read(world: World) -> None:
    owner, stranger = world.open(), world.open()
    owner.be(BOB)
    owner.create(b"/secret", b"s", acls=[ACL(ALL, BOB)])
    request = WatchedRequest(b"/secret", False)
    for operation in (
        *(opcodes.GET_DATA, opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2),
        opcodes.EXISTS,
    ):
        assert error_of(stranger, operation, request) == NO_AUTH
        assert error_of(owner, operation, request) == OK
    counting = PathRequest(b"/secret")
    assert error_of(stranger, opcodes.GET_ALL_CHILDREN_NUMBER, counting) == NO_AUTH


def test_exists_asks_for_read_on_the_node_itself_and_only_if_it_is_there(world: World) -> None:
    """It does not matter who may read its parent."""
    owner, stranger = world.open(), world.open()
    owner.be(BOB)
    owner.create(b"/secret", acls=[ACL(ALL, BOB)])
    owner.create(b"/secret/open")
    owner.create(b"/writable", acls=[ACL(ALL & ~READ, ANYONE)])
    for path, code in (
        (b"/secret/open", OK),
        (b"/secret/none", NO_NODE),
        (b"/secret", NO_AUTH),
        (b"/writable", NO_AUTH),
    ):
        assert error_of(stranger, opcodes.EXISTS, WatchedRequest(path, False)) == code
    stranger.be(BOB)
    assert error_of(stranger, opcodes.EXISTS, WatchedRequest(b"/secret", False)) == OK


@pytest.mark.parametrize("operation", [opcodes.EXISTS, opcodes.GET_CHILDREN2])
@pytest.mark.parametrize("size", [SMALL_BYTES - 1, SMALL_BYTES])
def test_what_does_not_send_the_data_keeps_a_copy_of_it_only_if_it_is_small(
    world: World, operation: int, size: int
) -> None:
    client = world.open()
    client.create(b"/node", b"x" * size)
    tree = world.machine.tree
    node, cached = tree.nodes[b"/node"], tree.answers.size
    body = encode(WatchedRequest(b"/node", False))
    error, answer = client.ask(operation, body)
    assert (error, answer[-68:]) == (OK, node.stat())
    assert (node.wire is not None) == (size < SMALL_BYTES)
    assert node.children is None
    assert tree.answers.size == cached + (0 if node.wire is None else len(node.wire))
    # It is the same when a read has made one.
    client.get(b"/node")
    assert client.ask(operation, body) == (OK, answer)


def test_exists_without_read_keeps_nothing(world: World) -> None:
    owner, stranger = world.open(), world.open()
    owner.be(BOB)
    owner.create(b"/secret", acls=[ACL(ALL, BOB)])
    assert error_of(stranger, opcodes.EXISTS, WatchedRequest(b"/secret", False)) == NO_AUTH
    assert world.machine.tree.nodes[b"/secret"].wire is None
    assert error_of(owner, opcodes.EXISTS, WatchedRequest(b"/secret", False)) == OK
    assert world.machine.tree.nodes[b"/secret"].wire is not None


@pytest.mark.parametrize(
    "operation",
    [
        opcodes.GET_DATA,
        opcodes.EXISTS,
        opcodes.GET_CHILDREN,
        opcodes.GET_CHILDREN2,
        opcodes.GET_ACL,
    ],
)
def test_a_query_is_read_where_it_begins(world: World, operation: int) -> None:
    """A server does not copy it out of its frame."""
    client = world.open()
    client.create(b"/node", b"x")
    body = encode(WatchedRequest(b"/node", False))
    answer = client.ask(operation, body)
    assert answer[0] == OK
    ask, header = world.queries.answer, b"/none123"
    whole = header + body + b"/and what comes next"
    end = 8 + len(body)
    assert ask(operation, whole, 8, end, client, client.identities) == answer
    # What is cut off there is cut off, whatever stands before and behind it.
    for cut in (12, 14, end - 2):
        found = ask(operation, whole, 8, cut, client, client.identities)
        assert found == (MARSHALLING_ERROR, b"")


def test_a_query_is_answered_for_who_asked_then(world: World) -> None:
    client = world.open()
    before = client.identities
    client.be(BOB)
    client.create(b"/secret", acls=[ACL(ALL, BOB)])
    body = encode(WatchedRequest(b"/secret", False))
    answer = world.queries.answer
    asked = (opcodes.GET_DATA, body, 0, len(body), client)
    assert answer(*asked, before) == (NO_AUTH, b"")
    assert answer(*asked, client.identities)[0] == OK


def test_a_multi_read_has_a_result_for_each_and_sets_no_watch(world: World) -> None:
    client = world.open()
    client.create(b"/a", b"data")
    error, body = client.ask(
        opcodes.MULTI_READ,
        multi_body(
            [
                (opcodes.GET_DATA, WatchedRequest(b"/a", True)),
                (opcodes.GET_DATA, WatchedRequest(b"/none", True)),
                (opcodes.GET_CHILDREN, WatchedRequest(b"/a", True)),
            ]
        ),
    )
    assert error == OK
    reader = Reader(body)
    assert MultiHeader.read(reader) == MultiHeader(opcodes.GET_DATA, False, OK)
    assert reader.buffer() == b"data"
    reader.position += 68
    assert MultiHeader.read(reader) == MultiHeader(opcodes.ERROR, False, NO_NODE)
    assert reader.int32() == NO_NODE
    assert MultiHeader.read(reader) == MultiHeader(opcodes.GET_CHILDREN, False, OK)
    assert reader.strings() == []
    assert MultiHeader.read(reader) == MultiHeader(-1, True, -1)
    assert reader.rest() == b""
    assert world.watches.data.size == world.watches.child.size == 0


@pytest.mark.parametrize("operation", [opcodes.EXISTS, opcodes.CREATE, opcodes.GET_CHILDREN2, 99])
def test_only_get_and_get_children_go_into_a_multi_read(client: Connection, operation: int) -> None:
    body = multi_body([(operation, WatchedRequest(b"/", False))])
    assert client.ask(opcodes.MULTI_READ, body) == (MARSHALLING_ERROR, b"")


def test_ephemerals_of_the_session_are_given_by_prefix(world: World) -> None:
    client, other = world.open(), world.open()
    client.create(b"/a")
    for path in (b"/a/1", b"/a/2", b"/b"):
        client.create(path, flags=1)
    other.create(b"/a/other", flags=1)

    def ephemerals(prefix: bytes | None) -> list[bytes]:
        error, body = client.ask(opcodes.GET_EPHEMERALS, encode(PathRequest(prefix)))
        assert error == OK
        return sorted(StringsResponse.read(Reader(body)).values)

    for everything in (None, b"", b"/", b"  "):
        assert ephemerals(everything) == [b"/a/1", b"/a/2", b"/b"]
    assert ephemerals(b"/a") == [b"/a/1", b"/a/2"]
    assert ephemerals(b"/a/1") == [b"/a/1"]
    assert ephemerals(b"/none") == []


def test_all_descendants_are_counted(client: Connection) -> None:
    client.create(b"/a")
    client.create(b"/a/b")
    client.create(b"/a/b/c")
    client.create(b"/ab")

    def count(path: bytes) -> int:
        error, body = client.ask(opcodes.GET_ALL_CHILDREN_NUMBER, encode(PathRequest(path)))
        assert error == OK
        return IntResponse.read(Reader(body)).value

    assert (count(b"/a"), count(b"/a/b/c")) == (2, 0)
    assert count(b"") == count(b"/") + 1
    assert count(b"/") == 7


def test_who_am_i_names_everybody_and_no_secret(client: Connection) -> None:
    client.be(HOME, BOB)
    error, body = client.ask(opcodes.WHO_AM_I, b"whatever")
    assert error == OK
    assert WhoAmIResponse.read(Reader(body)).clients == [
        ClientInfo("ip", "127.0.0.1"),
        ClientInfo("digest", "bob"),
    ]


@pytest.mark.parametrize("operation", sorted(operations.READS))
def test_a_query_that_cannot_be_decoded_says_so(client: Connection, operation: int) -> None:
    error, body = client.ask(operation, b"\0")
    if operation == opcodes.WHO_AM_I:
        assert error == OK
    else:
        assert (error, body) == (MARSHALLING_ERROR, b"")


def test_what_is_no_query_is_unimplemented(client: Connection) -> None:
    assert client.ask(4711, b"") == (UNIMPLEMENTED, b"")
