"""`python -m tests.differ --operations 100000 --seed 1`: the differential run.

Starts both servers, plays segments of random operations on them and stops at a difference with
everything needed to see it again. The judge is Debian's Apache ZooKeeper; `--left apache-3.9` is
that of `tools/judges.sh zookeeper-3.9`. `--left apache --right apache` tries the judge against
itself. With `--right cluster` the judged side is three servers, and each session is on another one.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

from tests.differ.generate import SEGMENT_OPERATIONS, generate
from tests.differ.run import Difference, Pair
from tests.differ.shrink import shortest_tail, shrink
from tests.support.apache import ApacheServer
from tests.support.apache39 import ApacheServer39
from tests.support.paddock_cluster import PaddockCluster
from tests.support.paddock_server import PaddockServer
from tests.support.server import Options, Server, ServerMissingError

SERVERS: dict[str, type[Server]] = {
    server.name: server for server in (ApacheServer, ApacheServer39, PaddockServer)
}
JUDGED: dict[str, type[Server | PaddockCluster]] = {**SERVERS, PaddockCluster.name: PaddockCluster}

#: Nothing may be reaped while the servers are compared: when it happens is not specified.
OPTIONS = Options(
    tick_ms=2000,
    reap_interval_ms=86_400_000,
    durable=False,
    extra=(("enforceQuota", "true"),),
)


def explain(pair: Pair, seed: int, segment: int, difference: Difference, few: bool) -> str:
    """Say what differed and which steps are needed to see it."""
    name = f"{seed}:{segment}"

    def fails(steps: Sequence[int]) -> bool:
        return pair.play_segment(name, SEGMENT_OPERATIONS, steps) is not None

    steps = shortest_tail(difference.index, fails)
    if few:
        steps = shrink(steps, fails)
    again = pair.play_segment(name, SEGMENT_OPERATIONS, steps)
    every = generate(name, "/base", SEGMENT_OPERATIONS, pair.rules)
    lines = [f"seed {seed}, segment {segment}, {difference}", ""]
    lines.append(f"shortest way to it, {len(steps)} steps (left {pair.left.server.name}):")
    lines += [f"  {index}: {every[index]}" for index in steps[-60:]]
    lines.append(f"which gives {again}" if again else "which did not differ again")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differ", description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--segment", type=int, default=None, help="play only this segment")
    parser.add_argument("--differences", type=int, default=1, help="stop after so many")
    parser.add_argument("--shrink", action="store_true", help="leave out steps not needed")
    parser.add_argument("--left", choices=SERVERS, default="apache")
    parser.add_argument("--right", choices=JUDGED, default="paddock")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}, {options.left} and {options.right}", flush=True)
    try:
        with SERVERS[options.left](OPTIONS) as left, JUDGED[options.right](OPTIONS) as right:
            return _run(Pair(left, right), seed, options)
    except ServerMissingError as missing:
        print(missing, file=sys.stderr)
        return 2


def _run(pair: Pair, seed: int, options: argparse.Namespace) -> int:
    started = time.monotonic()
    found = 0
    segment = options.segment or 0
    while True:
        difference = pair.play_segment(f"{seed}:{segment}", SEGMENT_OPERATIONS)
        if difference is not None:
            found += 1
            print(explain(pair, seed, segment, difference, options.shrink), flush=True)
        if found >= options.differences or options.segment is not None:
            break
        if pair.operations >= options.operations:
            break
        segment += 1
        if segment % 10 == 0:
            print(f"{pair.operations} operations", flush=True)
    pair.close()
    seconds = time.monotonic() - started
    print(f"{pair.operations} operations, {found} differences, {seconds:.0f} s, seed {seed}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
