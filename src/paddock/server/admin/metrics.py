"""What a server can say of itself, as names and values; `words` and `commands` write it down.

Names and their order are upstream's, because tools look for them. A figure of upstream's that means
nothing here, or that nobody counts, is left out: what is said is true.
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
from paddock.protocol import jute, opcodes
from paddock.server.core import Service
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.statistics import Summary
from paddock.storage.data_directory import DataDirectory
from paddock.storage.snapshots import snapshot_name

# Clients and tools ask for ZooKeeper's version; this is the one whose bytes we speak.
VERSION: Final = f"3.8.0-paddock-{__version__}"

# What is said instead of an answer while there is none.
NOT_SERVING: Final = "This ZooKeeper instance is not currently serving requests"

# Upstream's trace mask at its start.
_TRACE_MASK: Final = 306

# What `cons` calls the last operation.
_OPERATIONS: Final[dict[int, str]] = {
    opcodes.CREATE_SESSION: "SESS",
    opcodes.CLOSE_SESSION: "CLOS",
    opcodes.PING: "PING",
    opcodes.CREATE: "CREA",
    opcodes.CREATE2: "CREA",
    opcodes.CREATE_CONTAINER: "CREA",
    opcodes.CREATE_TTL: "CREA",
    opcodes.DELETE: "DELE",
    opcodes.DELETE_CONTAINER: "DELE",
    opcodes.SET_DATA: "SETD",
    opcodes.SET_ACL: "SETA",
    opcodes.RECONFIG: "RECO",
    opcodes.CHECK: "CHEC",
    opcodes.SYNC: "SYNC",
    opcodes.MULTI: "MULT",
    opcodes.MULTI_READ: "MLTR",
    opcodes.EXISTS: "EXIS",
    opcodes.GET_DATA: "GETD",
    opcodes.GET_ACL: "GETA",
    opcodes.GET_CHILDREN: "GETC",
    opcodes.GET_CHILDREN2: "GETC",
    opcodes.GET_ALL_CHILDREN_NUMBER: "GETACN",
    opcodes.GET_EPHEMERALS: "GETE",
    opcodes.SET_WATCHES: "SETW",
    opcodes.SET_WATCHES2: "STW2",
    opcodes.ADD_WATCH: "ADDW",
    opcodes.CHECK_WATCHES: "CHKW",
    opcodes.REMOVE_WATCHES: "REMW",
    opcodes.WHO_AM_I: "HOMI",
}

# What would break a line, or the terminal of whoever reads it.
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}


def path_text(path: bytes) -> str:
    """Give a path as text; a watch may stand at one that no node could have."""
    text = path.decode(errors="replace")
    return text if text.isprintable() else text.translate(_CONTROL)


def operation_name(operation: int) -> str:
    """Give upstream's short name of an operation."""
    return _OPERATIONS.get(operation, "NA")


