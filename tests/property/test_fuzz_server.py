"""A live server that is sent anything over real sockets goes on serving, without a complaint."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.server.config.config import ServerConfig
from tests.fault.stage.embedded import EmbeddedServer
from tests.property.bounds import examples
from tests.property.test_fuzz_connection import any_streams, cut_places
from tests.support import requests as rq
from tests.support import wire
from tests.support.sasl import JAAS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    jaas = tmp_path_factory.mktemp("sasl") / "jaas.conf"
    jaas.write_text(JAAS)
    jaas.chmod(0o600)
    config = ServerConfig(
        port=0, max_connections_per_address=0, handshake_timeout_ms=1000, jaas_file=jaas
    )
    # At its end it insists that nothing was reported to the event loop.
    with EmbeddedServer(config) as server:
        yield server


def test_any_streams_leave_a_server_that_serves_and_has_not_complained(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    @examples(40)
    @given(st.lists(st.tuples(any_streams, cut_places), min_size=1, max_size=4))
    def check(streams: list[tuple[bytes, list[int]]]) -> None:
        with contextlib.ExitStack() as stack:
            for stream, cuts in streams:
                one = stack.enter_context(socket.create_connection(server.address))
                edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
                with contextlib.suppress(ConnectionError):
                    for start, end in pairwise(edges):
                        one.sendall(stream[start:end])
            with wire.connect(server.address) as client:
                assert wire.errors(client.calls(rq.exists("/"), rq.sync("/"))) == [0, 0]
                client.close()
        assert server.problems == []
        assert [record.getMessage() for record in caplog.records] == []

    check()
