"""kill -9 under the load of sixteen writers, again and again on the same data.

CRASH_ROUNDS says how often, CRASH_SEED with which choices. What the writers do and when the server
is killed follows from the seed; how the two meet does not, so a failure may need some rounds more.
"""

from __future__ import annotations

import os
import random
import secrets
from pathlib import Path

from tests.fault.stage.load import Load
from tests.fault.stage.process import FaultServer, eventually
from tests.support import requests as rq
from tests.support import wire
from tests.support.server import Options

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "10"))
SEED = int(os.environ.get("CRASH_SEED", secrets.randbits(32)))

#: How often the server is also killed while it starts.
EARLY_KILLS = 0.25


def crash(server: FaultServer, rounds: int, until_max: int, data_bytes_max: int) -> None:
    """Kill and start the server so often, with all checks in between."""
    print(f"\nCRASH_SEED={SEED}")
    choices = random.Random(SEED)
    with Load(server.address, choices.getrandbits(64), data_bytes_max) as load:
        for number in range(1, rounds + 1):
            until = choices.randint(1, until_max)
            load.run(until, then=server.kill)
            if choices.random() < EARLY_KILLS:
                server.start_and_kill(choices.uniform(0.1, 0.8))
            half_written = list(server.data.glob("*/*.tmp"))
            server.start()
            assert not any(path.exists() for path in half_written)
            found = load.check(server.address)
            print(
                f"round {number}: killed after {until} answers; {found.nodes} nodes,"
                f" {found.survived} of {found.unanswered} unanswered writes survived,"
                f" {len(half_written)} files were half-written"
            )
        print(f"{load.acknowledged} writes acknowledged, {load.refused} refused")
        assert load.acknowledged > 0
        assert load.refused > 0


def test_kill_loses_no_acknowledged_write_and_brings_back_no_refused_one(tmp_path: Path) -> None:
    with FaultServer(tmp_path) as server:
        crash(server, ROUNDS, until_max=2_000, data_bytes_max=2_000)


def test_kill_while_snapshots_are_taken_and_old_ones_purged_loses_nothing(tmp_path: Path) -> None:
    # Large values, so that segments are filled, left behind and purged as well.
    options = Options(extra=(("snapCount", "40"), ("paddock.history", "off")))
    with FaultServer(tmp_path, options) as server:
        crash(server, max(1, ROUNDS // 3), until_max=3_000, data_bytes_max=30_000)
        assert server.snapshots


def test_few_large_writes_get_a_snapshot_too_also_if_no_run_has_enough_of_them(
    tmp_path: Path,
) -> None:
    # 400 KiB are due, and each run writes 150.
    options = Options(extra=(("snapSizeLimitInKb", "400"),))
    with FaultServer(tmp_path, options) as server:
        for runs in range(1, 4):
            with wire.connect(server.address) as client:
                client.call(rq.create("/a"))
                client.calls(*(rq.set_data("/a", bytes(50_000)) for _ in range(3)))
                if runs == 3:
                    eventually(lambda: bool(server.snapshots), "a snapshot")
            assert bool(server.snapshots) is (runs == 3)
            server.kill()
            server.start()
