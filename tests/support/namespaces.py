"""Machines of our own, for real partitions: network namespaces that are joined by a bridge.

    with Network("etcd", "server", "clients") as network:
        etcd, server, clients = network.places
        subprocess.Popen([*server.command, "paddock", "serve", "--host", server.address])
        network.lose(server, etcd)        # what the server sends to etcd is lost; not the answers
        network.part([server], [etcd])    # nothing gets through, in either direction
        network.mend()
        with clients.entered(): ...       # sockets of this thread are the clients' ones

The bridge has a namespace as well, so nothing of this is seen by the machine's own network, and
its addresses are nobody else's. A loss is silent, as on a network: packets go to a hardware address
that nobody has. So it needs no firewall, only root and `ip` of iproute2. Namespaces go at the end,
also those that a killed run has left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.server import ServerMissingError

_NAMES: Final = "paddock-lab-"
# In namespaces without a way out.
_ADDRESSES: Final = "10.91.0."
# Locally administered, and of no interface.
_NOBODY: Final = "02:00:5e:00:00:ff"
_COMMAND_TIMEOUT_S: Final = 30.0
_CLONE_NEWNET: Final = 0x40000000

_numbers = itertools.count(1)
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Place:
    """One namespace, with one address."""

    name: str
    namespace: str
    address: str

    def __repr__(self) -> str:
        return self.name

    @property
    def command(self) -> list[str]:
        """Words that run the command behind them here, in the same process."""
        return ["nsenter", f"--net=/run/netns/{self.namespace}", "--"]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Have this thread, and threads and processes that it starts, make their sockets here."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            here = os.open(f"/run/netns/{self.namespace}", os.O_RDONLY)
            try:
                _enter(here)
            finally:
                os.close(here)
            try:
                yield
            finally:
                _enter(before)
        finally:
            os.close(before)


class Network:
    """Places that reach each other, as long as nothing is done to that. `with` removes them."""

    def __init__(self, *names: str) -> None:
        run = f"{_NAMES}{os.getpid()}-{next(_numbers)}"
        self._bridge = f"{run}-bridge"
        self.places = [
            Place(name, f"{run}-{name}", f"{_ADDRESSES}{number}")
            for number, name in enumerate(names, 1)
        ]
        self._lost: set[tuple[Place, Place]] = set()

    def __enter__(self) -> Self:
        check_namespaces()
        _remove_leftovers()
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def lose(self, source: Place, target: Place) -> None:
        """Lose what one place sends to another one, and not what comes back."""
        if (source, target) not in self._lost:
            self._lost.add((source, target))
            _neighbour("replace", source, target, "lladdr", _NOBODY, "nud", "permanent")

    def part(self, some: Iterable[Place], others: Sequence[Place]) -> None:
        """Lose everything between some places and others."""
        for one in some:
            for other in others:
                self.lose(one, other)
                self.lose(other, one)

    def mend(self) -> None:
        """Lose nothing any more."""
        for source, target in sorted(self._lost, key=repr):
            _neighbour("del", source, target)
        self._lost.clear()

    def _build(self) -> None:
        bridge = self._bridge
        _ip("netns", "add", bridge)
        _ip("-n", bridge, "link", "add", "bridge", "type", "bridge")
        _ip("-n", bridge, "link", "set", "bridge", "up")
        for number, place in enumerate(self.places, 1):
            port, there = f"port{number}", place.namespace
            _ip("netns", "add", there)
            _ip("-n", there, "link", "set", "lo", "up")
            ends = ("type", "veth", "peer", "name", "eth0", "netns", there)
            _ip("-n", bridge, "link", "add", port, *ends)
            _ip("-n", bridge, "link", "set", port, "master", "bridge", "up")
            _ip("-n", there, "address", "add", f"{place.address}/24", "dev", "eth0")
            _ip("-n", there, "link", "set", "eth0", "up")

    def _remove(self) -> None:
        # Interfaces go with their namespace.
        for name in [*(place.namespace for place in self.places), self._bridge]:
            if (Path("/run/netns") / name).exists():
                _ip("netns", "delete", name)


def check_namespaces() -> None:
    """Raise ServerMissingError, with the reason, if this machine lets us have no namespaces."""
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        raise ServerMissingError("ip and nsenter are missing (Debian: apt-get install iproute2)")
    if os.geteuid() != 0:
        raise ServerMissingError("network namespaces need root")
    name = f"{_NAMES}{os.getpid()}-probe"
    try:
        _ip("netns", "add", name)
        try:
            _ip("-n", name, "link", "add", "bridge", "type", "bridge")
        finally:
            _ip("netns", "delete", name)
    except NetworkError as error:
        raise ServerMissingError(f"this machine allows no network namespaces: {error}") from None


class NetworkError(Exception):
    """A command that makes or changes a network failed."""


def _neighbour(action: str, source: Place, target: Place, *more: str) -> None:
    _ip("-n", source.namespace, "neighbour", action, target.address, *more, "dev", "eth0")


def _ip(*arguments: str) -> str:
    done = subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S
    )
    if done.returncode:
        raise NetworkError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _enter(descriptor: int) -> None:
    # os.setns is new in Python 3.12.
    if _libc.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns failed")


def _remove_leftovers() -> None:
    """Remove the namespaces of runs whose process is gone."""
    for name in sorted(os.listdir("/run/netns")):
        found = re.match(rf"{_NAMES}(\d+)-", name)
        if found is not None and not Path("/proc", found[1]).exists():
            with contextlib.suppress(NetworkError):
                _ip("netns", "delete", name)
