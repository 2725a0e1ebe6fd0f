"""The cost of an operation by the number of nodes and of connections."""

from typing import Final

from bench import servers, zkload
from bench.matrix import warm
from bench.servers import running
from bench.stage import Stage
from bench.zkload import Cell

NODES: Final = (1_000, 10_000, 100_000, 1_000_000)
NODES_OPS: Final = ("get", "set", "create")
TOUCHED_PER_S: Final = 200_000
CONNECTIONS: Final = (10, 100, 1_000, 10_000)
CONNECTIONS_OPS: Final = ("get", "set")


def by_nodes(most: int) -> list[Cell]:
    """Return the cells in the order in which the tree grows; each uses all of its nodes."""
    return [Cell(op, 10, 100, nodes) for nodes in NODES if nodes <= most for op in NODES_OPS]


def by_connections(most: int) -> list[Cell]:
    """Return the cells with one request in flight on each connection."""
    return [Cell(op, count, 1) for count in CONNECTIONS if count <= most for op in CONNECTIONS_OPS]


def measure(stage: Stage) -> None:
    """Measure both servers side by side while they grow."""
    allowed = servers.connections_allowed()
    if allowed < max(CONNECTIONS):
        reason = f"growth: only {allowed:,} connections may be open (ulimit -n)"
        stage.results.failures.append(reason)
    both = stage.new_servers("growth")
    with running(*both.values()):
        warm(stage, both)
        for cell in by_connections(allowed):
            stage.measure(cell, both, stage.results.by_connections)
        for cell in by_nodes(stage.chosen.nodes):
            for server in both.values():
                # After this, most nodes have their cached answer.
                zkload.load(server, cell, 0.1 + cell.keys / TOUCHED_PER_S, 0)
            stage.measure(cell, both, stage.results.by_nodes)
