"""Clients that ask for far more than they read.

What a client does not take has a bound for each connection; over it, the client is disconnected.
The bound for the memory is that, times the clients, and what the reply in the making takes.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.stage.bystander import Bystander
from tests.fault.stage.process import FaultServer
from tests.fault.stage.siege import (
    SCALE,
    SLACK_MB,
    Crowd,
    besieged_server,
    encoded,
    send_some,
    siege,
    take_frame,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Mode, Request

REPLY_MB_MAX = 8
CLIENTS = 10
#: What waits for a client may be over the limit by the last reply that was made for it, and what a
#: client asked that is not answered yet comes on top.
BOUND_MB = CLIENTS * (REPLY_MB_MAX + 3) + SLACK_MB
#: The same where one reply has 16 MB.
LARGE_BOUND_MB = CLIENTS * (REPLY_MB_MAX + 16) + SLACK_MB
MEGABYTE = bytes(1_000_000)
LARGE = "/large"
WIDE = "/wide"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    with besieged_server(
        tmp_path, {"paddock.maxReplyBytesPerConnection": REPLY_MB_MAX << 20}
    ) as server:
        with wire.connect(server.address) as client:
            assert client.call(rq.create(LARGE, MEGABYTE)).err == 0
            client.close()
        yield server


def flood(server: FaultServer, requests: list[Request], *, growth_mb_max: float) -> None:
    """Let some clients ask for all of it again and again, and read nothing."""
    with siege(server, growth_mb_max=growth_mb_max) as bystander:
        with Crowd(server.address) as crowd:
            deaf = [crowd.join_session(receive_bytes=4_096) for _ in range(CLIENTS)]
            data = encoded(requests)
            for _ in range(3 * SCALE):
                for one in deaf:
                    send_some(one, data)
                bystander.wait_rounds(5)


def test_gigabytes_of_gets(server: FaultServer) -> None:
    flood(server, [rq.get_data(LARGE)] * 300, growth_mb_max=BOUND_MB)


def test_gigabytes_of_gets_in_line_behind_a_write(server: FaultServer) -> None:
    requests = [rq.set_data(LARGE, MEGABYTE), *[rq.get_data(LARGE)] * 300]
    flood(server, requests, growth_mb_max=BOUND_MB + CLIENTS * len(MEGABYTE) / 1e6)


def test_gigabytes_by_multi_reads(server: FaultServer) -> None:
    reads = rq.multi_read(*[rq.get_data(LARGE)] * 1_000)
    flood(server, [reads] * 20, growth_mb_max=LARGE_BOUND_MB)


def test_gigabytes_by_multi_reads_in_line_behind_a_write(server: FaultServer) -> None:
    reads = rq.multi_read(*[rq.get_data(LARGE)] * 1_000)
    flood(server, [rq.set_data("/", b""), *[reads] * 20], growth_mb_max=LARGE_BOUND_MB)


def test_gigabytes_of_children(server: FaultServer) -> None:
    with wire.connect(server.address) as client:
        assert client.call(rq.create(WIDE)).err == 0
        names = (f"{WIDE}/child-{number:050}" for number in range(25_000))
        while some := list(itertools.islice(names, 5_000)):
            assert set(wire.errors(client.calls(*map(rq.create, some)))) == {0}
        client.close()
    requests = [rq.get_children(WIDE), rq.get_children2(WIDE)] * 500
    flood(server, requests, growth_mb_max=BOUND_MB)


def test_gigabytes_of_ephemerals(server: FaultServer) -> None:
    with siege(server, growth_mb_max=BOUND_MB) as bystander, Crowd(server.address) as crowd:
        one = crowd.join_session(receive_bytes=4_096)
        creates = [
            rq.create(f"/ephemeral-{number}-{'x' * 1_000}", flags=Mode.EPHEMERAL)
            for number in range(2_000)
        ]
        one.sendall(encoded(creates))
        for _ in creates:
            take_frame(one)
        send_some(one, encoded([rq.get_ephemerals("/")] * 2_000))
        bystander.wait_rounds(10)


def test_events_that_nobody_reads(server: FaultServer) -> None:
    with siege(server, growth_mb_max=BOUND_MB) as bystander, Crowd(server.address) as crowd:
        deaf = [crowd.join_session(receive_bytes=4_096) for _ in range(CLIENTS)]
        for one in deaf:
            one.sendall(encoded([rq.add_watch("/", 1)]))
            take_frame(one)
        name = "n" * 10_000
        with wire.connect(server.address) as busy:
            for number in range(40 * SCALE):
                path = f"/{name}{number}"
                changes = [rq.create(path), *[rq.set_data(path, b"")] * 98, rq.delete(path)]
                assert set(wire.errors(busy.calls(*changes))) == {0}
            busy.close()
        # Each was to hear of 40 MB.
        bystander.wait_rounds(5)


def test_a_client_that_reads_one_byte_at_a_time_takes_nobody_with_it(server: FaultServer) -> None:
    with siege(server, growth_mb_max=BOUND_MB) as bystander, Crowd(server.address) as crowd:
        slow = [crowd.join_session(receive_bytes=4_096) for _ in range(CLIENTS)]
        for one in slow:
            send_some(one, encoded([rq.get_data(LARGE)] * 100))
        _sip(slow, bystander, 10 * SCALE)


def _sip(slow: list[socket.socket], bystander: Bystander, rounds: int) -> None:
    for _ in range(rounds):
        for one in slow:
            one.settimeout(wire.DEADLINE_S)
            assert len(one.recv(1)) == 1, "a client that reads is not disconnected"
        bystander.wait_rounds(1)
