"""The servers with many nodes: their memory, their restart, and the pauses of a snapshot."""

import os
import re
import time
from typing import Final

from bench import servers, zkload
from bench.results import Figure
from bench.servers import BenchError, Server, running
from bench.stage import Stage
from bench.zkload import Cell

# Writes all over the tree, so that a snapshot has to keep old images.
LOAD: Final = Cell("set", 10, 10, 100_000)
EVERY: Final = 100_000
NEVER: Final = 1_000_000_000
# The time of one probe; a snapshot is in progress nearly all the time.
PROBE_S: Final = 5.0
PROBE_S_QUICK: Final = 2.0
SNAPSHOT_DEADLINE_S: Final = 120.0
# What Paddock logs when it has loaded its state.
_LOADED: Final = re.compile(r"loaded \d+ nodes and .* in ([\d.]+) s: the snapshot at")


def measure(stage: Stage) -> None:
    """Fill both servers, start them again, and take snapshots of them under load."""
    count = stage.chosen.nodes
    both = stage.new_servers("size")
    full_mib: dict[str, list[float]] = {}
    for name, server in both.items():
        with running(server):
            zkload.create_nodes(server, count)
            full_mib[name] = [server.rss_mib]
            server.kill()
    stage.note(Figure.MEMORY, f"memory with {count:,} nodes of 100 bytes, MiB", full_mib)
    _restart(stage, both)
    _snapshots(stage, both)


def _restart(stage: Stage, both: dict[str, Server]) -> None:
    """Start both again, after `kill -9` and after a stop, which leaves a snapshot of Paddock."""
    nodes = f"{stage.chosen.nodes:,} nodes"
    killed_s: dict[str, list[float]] = {name: [] for name in both}
    stopped_s: dict[str, list[float]] = {name: [] for name in both}
    loaded_s: list[float] = []
    # It logs how long it took to load.
    both["paddock"].command += ["--log-level", "info"]
    for number in range(stage.chosen.rounds):
        for name, server in stage.alternating(both, number):
            with running(server) as [seconds]:
                killed_s[name].append(seconds)
                # At once: the next round is to find what this one found, no newer snapshot.
                server.kill()
    for server in both.values():
        with running(server):
            pass
    for number in range(stage.chosen.rounds):
        for name, server in stage.alternating(both, number):
            with running(server) as [seconds]:
                stopped_s[name].append(seconds)
                if name == "paddock":
                    loaded_s.append(_loaded_s(server))
    stage.note(Figure.KILLED_RESTART, f"restart after kill -9 with {nodes}, s", killed_s)
    stage.note(Figure.RESTART, f"restart with {nodes}, s", stopped_s)
    stage.note(Figure.LOAD, f"load of {nodes} from a snapshot, s", {"paddock": loaded_s})


def _loaded_s(server: Server) -> float:
    """Return the seconds that Paddock says its last start took to load its state."""
    found = _LOADED.findall(server.log.read_text(errors="replace"))
    if not found:
        raise BenchError(f"{server.name} does not say what it has loaded")
    return float(found[-1])


def _snapshots(stage: Stage, both: dict[str, Server]) -> None:
    """Compare the longest waits under the same load, without snapshots and with them."""
    without: dict[str, list[float]] = {}
    during: dict[str, list[float]] = {}
    for name, server in both.items():
        # Data that the last run has left to be written must not delay this one.
        os.sync()
        servers.configure(server.folder, server.port, snapCount=NEVER)
        with running(server):
            # Create its nodes before the probe starts: that is another load.
            zkload.load(server, LOAD, 0.1, 0)
            with zkload.loading(server, LOAD):
                without[name] = [_longest_wait(stage, server)]
        servers.configure(server.folder, server.port, snapCount=EVERY)
        with running(server), zkload.loading(server, LOAD):
            before = server.snapshots
            during[name] = [_longest_wait(stage, server)]
            # Make sure that a snapshot was begun and completed.
            deadline = time.monotonic() + SNAPSHOT_DEADLINE_S
            while not server.snapshots - before:
                if time.monotonic() > deadline:
                    raise BenchError(f"{server.name} takes no snapshot")
                during[name] = [max(*during[name], _longest_wait(stage, server))]
    what = "longest wait of a request under load"
    snapshots = f"snapshots of {stage.chosen.nodes:,} nodes"
    stage.note(Figure.WAIT, f"{what}, ms", without)
    stage.note(Figure.SNAPSHOT_WAIT, f"{what} and {snapshots}, ms", during)
    added = {name: [max(0.0, during[name][0] - without[name][0])] for name in both}
    stage.note(Figure.SNAPSHOT_ADDS, f"what {snapshots} add to it, ms", added)


def _longest_wait(stage: Stage, server: Server) -> float:
    # The worst of all rounds: a pause must not happen to any client.
    seconds = PROBE_S_QUICK if stage.chosen.quick else PROBE_S
    return max(zkload.probe(server, seconds) for _ in range(stage.chosen.rounds))
