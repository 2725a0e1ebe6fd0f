"""What a client may rely on when it goes from one of several servers to another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import requests as rq
from tests.support import wire
from tests.support.members import Ensemble, Member, move
from tests.support.records import Code, Event, EventType, Mode

pytestmark = pytest.mark.judge


@pytest.fixture
def members(shared_several: Ensemble) -> tuple[Member, Member]:
    """The two followers."""
    first, second = shared_several.followers()
    return first, second


@pytest.fixture
def node(request: pytest.FixtureRequest, members: tuple[Member, Member]) -> str:
    """A node of the test's own."""
    path = f"/{request.node.name}"
    with wire.connect(members[0].address) as client:
        assert client.call(rq.create(path, b"old")).err == Code.OK
        client.close()
    return path


@pytest.fixture
def client(members: tuple[Member, Member], node: str) -> Iterator[wire.Client]:
    """A session on the first member."""
    with wire.connect(members[0].address) as client:
        yield client


@pytest.fixture
def other(members: tuple[Member, Member], node: str) -> Iterator[wire.Client]:
    """A session on the second member."""
    with wire.connect(members[1].address) as other:
        yield other


def test_a_read_behind_a_sync_sees_what_was_written_elsewhere_before(
    client: wire.Client, other: wire.Client, node: str
) -> None:
    for number in range(50):
        written = client.call(rq.set_data(node, b"%d" % number)).zxid
        sync, read = other.calls(rq.sync(node), rq.get_data(node))
        assert (sync.err, sync.path) == (Code.OK, node)
        assert read.zxid >= written
        assert read.data == b"%d" % number


def test_a_watch_fires_for_a_write_on_another_member(
    client: wire.Client, other: wire.Client, node: str
) -> None:
    other.calls(rq.sync(node), rq.get_data(node, watch=True))
    client.call(rq.set_data(node, b"new"))
    event = other.next_event()
    assert (event.type, event.path) == (EventType.DATA_CHANGED, node)
    assert other.call(rq.get_data(node)).data == b"new"


def test_a_session_keeps_its_ephemerals_on_another_member(
    client: wire.Client, members: tuple[Member, Member], node: str
) -> None:
    seen = client.call(rq.create(f"{node}/e", flags=Mode.EPHEMERAL)).zxid
    client.disconnect()
    with move(client, members[1], seen) as moved:
        assert moved.handshake.timeout_ms == client.handshake.timeout_ms
        assert moved.session_id == client.session_id
        assert moved.call(rq.get_ephemerals(node)).names == {f"{node}/e"}
        assert moved.call(rq.exists(f"{node}/e")).stat.ephemeral_owner == client.session_id
        moved.close()


def test_a_session_is_not_given_to_a_wrong_password(
    client: wire.Client, members: tuple[Member, Member]
) -> None:
    with wire.connect(
        members[1].address, session_id=client.session_id, password=b"x" * 16
    ) as stranger:
        assert (stranger.session_id, stranger.handshake.timeout_ms) == (0, 0)


def test_a_write_through_the_connection_that_was_left_is_not_done(
    client: wire.Client, members: tuple[Member, Member], node: str
) -> None:
    with move(client, members[1]) as moved:
        assert moved.call(rq.sync(node)).err == Code.OK
        # The session moved: the old member closes the connection in place of a reply.
        with pytest.raises((wire.ConnectionClosedError, ConnectionError)):
            client.call(rq.set_data(node, b"from the old connection"))
        assert moved.call(rq.set_data(node, b"from the new one", 0)).err == Code.OK
        moved.close()


def test_set_watches_on_another_member_fires_what_was_missed(
    client: wire.Client, other: wire.Client, members: tuple[Member, Member], node: str
) -> None:
    seen = client.call(rq.get_data(node, watch=True)).zxid
    client.disconnect()
    other.call(rq.set_data(node, b"missed"))
    with move(client, members[1], seen) as moved:
        missed, _ = moved.messages(rq.set_watches2(seen, data=[node], exist=[f"{node}/e"]))
        assert missed == Event(EventType.DATA_CHANGED, node)
        other.call(rq.create(f"{node}/e"))
        assert moved.next_event() == Event(EventType.CREATED, f"{node}/e")
        moved.close()


def test_closing_on_another_member_ends_the_session_everywhere(
    client: wire.Client, members: tuple[Member, Member]
) -> None:
    client.disconnect()
    move(client, members[1]).close()
    for member in members:
        with move(client, member) as again:
            assert again.session_id == 0
