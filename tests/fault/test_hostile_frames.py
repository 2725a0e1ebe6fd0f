"""Streams that are no protocol: garbage, lengths that lie, frames that never end.

None of it may cost a bystander anything, and a frame takes no memory before its bytes come.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.stage.process import FaultServer, eventually
from tests.fault.stage.siege import (
    SCALE,
    SLACK_MB,
    Crowd,
    besieged_server,
    encoded,
    framed,
    handshake,
    send_some,
    siege,
    take_frame,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import INT, Op

SEED = 1
FRAME_BYTES_MAX = 0xFFFFF
LYING_LENGTHS = (-(2**31), -2, -1, 0, 3, FRAME_BYTES_MAX + 1, 2**31 - 1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    with besieged_server(tmp_path) as server:
        yield server


def test_garbage_from_the_first_byte(server: FaultServer) -> None:
    chance = random.Random(SEED)
    with siege(server, growth_mb_max=SLACK_MB) as bystander, Crowd(server.address) as crowd:
        for number in range(500 * SCALE):
            garbage = chance.randbytes(chance.choice((1, 3, 4, 5, 50, 5_000)))
            # Half of it comes as a frame with an honest length.
            send_some(crowd.join(), framed(garbage) if number % 2 else garbage)
        bystander.wait_rounds(5)


def test_garbage_in_a_session(server: FaultServer) -> None:
    chance = random.Random(SEED)
    operations = [int(one) for one in Op if one not in (Op.CLOSE_SESSION, Op.CREATE_SESSION)]
    with siege(server, growth_mb_max=2 * SLACK_MB) as bystander, Crowd(server.address) as crowd:
        for number in range(150 * SCALE):
            one = crowd.join_session()
            if number % 3 == 0:
                send_some(one, chance.randbytes(1_000))
                continue
            for xid in range(20):
                # Of every third connection the operation is one that exists.
                operation = chance.choice(operations) if number % 3 == 1 else chance.getrandbits(31)
                body = chance.randbytes(chance.choice((0, 1, 4, 9, 40, 1_000)))
                send_some(one, framed(INT.pack(xid) + INT.pack(operation) + body))
        bystander.wait_rounds(5)


@pytest.mark.parametrize("with_session", [False, True], ids=["at once", "in a session"])
def test_lengths_that_lie_close_their_own_connection_only(
    server: FaultServer, with_session: bool
) -> None:
    with siege(server, growth_mb_max=SLACK_MB):
        for length in LYING_LENGTHS:
            with wire.Connection(server.address) as one:
                if with_session:
                    one.send_frame(wire.connect_body())
                    one.read_frame()
                one.send_bytes(INT.pack(length) + bytes(max(0, min(length, 64))))
                assert one.wait_closed() == b"", length


@pytest.mark.parametrize("with_session", [False, True], ids=["at once", "in a session"])
@pytest.mark.parametrize("limit", [0, 60], ids=["no limit", "60 an address"])
def test_frames_announced_by_a_thousand_connections_and_never_sent(
    tmp_path: Path, with_session: bool, limit: int
) -> None:
    with besieged_server(tmp_path, {"maxClientCnxns": limit}) as server:
        # A connection costs some kilobytes, whatever it announces.
        with siege(server, growth_mb_max=SLACK_MB + 30 * SCALE) as bystander:
            with Crowd(server.address, per_address=1_000 if limit == 0 else 50) as crowd:
                for _ in range(1_000 * SCALE):
                    one = crowd.join_session() if with_session else crowd.join()
                    one.sendall(INT.pack(FRAME_BYTES_MAX))
                bystander.wait_rounds(10)
                # Nor do they keep newcomers out.
                with wire.connect(server.address) as newcomer:
                    assert newcomer.call(rq.exists("/")).err == 0
                    newcomer.close()


def test_half_frames_take_what_came_of_them_and_no_more(server: FaultServer) -> None:
    half = INT.pack(FRAME_BYTES_MAX) + bytes(FRAME_BYTES_MAX // 2)
    with siege(server, growth_mb_max=SLACK_MB + 60) as bystander:
        with Crowd(server.address) as crowd:
            for _ in range(60):
                crowd.join_session().sendall(half)
            bystander.wait_rounds(10)


def test_half_frames_of_many_have_a_bound_together(tmp_path: Path) -> None:
    half = INT.pack(FRAME_BYTES_MAX) + bytes(FRAME_BYTES_MAX * 9 // 10)
    limit_mb = 32
    with besieged_server(tmp_path, {"paddock.maxRequestBytes": limit_mb << 20}) as server:
        # A buffer that grows is there twice for a moment.
        with siege(server, growth_mb_max=SLACK_MB + 2 * limit_mb) as bystander:
            with Crowd(server.address) as crowd:
                for _ in range(300 * SCALE):
                    send_some(crowd.join_session(), half)
                bystander.wait_rounds(5)


def test_a_request_of_one_byte_a_time_is_served_at_its_end(server: FaultServer) -> None:
    request = encoded([rq.exists("/")])
    with siege(server, growth_mb_max=SLACK_MB) as bystander, Crowd(server.address) as crowd:
        slow = [crowd.join_session() for _ in range(50)]
        for byte in request:
            for one in slow:
                one.sendall(bytes([byte]))
            # The bystander is the clock.
            bystander.wait_rounds(1)
        for one in slow:
            assert take_frame(one).startswith(INT.pack(1))


def test_connections_that_do_not_say_who_they_are_are_closed(tmp_path: Path) -> None:
    beginning = handshake()[:20]
    with besieged_server(tmp_path, {"paddock.handshakeTimeoutMs": 2000}) as server:
        with siege(server, growth_mb_max=SLACK_MB + 10 * SCALE) as bystander:
            with Crowd(server.address) as crowd:
                silent = [crowd.join() for _ in range(200 * SCALE)]
                slow = [crowd.join() for _ in range(50)]
                for byte in beginning:
                    slow = [one for one in slow if send_some(one, bytes([byte]))]
                    bystander.wait_rounds(1)
                for one in [*silent, *slow]:
                    eventually(lambda one=one: _is_closed(one), "an end of the silence")  # type: ignore[misc]


def _is_closed(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
