"""The metrics of a server, as names and values, for the four-letter words and the admin commands.

Names and their order are upstream's, because tools look for them. A metric of upstream's that has
no meaning here, or is not counted, is left out. Those of change feeds, which upstream does not
have, begin with `change_feed`.
"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from paddock import __version__
from paddock.protocol import events, jute, operations
from paddock.server.admin.cluster_metrics import FOLLOWER, LEADER, monitor_rows, role
from paddock.server.admin.quantiles import Window, quantile_of
from paddock.server.connections.core import Core
from paddock.server.connections.send_buffer import ConnectionWatcher
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.statistics import Histogram, Summary
from paddock.state.tree import CONFIG
from paddock.state.watcher import Watcher
from paddock.state.watches import FanOut
from paddock.storage.data_directory import DataDirectory
from paddock.storage.snapshots import snapshot_name

# Clients and tools ask for ZooKeeper's version: the one whose wire protocol we speak.
VERSION: Final = f"3.8.0-paddock-{__version__}"

# The answer while sessions are not served.
NOT_SERVING: Final = "This ZooKeeper instance is not currently serving requests"

# What a server can be called.
STANDALONE: Final = "standalone"
READ_ONLY: Final = "read-only"
STATES: Final = (STANDALONE, LEADER, FOLLOWER, READ_ONLY)

# Upstream's names of the percentiles in `mntr`, which are of the latencies alone.
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}

# Upstream's names of how many watchers the events of a kind had.
_FAN_OUTS: Final = {
    "node_created_watch_count": events.NODE_CREATED,
    "node_deleted_watch_count": events.NODE_DELETED,
    "node_changed_watch_count": events.NODE_DATA_CHANGED,
    "node_children_watch_count": events.NODE_CHILDREN_CHANGED,
}

# Upstream's trace mask at its start.
_TRACE_MASK: Final = 306

# Characters that would break a line, or a terminal.
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}


def path_text(path: bytes) -> str:
    """Return a path as text; a watch may be on a path that no node can have."""
    text = path.decode(errors="replace")
    return text if text.isprintable() else text.translate(_CONTROL)


def session_of(watcher: Watcher) -> int:
    """Return the session of a watcher, which on a server is a connection's."""
    assert isinstance(watcher, ConnectionWatcher)
    return watcher.session


def operation_name(operation: int) -> str:
    """Return upstream's abbreviation of an operation."""
    row = operations.BY_NUMBER.get(operation)
    return "NA" if row is None else row.abbreviation


