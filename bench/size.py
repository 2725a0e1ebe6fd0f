"""The servers with many nodes: their memory, and their restart."""

import re
from typing import Final

from bench import zkload
from bench.results import Figure
from bench.servers import BenchError, Server, running
from bench.stage import Stage

# What Paddock logs when it has loaded its state.
_LOADED: Final = re.compile(r"loaded \d+ nodes and .* in ([\d.]+) s: the snapshot at")


def measure(stage: Stage) -> None:
    """Fill both servers, and start them again."""
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
