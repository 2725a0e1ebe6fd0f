"""What was accepted can always be replayed, however large it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault.stage.process import FaultServer, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Code, Mode
from tests.support.server import Options

LONG = "n" * 500
FRAME_BYTES_MAX = 0xFFFFF


def test_the_end_of_a_session_with_more_ephemerals_than_a_frame_holds_is_replayed(
    tmp_path: Path,
) -> None:
    server = FaultServer(tmp_path)
    server.start()
    try:
        with wire.connect(server.address) as owner:
            creates = [
                rq.create(f"/{LONG}-{number}", flags=Mode.EPHEMERAL) for number in range(3000)
            ]
            assert sum(len(one.body) for one in creates) > FRAME_BYTES_MAX
            assert {reply.err for reply in owner.calls(*creates)} == {Code.OK}
            owner.close()
        server.kill()
        server.start()
        with wire.connect(server.address) as client:
            assert read_tree(client) == {}
    finally:
        server.stop()


@pytest.mark.parametrize("limit", [None, 5_000_000])
def test_the_largest_request_is_replayed(tmp_path: Path, limit: int | None) -> None:
    extra = () if limit is None else (("jute.maxbuffer", str(limit)),)
    server = FaultServer(tmp_path, Options(extra=extra))
    server.start()
    try:
        room = (FRAME_BYTES_MAX if limit is None else limit) - 8
        empty = rq.create("/n", b"")
        data = bytes(room - len(empty.body))
        with wire.connect(server.address) as client:
            # A client with many identities, so that the entry is larger than the request.
            for number in range(30):
                assert client.call(rq.auth("digest", b"user%d:x" % number)).err == Code.OK
            assert client.call(rq.create("/n", data)).err == Code.OK
        server.kill()
        server.start()
        with wire.connect(server.address) as client:
            assert client.call(rq.get_data("/n")).data == data
    finally:
        server.stop()
