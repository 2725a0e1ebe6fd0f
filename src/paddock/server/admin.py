"""Four-letter words: what a server says about itself to anybody with a socket.

The formats are upstream's to the letter, because monitoring tools parse them. A word that is not
on the whitelist is answered with a sentence that says so. While the server cannot serve sessions,
the words say that instead of pretending.
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
from paddock.log.directory import DataDirectory
from paddock.server.service import Service

# Clients and tools ask for ZooKeeper's version; this is the one whose bytes we speak.
VERSION: Final = f"3.8.0-paddock-{__version__}"
_NOT_SERVING: Final = b"This ZooKeeper instance is not currently serving requests\n"


class FourLetterWords:
    """Answers the words of one server."""

    def __init__(
        self,
        service: Service,
        directory: DataDirectory | None,
        address: tuple[str, int],
        now: Callable[[], float],
    ) -> None:
        self._service = service
        self._directory = directory
        self._address = address
        self._now = now
        self._started = now()
        self._words: dict[str, Callable[[], str]] = {
            "ruok": lambda: "imok",
            "isro": lambda: "rw",
            "srvr": self._srvr,
            "stat": self._stat,
            "mntr": self._mntr,
            "conf": self._conf,
            "envi": self._envi,
        }

    def answer(self, word: bytes) -> bytes | None:
        """Answer a word; None if it is not one, but the beginning of a frame."""
        try:
            name = word.decode("ascii")
        except UnicodeDecodeError:
            return None
        found = self._words.get(name)
        if found is None:
            return None
        if not self._service.config.answers_word(name):
            return f"{name} is not executed because it is not in the whitelist.\n".encode()
        if not self._service.is_open:
            return b"null" if name == "isro" else _NOT_SERVING
        return found().encode()

    def _srvr(self) -> str:
        return f"Zookeeper version: {VERSION}\n{self._summary()}"

    def _stat(self) -> str:
        clients = "".join(f" {one.describe()}\n" for one in self._service.connections)
        return f"Zookeeper version: {VERSION}\nClients:\n{clients}\n{self._summary()}"

    def _summary(self) -> str:
        service, counted = self._service, self._service.statistics
        latency = "/".join(
            (
                str(int(counted.latency_ms_min)),
                str(round(counted.latency_ms_average(), 4)),
                str(int(counted.latency_ms_max)),
            )
        )
        return (
            f"Latency min/avg/max: {latency}\n"
            f"Received: {counted.packets_received}\n"
            f"Sent: {counted.packets_sent}\n"
            f"Connections: {len(service.connections)}\n"
            f"Outstanding: {service.pipeline.outstanding()}\n"
            f"Zxid: 0x{service.machine.zxid:x}\n"
            f"Mode: standalone\n"
            f"Node count: {len(service.machine.tree.nodes)}\n"
        )

    def _mntr(self) -> str:
        service, counted = self._service, self._service.statistics
        tree = service.machine.tree
        values: dict[str, str | int | float] = {
            "version": VERSION,
            "server_state": "standalone",
            "avg_latency": round(counted.latency_ms_average(), 4),
            "max_latency": int(counted.latency_ms_max),
            "min_latency": int(counted.latency_ms_min),
            "packets_received": counted.packets_received,
            "packets_sent": counted.packets_sent,
            "num_alive_connections": len(service.connections),
            "outstanding_requests": service.pipeline.outstanding(),
            "uptime": int((self._now() - self._started) * 1000),
            "znode_count": len(tree.nodes),
            "watch_count": service.watches.data.size + service.watches.child.size,
            "ephemerals_count": sum(len(paths) for paths in tree.ephemerals.values()),
            "approximate_data_size": tree.data_bytes,
            "global_sessions": len(service.machine.sessions.by_id),
            "local_sessions": 0,
            "open_file_descriptor_count": len(os.listdir("/dev/fd")),
            "max_file_descriptor_count": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        }
        return "".join(f"zk_{key}\t{value}\n" for key, value in values.items())

    def _conf(self) -> str:
        config = self._service.config
        snapshots = log = None
        if self._directory is not None:
            snapshots, log = self._directory.snapshots_path, self._directory.log_path
        host, port = self._address
        values: dict[str, str | int] = {
            "clientPort": port,
            "secureClientPort": -1,
            "dataDir": "" if snapshots is None else str(snapshots.absolute()),
            "dataDirSize": _size(snapshots),
            "dataLogDir": "" if log is None else str(log.absolute()),
            "dataLogSize": _size(log),
            "tickTime": config.tick_time_ms,
            "maxClientCnxns": config.max_connections_per_address,
            "minSessionTimeout": config.min_session_timeout_ms,
            "maxSessionTimeout": config.max_session_timeout_ms,
            "clientPortListenBacklog": -1,
            "serverId": 0,
            "clientPortAddress": host,
        }
        return "".join(f"{key}={value}\n" for key, value in values.items())

    def _envi(self) -> str:
        # kazoo takes the server's version from here. Of the machine we tell no user and no folder.
        values = {
            "zookeeper.version": VERSION,
            "host.name": socket.gethostname(),
            "os.name": platform.system(),
            "os.arch": platform.machine(),
            "os.version": platform.release(),
        }
        return "Environment:\n" + "".join(f"{key}={value}\n" for key, value in values.items())


def _size(folder: Path | None) -> int:
    """Give the bytes of all files in a folder; one may go while we look."""
    total = 0
    if folder is not None:
        for file in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += file.stat().st_size
    return total