class Figures:
    """The figures of one server."""

    def __init__(
        self,
        service: Service,
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
        # Upstream selects with it what is traced. Nothing is traced here: it is only kept.
        self.trace_mask = _TRACE_MASK
        self._directory = directory
        self._port = port
        self._secure_port = secure_port
        self._snapshotter = snapshotter
        self._started = now()
        self._load_ms, self._replayed = Summary(), Summary()
        self._load_ms.add(load_seconds * 1000)
        self._replayed.add(float(replayed_entries))

    def uptime_ms(self) -> int:
        return int((self.now() - self._started) * 1000)

    def date_ms(self, at: float) -> int:
        """Give the time of day of a moment in the event loop's time."""
        return self.service.wall_clock_ms() + round((at - self.now()) * 1000)

    def summary(self) -> dict[str, str | int]:
        """Give what `srvr` says, by the names that it has there."""
        service, counted = self.service, self.service.statistics
        latency = counted.latency_ms
        shown = f"{int(latency.min)}/{_average(latency)}/{int(latency.max)}"
        return {
            "Latency min/avg/max": shown,
            "Received": counted.packets_received,
            "Sent": counted.packets_sent,
            "Connections": len(service.connections),
            "Outstanding": service.pipeline.outstanding(),
            "Zxid": f"0x{service.machine.zxid:x}",
            "Mode": self._mode(),
            "Node count": len(service.machine.tree.nodes),
        }

    def _mode(self) -> str:
        return "standalone" if self.service.is_open else "read-only"

    def monitor(self) -> dict[str, str | int | float]:
        """Give what `mntr` says, without the `zk_` in front of each name."""
        service, counted = self.service, self.service.statistics
        tree = service.machine.tree
        latency = counted.latency_ms
        values: dict[str, str | int | float] = {
            "version": VERSION,
            "server_state": self._mode(),
            "ephemerals_count": sum(len(paths) for paths in tree.ephemerals.values()),
            "num_alive_connections": len(service.connections),
            "avg_latency": _average(latency),
            "outstanding_requests": service.pipeline.outstanding(),
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
        }
        values |= _rows("fsynctime", counted.sync_ms)
        values |= _rows("snapshottime", counted.snapshot_ms)
        values |= _rows("startup_txns_loaded", self._replayed)
        values |= _rows("dbinittime", self._load_ms)
        values |= _rows("sync_processor_batch_size", counted.batch_sizes)
        values |= _rows("updatelatency", latency)
        return values

    def configuration(self) -> dict[str, str | int]:
        """Give what `conf` says."""
        config = self.service.config
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
            "serverId": 0,
        }

    def sizes(self) -> tuple[int, int]:
        """Give the bytes of the snapshots and of the log."""
        snapshots, log = self._folders()
        return _size(snapshots), _size(log)

    def last_snapshot(self) -> tuple[int, int]:
        """Give the zxid of the newest snapshot, and when it was made in ms; -1 and -1 if none."""
        folder, _ = self._folders()
        snapshotter = self._snapshotter
        if folder is None or snapshotter is None or snapshotter.newest_zxid < 0:
            return -1, -1
        newest = folder / snapshot_name(snapshotter.newest_index)
        return snapshotter.newest_zxid, int(newest.stat().st_mtime * 1000)

    def environment(self) -> dict[str, str]:
        """Give what `envi` says. Of the machine it tells no user and no folder."""
        # kazoo takes the server's version from here.
        return {
            "zookeeper.version": VERSION,
            "host.name": socket.gethostname(),
            "os.name": platform.system(),
            "os.arch": platform.machine(),
            "os.version": platform.release(),
            "paddock.build": "pure Python" if jute.__file__.endswith(".py") else "compiled",
        }

    def digest(self) -> tuple[int, int]:
        """Give the last zxid and the digest of the state behind it."""
        machine = self.service.machine
        return machine.zxid, machine.digest()

    def reset(self) -> None:
        """Begin to count anew what the server counts."""
        self.service.statistics.reset()

    def reset_connections(self) -> None:
        """Begin to count anew what the connections count."""
        for connection in self.service.connections:
            connection.reset_statistics()

    def _folders(self) -> tuple[Path | None, Path | None]:
        directory = self._directory
        return (None, None) if directory is None else (directory.snapshots_path, directory.log_path)


def _average(summary: Summary) -> float:
    return round(summary.average(), 4)


def _rows(name: str, summary: Summary) -> dict[str, str | int | float]:
    """Give a summary as upstream does, in five rows."""
    return {
        f"avg_{name}": _average(summary),
        f"min_{name}": int(summary.min),
        f"max_{name}": int(summary.max),
        f"cnt_{name}": summary.count,
        f"sum_{name}": int(summary.total),
    }


def _open_files() -> int:
    # Newer kernels tell the number as the folder's size; to list it with many open would take long.
    return os.stat("/dev/fd/").st_size or len(os.listdir("/dev/fd"))


def _size(folder: Path | None) -> int:
    """Give the bytes of all files in a folder; one may go while we look."""
    total = 0
    if folder is not None:
        for file in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += file.stat().st_size
    return total
