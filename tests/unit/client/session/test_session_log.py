"""What the log of a session has for programs."""

from __future__ import annotations

import logging

import pytest

import paddock
from paddock.client.session.handshake import SessionCredentials
from paddock.client.session.session_log import SessionLog
from paddock.testing import EmbeddedServer, run_virtually


def test_a_record_names_the_session_and_has_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    credentials = SessionCredentials(10, read_only=False)
    credentials.id = 0xAB
    with caplog.at_level(logging.DEBUG):
        SessionLog(logging.getLogger("some"), credentials).info("left: %s", "late", reason="late")
    [record] = caplog.records
    assert (record.name, record.levelname) == ("some", "INFO")
    assert record.getMessage() == "session 0xab: left: late"
    fields = vars(record)
    assert (fields["session"], fields["reason"]) == (0xAB, "late")
    # Where it was said, and not where it was passed on.
    assert record.funcName == test_a_record_names_the_session_and_has_its_fields.__name__


def test_connections_come_and_go_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            transport = client._session.dispatcher.transport
            assert transport is not None
            transport.abort()
            await client.get("/")
            said = [
                (one.getMessage().partition(": ")[2], vars(one).get("server"))
                for one in caplog.records
                if one.name.startswith("paddock.client")
            ]
            assert said == [
                (f"connected to {server.hosts}", server.hosts),
                (f"connection to {server.hosts} lost: it was closed", server.hosts),
                (f"connected to {server.hosts}", server.hosts),
            ]
            ids = {vars(one)["session"] for one in caplog.records if hasattr(one, "connections")}
            assert ids == {client.session_id}

    with caplog.at_level(logging.INFO):
        run_virtually(scenario())
