"""Blocking programs in one session after the other."""

from __future__ import annotations

import pytest

from paddock import ConnectionLostError, InvalidArgumentError, SessionExpiredError
from paddock.sync import Client, connect, run_in_sessions, timeout
from paddock.testing import FaultyServer


def test_a_program_begins_again_when_a_call_says_that_the_session_is_over() -> None:
    with FaultyServer() as server:
        clients: list[Client] = []

        def work(client: Client) -> str:
            clients.append(client)
            client.create("/worker", ephemeral=True)
            if len(clients) == 3:
                return "done"
            server.expire(client)
            client.sync()
            raise AssertionError("the session is over")

        assert run_in_sessions(lambda: connect(server.hosts), work) == "done"
        assert len({client.session_id for client in clients}) == 3
        assert all(client.state.is_final for client in clients)


def test_what_is_no_expiry_is_raised_and_closes_the_client() -> None:
    with FaultyServer() as server:
        clients: list[Client] = []

        def fail(client: Client) -> None:
            clients.append(client)
            raise ValueError("of its own")

        def close(client: Client) -> None:
            clients.append(client)
            client.close()
            client.sync()

        for work, error in ((fail, ValueError), (close, SessionExpiredError)):
            with pytest.raises(error):
                run_in_sessions(lambda: connect(server.hosts), work)
        assert len(clients) == 2
        assert all(client.state.is_final for client in clients)


def test_the_deadline_of_the_caller_wins() -> None:
    with FaultyServer() as server:

        def work(client: Client) -> None:
            server.expire(client)
            client.sync()

        with pytest.raises(TimeoutError), timeout(0.7):
            run_in_sessions(lambda: connect(server.hosts), work)


def test_a_first_session_that_nobody_grants_is_an_error_and_so_is_what_is_no_client() -> None:
    with FaultyServer() as server:
        server.proxy.refuse()
        with pytest.raises(ConnectionLostError):
            run_in_sessions(lambda: connect(server.hosts, session_timeout=0.3), str)
        with pytest.raises(InvalidArgumentError, match=r"paddock\.sync"):
            run_in_sessions(lambda: None, str)  # type: ignore[arg-type, return-value]