class Metrics:
    """The metrics of one server."""

    def __init__(
        self,
        service: Core,
        directory: DataDirectory | None,
        port: int,
        now: Callable[[], float],
        *,
        snapshotter: Snapshotter | None = None,
        secure_port: int = -1,
        load_seconds: float = 0.0,
        replayed_entries: int = 0,
    ) -> None:
        self.service = service
        self.now = now
        # Selects what upstream traces. Nothing is traced here: it is only stored.
        self.trace_mask = _TRACE_MASK
        self._directory = directory
        self._port = port
        self._secure_port = secure_port
        self._snapshotter = snapshotter
        self._started = now()
        # Of each histogram that is asked for, by its name.
        self._windows: dict[str, Window] = {}
        self._load_ms, self._replayed = Summary(), Summary()
        self._load_ms.add(load_seconds * 1000)
        self._replayed.add(float(replayed_entries))

    def uptime_ms(self) -> int:
        return int((self.now() - self._started) * 1000)

    def date_ms(self, at: float) -> int:
        """Return the wall clock time of a moment in the event loop's time."""
        return self.service.wall_clock_ms() + round((at - self.now()) * 1000)

    def summary(self) -> dict[str, str | int]:
        """Return the answer to `srvr`."""
        service, counted = self.service, self.service.statistics
        latency = counted.latency_ms
        return {
            "Latency min/avg/max": f"{int(latency.min)}/{_average(latency)}/{int(latency.max)}",
            "Received": counted.packets_received,
            "Sent": counted.packets_sent,
            "Connections": len(service.connections),
            "Outstanding": service.proposer.outstanding(),
            "Zxid": f"0x{service.machine.zxid:x}",
            "Mode": self.mode(),
            "Node count": len(service.machine.tree.nodes),
        }

    def mode(self) -> str:
        """Return what this server is called: as one of several, by whether it is on duty."""
        if not self.service.is_open:
            return READ_ONLY
        cluster = self.service.cluster
        return STANDALONE if cluster is None else role(cluster)

    def monitor(self) -> dict[str, str | int | float]:
        """Return the answer to `mntr`, without the prefix `zk_` of each name."""
        service, counted = self.service, self.service.statistics
        tree = service.machine.tree
        latency = counted.latency_ms
        cluster = service.cluster
        # Upstream's peers say what they do right behind what they are.
        doing = {
            LEADER: "leading - broadcast",
            FOLLOWER: "following - broadcast",
        }.get(self.mode())
        return {
            "version": VERSION,
            "server_state": self.mode(),
            **({} if doing is None else {"peer_state": doing}),
            "ephemerals_count": sum(len(paths) for paths in tree.ephemerals.values()),
            "num_alive_connections": len(service.connections),
            "avg_latency": _average(latency),
            "outstanding_requests": service.proposer.outstanding(),
            "znode_count": len(tree.nodes),
            "global_sessions": len(service.machine.sessions.by_id),
            "packets_sent": counted.packets_sent,
            "packets_received": counted.packets_received,
            "watch_count": service.watches.data.size + service.watches.child.size,
            "min_latency": int(latency.min),
            "max_file_descriptor_count": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "approximate_data_size": tree.data_bytes,
            "open_file_descriptor_count": _open_files(),
            "local_sessions": 0,
            "uptime": self.uptime_ms(),
            "max_latency": int(latency.max),
            "connection_rejected": counted.connections_rejected,
            "sessionless_connections_expired": counted.connections_timed_out,
            "bytes_received_count": counted.bytes_received,
            "connection_request_count": counted.handshakes,
            "response_bytes": counted.bytes_sent,
            "connection_revalidate_count": counted.handshakes_again,
            "stale_sessions_expired": counted.sessions_expired,
            **_rows("fsynctime", counted.sync_ms),
            **_rows("snapshottime", counted.snapshot_ms),
            **_rows("startup_txns_loaded", self._replayed),
            **_rows("dbinittime", self._load_ms),
            **_rows("sync_processor_batch_size", counted.batch_sizes),
            **_rows("updatelatency", latency),
            **self._percentiles("updatelatency", latency),
            **_rows("readlatency", counted.read_ms),
            **self._percentiles("readlatency", counted.read_ms),
            **self._fan_outs(),
            "change_feeds": len(service.feeds),
            "change_feeds_waiting": service.feeds.waiting_count(),
            "change_feed_pulls": counted.feed_pulls,
            "change_feed_changes": counted.feed_changes,
            "change_feeds_gone": counted.feeds_gone,
            **({} if cluster is None else monitor_rows(cluster)),
        }

    def histograms(self) -> dict[str, Histogram]:
        """Return those of the summaries in `monitor` that have buckets, by name."""
        counted = self.service.statistics
        fan_outs = self.service.watches.fan_outs
        return {
            "readlatency": counted.read_ms,
            "updatelatency": counted.latency_ms,
            "fsynctime": counted.sync_ms,
            "sync_processor_batch_size": counted.batch_sizes,
            **{name: _histogram(fan_outs[kind]) for name, kind in _FAN_OUTS.items()},
        }

    def recent(self, name: str, histogram: Histogram) -> list[int]:
        """Return what was added to the buckets of a histogram in the last ten minutes."""
        return self._windows.setdefault(name, Window()).move(histogram.buckets(), self.now())

    def configuration(self) -> dict[str, str | int]:
        """Return the answer to `conf`."""
        config, cluster = self.service.config, self.service.cluster
        snapshots, log = self._folders()
        data_bytes, log_bytes = self.sizes()
        return {
            "clientPort": self._port,
            "secureClientPort": self._secure_port,
            "dataDir": "" if snapshots is None else str(snapshots.absolute()),
            "dataDirSize": data_bytes,
            "dataLogDir": "" if log is None else str(log.absolute()),
            "dataLogSize": log_bytes,
            "tickTime": config.tick_time_ms,
            "maxClientCnxns": config.max_connections_per_address,
            "minSessionTimeout": config.min_session_timeout_ms,
            "maxSessionTimeout": config.max_session_timeout_ms,
            "clientPortListenBacklog": config.listen_backlog,
            "serverId": 0 if cluster is None else cluster.number(),
            **({} if cluster is None else {"syncLimit": config.sync_limit, "peerType": 0}),
        }

    def membership(self) -> str:
        """Return what `conf` says of the servers of an ensemble; nothing on a single one."""
        if self.service.cluster is None:
            return ""
        listed = self.service.machine.tree.nodes[CONFIG].data or b""
        return f"membership: \n{listed.decode(errors='replace')}"

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of the snapshots and of the log."""
        snapshots, log = self._folders()
        return _size(snapshots), _size(log)

    def last_snapshot(self) -> tuple[int, int]:
        """Return the zxid of the newest snapshot and its time in ms; -1 and -1 if there is none."""
        folder, _ = self._folders()
        snapshotter = self._snapshotter
        if folder is None or snapshotter is None or snapshotter.newest_zxid < 0:
            return -1, -1
        newest = folder / snapshot_name(snapshotter.newest_index)
        return snapshotter.newest_zxid, int(newest.stat().st_mtime * 1000)

    def environment(self) -> dict[str, str]:
        """Return the answer to `envi`, without users or folders of the machine."""
        # kazoo reads the server's version from here.
        return {
            "zookeeper.version": VERSION,
            "host.name": socket.gethostname(),
            "os.name": platform.system(),
            "os.arch": platform.machine(),
            "os.version": platform.release(),
            "paddock.build": "pure Python" if jute.__file__.endswith(".py") else "compiled",
        }

    def digest(self) -> tuple[int, int]:
        """Return the last zxid and the digest of the state after it."""
        machine = self.service.machine
        return machine.zxid, machine.digest()

    def reset(self) -> None:
        """Reset the counters of the server."""
        self.service.statistics.reset()
        self.service.watches.reset()

    def reset_connections(self) -> None:
        """Reset the counters of the connections."""
        for connection in self.service.connections:
            connection.reset_statistics()

    def _percentiles(self, name: str, histogram: Histogram) -> dict[str, str | int | float]:
        """Return the rows of the percentiles; 0 without any, as upstream."""
        recent = self.recent(name, histogram)
        has_any = any(recent)
        return {
            f"{part}_{name}": (
                round(quantile_of(share, histogram.bounds, recent), 4) if has_any else 0.0
            )
            for part, share in PERCENTILES.items()
        }

    def _fan_outs(self) -> dict[str, str | int | float]:
        rows: dict[str, str | int | float] = {}
        for name, kind in _FAN_OUTS.items():
            rows |= _rows(name, _histogram(self.service.watches.fan_outs[kind]))
        return rows

    def _folders(self) -> tuple[Path | None, Path | None]:
        directory = self._directory
        return (None, None) if directory is None else (directory.snapshots_path, directory.log_path)


def _average(summary: Summary) -> float:
    return round(summary.average(), 4)


def _rows(name: str, summary: Summary) -> dict[str, str | int | float]:
    """Return a summary in upstream's five rows."""
    return {
        f"avg_{name}": _average(summary),
        f"min_{name}": int(summary.min),
        f"max_{name}": int(summary.max),
        f"cnt_{name}": summary.count,
        f"sum_{name}": int(summary.total),
    }


def _histogram(fan_out: FanOut) -> Histogram:
    """Return how many watchers events had as a histogram."""
    buckets = fan_out.buckets()
    made = Histogram([float(1 << power) for power in range(len(buckets) - 1)], buckets)
    made.count, made.total = fan_out.events, float(fan_out.watchers)
    made.min, made.max = float(fan_out.least), float(fan_out.most)
    return made


def _open_files() -> int:
    # Newer kernels return the number as the folder's size; a listing would take long.
    return os.stat("/dev/fd/").st_size or len(os.listdir("/dev/fd"))


def _size(folder: Path | None) -> int:
    """Return the bytes of all files in a folder; one may disappear meanwhile."""
    total = 0
    if folder is not None:
        for file in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += file.stat().st_size
    return total
