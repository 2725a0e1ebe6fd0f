"""The servers with many nodes: their memory, and their restart."""

from bench import zkload
from bench.results import Figure
from bench.servers import running
from bench.stage import Stage


def measure(stage: Stage) -> None:
    """Fill both servers, and start them again."""
    count = stage.chosen.nodes
    both = stage.new_servers("size")
    full_mib: dict[str, list[float]] = {}
    for name, server in both.items():
        with running(server):
            zkload.create_nodes(server, count)
            full_mib[name] = [server.rss_mib]
    stage.note(Figure.MEMORY, f"memory with {count:,} nodes of 100 bytes, MiB", full_mib)
    again_s: dict[str, list[float]] = {name: [] for name in both}
    for number in range(stage.chosen.rounds):
        for name, server in stage.alternating(both, number):
            with running(server) as [seconds]:
                again_s[name].append(seconds)
    stage.note(Figure.RESTART, f"restart with {count:,} nodes, s", again_s)
