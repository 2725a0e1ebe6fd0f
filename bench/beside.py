"""The part of the benchmark that is only for information: etcd, on the same machine and disk."""

import sys

from bench import etcd
from bench.stage import Stage


def measure(stage: Stage) -> None:
    """Measure reads and writes of etcd, if it is installed."""
    path = etcd.program()
    if path is None:
        print("bench: etcd is not there (tools/etcd.sh fetches it)", file=sys.stderr)
        return
    chosen = stage.chosen
    with etcd.running(path, stage.folder / "etcd") as port:
        for op in etcd.OPS:
            for connections in etcd.CONNECTIONS:
                rounds = [
                    etcd.load(port, op, connections, chosen.seconds, chosen.warmup_s)
                    for _ in range(chosen.rounds)
                ]
                run = etcd.median(rounds)
                stage.results.etcd.append(run)
                print(f"etcd: {op:6} c{connections:<3} {run.ops_per_s:>9,.0f} ops/s", flush=True)
