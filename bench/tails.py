"""Tails: how long a bystander waits while the servers have something else to do.

The bystander has one request in flight, a get and a set in turn, one a millisecond. What goes on
meanwhile is what happens to every server now and then: a snapshot, a purge, sessions that expire,
and many watchers of one node. The longest wait of all rounds counts: a pause must not happen to any
client.

Paddock purges after a snapshot. Apache ZooKeeper purges only when it starts, and then every so many
hours; so its own program for that (`PurgeTxnLog`) runs beside it, with the lowest priority.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bench import matrix, servers, zkload
from bench.results import PROBED_OPS, Meanwhile, Tail
from bench.servers import BenchError, Server, running
from bench.stage import Stage
from bench.zkload import Cell, Probe

# Writes all over the tree, so that a snapshot has to keep old images.
LOAD: Final = Cell("set", 10, 10, 100_000)
WARMUP_S: Final = 3.0
WARMUP_S_QUICK: Final = 1.0
# Entries between two snapshots.
EVERY: Final = 100_000
NEVER: Final = 1_000_000_000
# The time of one probe; a snapshot is in progress nearly all the time.
PROBE_S: Final = 5.0
PROBE_S_QUICK: Final = 2.0
DEADLINE_S: Final = 300.0
# Snapshots that a purge keeps, and how many old ones there are for it.
RETAINED: Final = 3
OLD: Final = 5
# Of two sessions: one may have 50,000.
EPHEMERALS: Final = 100_000
EPHEMERALS_QUICK: Final = 10_000
AFTER_EXPIRY_S: Final = 1.0

Probes = dict[str, list[Probe]]


def measure(stage: Stage) -> None:
    """Measure both servers, first small ones, then large ones under load."""
    _small(stage)
    _large(stage)


def _large(stage: Stage) -> None:
    """Fill both, and write to them: without snapshots, with snapshots, and with a purge as well."""
    nodes = stage.chosen.nodes
    both = stage.new_servers("tails")
    writes, snapshots, purge = (dict[str, list[Probe]]() for _ in range(3))
    for name, server in both.items():
        with running(server):
            zkload.create_nodes(server, nodes)
        with _written_to(stage, server, snapCount=NEVER):
            writes[name] = _probes(stage, server, lambda: True)
        with _written_to(stage, server, snapCount=EVERY):
            snapshots[name] = _probes(stage, server, _another_snapshot(server))
        old = _make_old_snapshots(server)
        settings: dict[str, int | str] = {"snapCount": EVERY, "paddock.history": "off"}
        with _written_to(stage, server, **settings):
            # Not before: the next purge may come while the server is warmed.
            is_over = _all_gone(_add(old))
            with _purging(name, server):
                purge[name] = _probes(stage, server, is_over)
    _note(stage, Meanwhile.WRITES, f"{nodes:,} nodes, {LOAD.connections} connections write", writes)
    _note(stage, Meanwhile.SNAPSHOTS, "the same, and snapshots are written", snapshots)
    _note(stage, Meanwhile.PURGE, "the same, and old ones are purged", purge)


def _small(stage: Stage) -> None:
    """Have sessions expire, and watchers told."""
    quick = stage.chosen.quick
    seconds = PROBE_S_QUICK if quick else PROBE_S
    ephemerals = EPHEMERALS_QUICK if quick else EPHEMERALS
    parts: dict[Meanwhile, tuple[str, Callable[[Server], Probe]]] = {
        Meanwhile.NOTHING: ("nothing", lambda server: zkload.probe(server, seconds)),
        Meanwhile.WATCHERS: (
            f"{matrix.WATCHERS:,} watchers of a node are told again and again",
            lambda server: zkload.probe_watched(server, matrix.WATCHERS, seconds),
        ),
        Meanwhile.EXPIRY: (
            f"sessions with {ephemerals:,} ephemerals expire",
            lambda server: zkload.probe_expiry(server, ephemerals, AFTER_EXPIRY_S),
        ),
    }
    both = stage.new_servers("tails-small")
    with running(*both.values()):
        matrix.warm(stage, both)
        for meanwhile, (title, probe) in parts.items():
            found: Probes = {name: [] for name in both}
            for number in range(stage.chosen.rounds):
                for name, server in stage.alternating(both, number):
                    try:
                        found[name].append(probe(server))
                    except BenchError as error:
                        stage.failed(server, error)
            _note(stage, meanwhile, title, found)


@contextlib.contextmanager
def _written_to(stage: Stage, server: Server, **settings: int | str) -> Iterator[None]:
    """Run a server with some settings under load, warmed."""
    # Data that the last run has left to be written must not delay this one.
    os.sync()
    servers.configure(server.folder, server.port, **settings)
    with running(server):
        zkload.load(server, LOAD, WARMUP_S_QUICK if stage.chosen.quick else WARMUP_S, 0)
        with zkload.loading(server, LOAD):
            yield


def _probes(stage: Stage, server: Server, is_over: Callable[[], bool]) -> list[Probe]:
    """Probe in as many rounds as were asked for, and until it is over."""
    seconds = PROBE_S_QUICK if stage.chosen.quick else PROBE_S
    deadline = time.monotonic() + DEADLINE_S
    found: list[Probe] = []
    while len(found) < stage.chosen.rounds or not is_over():
        if time.monotonic() > deadline:
            raise BenchError(f"{server.name} takes or removes no snapshot")
        found.append(zkload.probe(server, seconds))
    return found


def _another_snapshot(server: Server) -> Callable[[], bool]:
    """Return a question: whether there is a snapshot that was begun and completed since now."""
    before = server.snapshots
    return lambda: bool(server.snapshots - before)


def _make_old_snapshots(server: Server) -> dict[Path, Path]:
    """Copy a snapshot aside; return the copies, and where older ones would be."""
    # The newest one of Apache ZooKeeper may be half written: it is stopped at any moment.
    whole = max(server.snapshots, key=lambda path: path.stat().st_size)
    aside = server.folder / "old"
    aside.mkdir()
    name = "{:020d}.snapshot" if whole.suffix == ".snapshot" else "snapshot.{:x}"
    return {
        Path(shutil.copy(whole, aside / str(number))): whole.with_name(name.format(number))
        for number in range(1, OLD + 1)
    }


def _add(old: dict[Path, Path]) -> list[Path]:
    """Put old snapshots into their place; return those that the next purge has to remove."""
    for copy, path in old.items():
        copy.rename(path)
    # It may keep the others, if only that which they are copies of is newer.
    return list(old.values())[: OLD + 1 - RETAINED]


def _all_gone(paths: list[Path]) -> Callable[[], bool]:
    # Paddock removes a large file in steps, under another name.
    names = [*paths, *(path.with_suffix(".tmp") for path in paths)]
    return lambda: not any(path.exists() for path in names)


@contextlib.contextmanager
def _purging(name: str, server: Server) -> Iterator[None]:
    """Have old files purged in this scope, after the next snapshot."""
    if name != "apache":
        yield
        return
    is_due = _another_snapshot(server)
    deadline = time.monotonic() + DEADLINE_S
    while not is_due():
        if time.monotonic() > deadline:
            raise BenchError(f"{server.name} takes no snapshot")
        time.sleep(0.1)
    data = str(server.folder / "data")
    command = ["nice", "-n", "19", "java", "-cp", f"{server.folder}:{servers.ZOOKEEPER_JAR}"]
    command += ["org.apache.zookeeper.server.PurgeTxnLog", data, data, "-n", str(RETAINED)]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield
        _, said = process.communicate(timeout=DEADLINE_S)
        if process.returncode:
            raise BenchError(f"PurgeTxnLog failed: {said.decode().strip()}")
    finally:
        process.terminate()
        process.communicate()


def _note(stage: Stage, meanwhile: Meanwhile, title: str, found: Probes) -> None:
    tail = Tail(title, found)
    stage.results.tails[meanwhile] = tail
    for op in PROBED_OPS:
        pair = tail.longest_ms(op)
        shown = ", ".join(
            f"{name} {value:.1f}"
            for name, value in (("Paddock", pair.paddock), ("Apache", pair.apache))
            if value is not None
        )
        print(f"longest wait of a {op} in ms, while {title}: {shown}", flush=True)
