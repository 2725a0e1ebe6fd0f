"""A few large writes: what the next start has to read must not grow without a bound."""

from __future__ import annotations

from pathlib import Path

from tests.fault.stage.process import eventually
from tests.fault.stage.siege import SCALE, SLACK_MB, besieged_server, siege
from tests.support import requests as rq
from tests.support import wire

MEGABYTE = bytes(1_000_000)
#: Far fewer entries than between two snapshots by default, and more bytes than a start should read.
WRITES = 200 * SCALE


def test_a_log_of_few_large_entries_gets_a_snapshot(tmp_path: Path) -> None:
    with besieged_server(tmp_path) as server:
        # What is kept is one node; a write is in memory a few times while it is under way.
        with siege(server, growth_mb_max=SLACK_MB + 60), wire.connect(server.address) as client:
            assert client.call(rq.create("/large")).err == 0
            for _ in range(WRITES):
                assert client.call(rq.set_data("/large", MEGABYTE)).err == 0
            eventually(lambda: len(server.snapshots) > 0, "a snapshot")
            client.close()
