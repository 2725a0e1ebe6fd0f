"""What goes out while the log syncs: past the transport where that is in order, or through it.

And what is counted of replies to gets in a row.
"""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from librt.strings import BytesWriter

from paddock.protocol.framing import FrameBuffer
from paddock.server.connections import send_buffer
from paddock.server.connections.send_buffer import Backlog, SendBuffer, Writers
from paddock.server.statistics import Statistics
from paddock.state.access import NOBODY
from tests.support import requests as rq
from tests.unit.server.harness import encoded
from tests.unit.state.driver import World


class Recorder(asyncio.Transport):
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.waiting = 0
        self.is_being_closed = False
        self.closes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.is_being_closed

    def close(self) -> None:
        self.is_being_closed = True
        self.closes += 1


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        yield ours, theirs


@pytest.fixture
def transport() -> Recorder:
    return Recorder()


@pytest.fixture
def buffer(transport: Recorder, pair: tuple[socket.socket, socket.socket]) -> SendBuffer:
    made = SendBuffer(Statistics(), Backlog(0, 0))
    made.transport = transport
    made.file = pair[0].fileno()
    return made


def received(pair: tuple[socket.socket, socket.socket]) -> bytes:
    try:
        return pair[1].recv(1 << 20)
    except BlockingIOError:
        return b""


def test_who_gives_way_writes_past_the_transport(
    buffer: SendBuffer, transport: Recorder, pair: tuple[socket.socket, socket.socket]
) -> None:
    buffer.packets(b"answer", 1)
    buffer.flush(gives_way=True)
    assert received(pair) == b"answer"
    assert transport.written == b""
    assert buffer.has_progressed()


def test_who_does_not_writes_through_it(
    buffer: SendBuffer, transport: Recorder, pair: tuple[socket.socket, socket.socket]
) -> None:
    buffer.packets(b"answer", 1)
    buffer.flush()
    assert received(pair) == b""
    assert transport.written == b"answer"


@pytest.mark.parametrize(
    ("waiting", "is_being_closed"),
    [
        pytest.param(1, False, id="nothing overtakes what waits in the transport"),
        pytest.param(0, True, id="its number may be somebody else's already"),
    ],
)
def test_a_socket_that_is_not_ours_alone_is_not_written_to(
    buffer: SendBuffer,
    transport: Recorder,
    pair: tuple[socket.socket, socket.socket],
    waiting: int,
    is_being_closed: bool,
) -> None:
    transport.waiting, transport.is_being_closed = waiting, is_being_closed
    buffer.packets(b"answer", 1)
    buffer.flush(gives_way=True)
    assert received(pair) == b""
    assert transport.written == b"answer"


def test_what_the_system_does_not_take_goes_to_the_transport(
    buffer: SendBuffer, transport: Recorder, pair: tuple[socket.socket, socket.socket]
) -> None:
    sent = bytes(range(256)) * 4096
    for start in range(0, len(sent), 1 << 12):
        buffer.packets(sent[start : start + (1 << 12)], 1)
    buffer.flush(gives_way=True)
    taken = received(pair)
    assert taken
    assert transport.written
    assert taken + transport.written == sent
    # Nor does it take anything as long as nobody reads.
    transport.written = b""
    while True:
        try:
            pair[0].send(bytes(4096))
        except BlockingIOError:
            break
    buffer.packets(b"answer", 1)
    buffer.flush(gives_way=True)
    assert transport.written == b"answer"


def test_a_peer_that_has_gone_is_left_to_the_transport(
    buffer: SendBuffer, transport: Recorder, pair: tuple[socket.socket, socket.socket]
) -> None:
    pair[1].close()
    buffer.packets(b"answer", 1)
    buffer.flush(gives_way=True)
    assert transport.written == b"answer"


def test_a_transport_is_closed_once_however_often_the_last_is_flushed(
    transport: Recorder, buffer: SendBuffer
) -> None:
    buffer.flush()
    assert transport.closes == 0
    buffer.is_last = True
    buffer.flush()
    buffer.flush()
    assert transport.closes == 1


def test_without_a_socket_of_its_own_all_goes_through_the_transport(
    buffer: SendBuffer, transport: Recorder
) -> None:
    buffer.file = -1
    buffer.packets(b"answer", 1)
    buffer.flush(gives_way=True)
    assert transport.written == b"answer"


