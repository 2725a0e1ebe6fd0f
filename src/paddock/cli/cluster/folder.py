"""The folder of a cluster on one machine: its ports, and where each process keeps what is its own.

    cluster.json            the ports
    url                     the address of the log, as --log takes it
    etcd-1, etcd-1.log      data and log of an etcd
    server-1, server-1.log  cache and log of a server

Ports are chosen once: etcd's members know each other by theirs, and clients know the servers.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from paddock.cli.output import CannotBeDone
from paddock.storage.layout import Claim, FolderInUseError

HOST: Final = "127.0.0.1"
ETCD_MEMBERS: Final = 3
# The name of the service in etcd.
SERVICE: Final = "cluster"
_FILE: Final = "cluster.json"
_URL: Final = "url"
_LOCK: Final = "lock"
_FORMAT: Final = 1
# Below those that systems give to connections, which would take a port while nobody listens.
_FIRST_PORT: Final = 20_000
_LAST_PORT: Final = 32_000


@dataclass(frozen=True, slots=True)
class EtcdPorts:
    """The ports of an etcd: for its clients, and for the other members."""

    clients: int
    peers: int


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """A folder, and the ports in it."""

    path: Path
    etcd: tuple[EtcdPorts, ...]
    servers: tuple[int, ...]

    @property
    def url(self) -> str:
        """The address of the log, as `--log` takes it."""
        endpoints = ",".join(f"{HOST}:{one.clients}" for one in self.etcd)
        return f"etcd://{endpoints}/{SERVICE}"

    @property
    def hosts(self) -> str:
        """The connection string of the service."""
        return ",".join(f"{HOST}:{port}" for port in self.servers)


@contextlib.contextmanager
def opened(path: Path, servers: int, first_port: int | None) -> Iterator[ClusterFolder]:
    """Use a folder within the scope: one with a cluster, or one that is made or empty.

    `first_port` is the port of the first server, and the others follow it; None keeps the ports
    that the folder has, and chooses free ones for the rest. Raises CannotBeDone.
    """
    is_new = not (path / _FILE).exists()
    if is_new and path.exists() and _holds_anything(path):
        raise CannotBeDone(f"{path}: is not empty, and holds no cluster")
    path.mkdir(parents=True, exist_ok=True)
    try:
        with Claim(path):
            kept = ClusterFolder(path, (), ()) if is_new else _read(path)
            folder = _with_ports(kept, servers, first_port)
            if folder != kept:
                _write(folder)
            yield replace(folder, servers=folder.servers[:servers])
    except FolderInUseError:
        raise CannotBeDone(f"{path}: a cluster runs in it already") from None


def _holds_anything(path: Path) -> bool:
    return not path.is_dir() or any(one.name != _LOCK for one in path.iterdir())


def _read(path: Path) -> ClusterFolder:
    file = path / _FILE
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
        if found["format"] != _FORMAT:
            raise CannotBeDone(f"{file}: was written by another version of Paddock")
        etcd = tuple(EtcdPorts(int(clients), int(peers)) for clients, peers in found["etcd"])
        return ClusterFolder(path, etcd, tuple(map(int, found["servers"])))
    except (ValueError, KeyError, TypeError):
        raise CannotBeDone(f"{file}: is damaged") from None


def _write(folder: ClusterFolder) -> None:
    content = {
        "format": _FORMAT,
        "etcd": [[one.clients, one.peers] for one in folder.etcd],
        "servers": folder.servers,
    }
    temporary = folder.path / f"{_FILE}.new"
    temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
    (folder.path / _URL).write_text(f"{folder.url}\n", encoding="utf-8")
    # Last: with it there is a cluster.
    os.replace(temporary, folder.path / _FILE)


def _with_ports(kept: ClusterFolder, servers: int, first_port: int | None) -> ClusterFolder:
    """Return a folder with as many ports as are needed, or more; those that it needs are free."""
    ours = list(kept.servers)
    if first_port is not None:
        ours = list(range(first_port, first_port + servers))
    used = {port for one in kept.etcd for port in (one.clients, one.peers)}
    for port in sorted(used | set(ours[:servers])):
        if not _is_free(port):
            raise CannotBeDone(f"port {port} of {HOST} is in use; this cluster needs it")
    for port in sorted(used & set(ours)):
        raise CannotBeDone(f"port {port} of {HOST} is one of this cluster's etcd")
    free = _free_ports(used | set(ours) | set(kept.servers))
    ours += [next(free) for _ in range(servers - len(ours))]
    etcd = kept.etcd or tuple(EtcdPorts(next(free), next(free)) for _ in range(ETCD_MEMBERS))
    return ClusterFolder(kept.path, etcd, tuple(ours))


def _free_ports(but: set[int]) -> Iterator[int]:
    wanted = list(range(_FIRST_PORT, _LAST_PORT))
    random.shuffle(wanted)
    for port in wanted:
        if port not in but and _is_free(port):
            yield port
    raise CannotBeDone(f"no port of {HOST} is free from {_FIRST_PORT} to {_LAST_PORT}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
