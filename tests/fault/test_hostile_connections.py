"""Thousands of connections and sessions, and attempts to take over a session."""

from __future__ import annotations

import itertools
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
    reset,
    send_some,
    siege,
    take_frame,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Code, Mode

WORDS = ("ruok", "srvr", "stat", "mntr", "conf", "envi", "isro")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    with besieged_server(tmp_path) as server:
        yield server


@pytest.mark.parametrize("end", ["closed", "reset"])
def test_five_thousand_connects_and_disconnects(server: FaultServer, end: str) -> None:
    with siege(server, growth_mb_max=SLACK_MB):
        for _ in range(50 * SCALE):
            with Crowd(server.address) as crowd:
                for one in [crowd.join() for _ in range(100)]:
                    if end == "reset":
                        reset(one)
        _wait_connections(server, 2)


@pytest.mark.parametrize("end", ["closed", "reset"])
def test_five_thousand_sessions_that_are_abandoned(server: FaultServer, end: str) -> None:
    # Each of them is kept until its timeout is over: some hundred bytes.
    with siege(server, growth_mb_max=SLACK_MB):
        for _ in range(50 * SCALE):
            with Crowd(server.address) as crowd:
                # Some hang up before they are answered, and the others at once after it.
                for number, one in enumerate([crowd.join(handshake(4_000)) for _ in range(100)]):
                    if number % 2:
                        take_frame(one)
                    if end == "reset":
                        reset(one)
        eventually(lambda: _figure(server, "global_sessions") <= 2, "the end of all sessions")
        _wait_connections(server, 2)


def test_five_thousand_sessions_with_an_ephemeral_each(server: FaultServer) -> None:
    create = encoded([rq.create("/e", flags=Mode.EPHEMERAL_SEQUENTIAL)])
    with siege(server, growth_mb_max=SLACK_MB + 10 * SCALE):
        for _ in range(50 * SCALE):
            with Crowd(server.address) as crowd:
                for one in [crowd.join(handshake(4_000), create) for _ in range(100)]:
                    take_frame(one)
        eventually(lambda: _figure(server, "ephemerals_count") <= 1, "the end of the ephemerals")


def test_connections_over_the_limit_of_an_address_are_refused(tmp_path: Path) -> None:
    with besieged_server(tmp_path, {"maxClientCnxns": 60}) as server:
        with siege(server, growth_mb_max=SLACK_MB) as bystander:
            with Crowd(server.address, per_address=1_000 * SCALE) as crowd:
                for _ in range(1_000 * SCALE):
                    crowd.join()
                bystander.wait_rounds(5)
                assert _figure(server, "num_alive_connections") <= 63


def test_connections_over_the_limit_in_all_are_refused(tmp_path: Path) -> None:
    with besieged_server(tmp_path, {"maxCnxns": 100}) as server:
        with siege(server, growth_mb_max=SLACK_MB) as bystander:
            with Crowd(server.address) as crowd:
                for _ in range(500 * SCALE):
                    crowd.join()
                bystander.wait_rounds(5)
                assert _descriptors(server) < 200


def test_a_wrong_password_for_somebodys_session_is_nothing_to_its_owner(
    server: FaultServer,
) -> None:
    with siege(server, growth_mb_max=SLACK_MB) as bystander:
        guesses = itertools.cycle((bytes(16), b"", None, b"x" * 16, b"x" * 900))
        for password in itertools.islice(guesses, 500 * SCALE):
            with wire.connect(
                server.address, session_id=bystander.session_id, password=password
            ) as thief:
                assert (thief.session_id, thief.handshake.timeout_ms) == (0, 0)
                assert thief.handshake.password == bytes(16)
        bystander.wait_rounds(3)


def test_sessions_that_never_were_are_not_given(server: FaultServer) -> None:
    with siege(server, growth_mb_max=SLACK_MB):
        for session_id in (1, -1, 2**63 - 1, -(2**63)):
            with wire.connect(server.address, session_id=session_id) as thief:
                assert thief.session_id == 0


def test_four_letter_words_by_the_thousand(server: FaultServer) -> None:
    with siege(server, growth_mb_max=SLACK_MB) as bystander, Crowd(server.address) as crowd:
        # `stat` has a line for each of these.
        idle = [crowd.join_session() for _ in range(300)]
        for word in itertools.islice(itertools.cycle(WORDS), 2_000 * SCALE):
            assert wire.four_letter_word(server.address, word)
        # And some who do not wait for the answer.
        for word in itertools.islice(itertools.cycle(WORDS), 500 * SCALE):
            reset(crowd.join(word.encode()))
        bystander.wait_rounds(3)
        assert len(idle) == 300


def test_identities_by_the_thousand(server: FaultServer) -> None:
    with siege(server, growth_mb_max=SLACK_MB) as bystander:
        for _ in range(5 * SCALE):
            with wire.connect(server.address) as greedy:
                # Each write takes its client's identities along, so there is a bound to them.
                assert _authenticate_until_refused(greedy) < 2_000
        bystander.wait_rounds(3)


def test_the_same_identity_again_and_again(server: FaultServer) -> None:
    with siege(server, growth_mb_max=SLACK_MB):
        with wire.connect(server.address) as client:
            for _ in range(10 * SCALE):
                same = [rq.auth("digest", b"user:password")] * 1_000
                assert set(wire.errors(client.calls(*same))) == {0}
            assert len(client.call(rq.who_am_i()).pairs) == 2
            client.close()


def test_handshakes_with_a_password_as_long_as_a_frame(server: FaultServer) -> None:
    body = framed(wire.connect_body(session_id=1, password=bytes(1_000_000)))
    with siege(server, growth_mb_max=SLACK_MB + 50):
        for _ in range(50 * SCALE):
            with Crowd(server.address) as crowd:
                send_some(crowd.join(), body)


def _authenticate_until_refused(client: wire.Client) -> int:
    for number in range(10_000):
        try:
            if client.call(rq.auth("digest", b"user-%d:password" % number)).err != Code.OK:
                return number
        except (wire.ConnectionClosedError, ConnectionError):
            return number
    return 10_000


def _figure(server: FaultServer, name: str) -> int:
    lines = wire.four_letter_word(server.address, "mntr").splitlines()
    return int(dict(line.split("\t") for line in lines)[f"zk_{name}"])


def _wait_connections(server: FaultServer, count: int) -> None:
    """Wait until only so many are left, the one that asks among them."""
    eventually(
        lambda: _figure(server, "num_alive_connections") <= count, "the end of the connections"
    )
    eventually(lambda: _descriptors(server) < 50, "the end of the sockets")


def _descriptors(server: FaultServer) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