def test_uvloop_tells_at_once_what_it_has_not_written_yet() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def look() -> None:
        lost = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_lost(self, error: Exception | None) -> None:
                lost.set_result(error)

        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = listening.getsockname()
            made = asyncio.get_running_loop().create_connection(Protocol, *address)
            transport, _ = await made
            transport.write(bytes(64 << 20))
            # What is written past it now would overtake the rest of this.
            assert transport.get_write_buffer_size() > 0
            transport.abort()
            await lost

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(look(), 30))


def test_replies_to_gets_in_a_row_count_each(transport: Recorder) -> None:
    world = World()
    client = world.open()
    client.create(b"/a", b"data")
    frames = b"".join(encoded(xid, rq.get_data("/a")) for xid in range(10))
    buffer = SendBuffer(Statistics(), Backlog(0, 0))
    buffer.transport = transport

    def reply(count_max: int) -> int:
        count, _ = buffer.reply_to_plain_gets(
            world.queries, frames, 0, len(frames), count_max, NOBODY
        )
        return count

    assert reply(0) == 0
    assert buffer.last_zxid == 0
    assert reply(7) == 7
    buffer.flush()
    assert (buffer.sent, buffer.last_zxid) == (7, world.machine.zxid)
    # A large body counts as gathered, too: behind it there is room for one reply.
    buffer.reply_large(1, 1, b"", bytes((1 << 20) - 100), b"")
    assert reply(10) == 2
    assert buffer.is_full()
    buffer.flush()
    assert buffer.sent == 10


def bodies(transport: Recorder) -> list[bytes]:
    """Return what the replies hold that were written."""
    frames = FrameBuffer(1 << 20).receive_data(transport.written)
    return [frame[16:] for frame in frames]


def test_a_writer_with_memory_is_lent_until_the_next_flush(transport: Recorder) -> None:
    backlog = Backlog(0, 0)
    first, second = (SendBuffer(Statistics(), backlog) for _ in range(2))
    writers = backlog.writers
    first.transport = second.transport = transport
    roomy = writers.take()
    writers.put_back(roomy)
    first.expect_much()
    # It is the first one's.
    second.expect_much()
    first.reply(1, 1, 0, b"one")
    first.expect_much()
    second.reply(2, 1, 0, b"two")
    first.flush()
    assert writers.take() is roomy
    assert len(roomy) == 0
    first.reply(3, 1, 0, b"three")
    assert len(roomy) == 0
    for each in (second, first):
        each.flush()
    assert bodies(transport) == [b"one", b"two", b"three"]


def test_a_buffer_in_which_something_has_gathered_keeps_its_writer(transport: Recorder) -> None:
    backlog = Backlog(0, 0)
    writers = backlog.writers
    buffer = SendBuffer(Statistics(), backlog)
    buffer.transport = transport
    writers.put_back(lent := writers.take())
    buffer.reply(1, 1, 0, b"one")
    buffer.expect_much()
    assert writers.take() is lent
    buffer.flush()
    assert bodies(transport) == [b"one"]


@pytest.mark.source
def test_without_memory_for_another_a_buffer_does_not_share_its_writer(
    transport: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one client gets would be sent to the next."""
    backlog = Backlog(0, 0)
    buffer = SendBuffer(Statistics(), backlog)
    buffer.transport = transport
    backlog.writers.put_back(lent := backlog.writers.take())
    buffer.expect_much()
    buffer.reply(1, 1, 0, b"one")

    def refuse() -> None:
        raise MemoryError

    with monkeypatch.context() as without_memory:
        without_memory.setattr(send_buffer, "BytesWriter", refuse)
        with pytest.raises(MemoryError):
            buffer.flush()
    buffer.reply(2, 1, 0, b"two")
    assert len(lent) > 0
    assert backlog.writers.take() is not lent


def test_few_writers_are_kept_and_none_that_has_become_large() -> None:
    writers = Writers()
    large = BytesWriter()
    large.write(bytes(1 << 17))
    writers.put_back(large)
    assert writers.take() is not large
    lent = [writers.take() for _ in range(100)]
    for writer in lent:
        writers.put_back(writer)
    kept = [writer for writer in (writers.take() for _ in range(100)) if writer in lent]
    assert 0 < len(kept) <= 16
