"""Three etcd members, three servers and their clients, each in a network namespace of its own.

    with Lab() as lab:
        lab.network.part([lab.place_of(lab.members[0])], lab.etcd_places)
        ...
        lab.heal()

`with` starts all of it and has this thread make its sockets where the clients are. One member of
etcd (`small_etcd`) and each server have a small disk of their own, which `fill` fills. Nothing here
opens a session: the history of a scene has them all.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from paddock.log.etcd.keys import Keys
from paddock.log.interface import Record
from paddock.protocol import opcodes
from paddock.state.entry import Batch
from paddock.testing.simulation.calls import Calls
from paddock.testing.simulation.history import History, Logged
from paddock.testing.simulation.witness import read_shared_log
from tests.support import disks, wire
from tests.support.command import COMMAND
from tests.support.etcd import Etcd, EtcdCluster
from tests.support.members import Member
from tests.support.namespaces import Network, Place
from tests.support.paddock_cluster import PaddockMember
from tests.support.server import POLL_S, Options, ServerFailedError

SIZE: Final = 3
SERVICE: Final = "lab"
#: The lease: the shortest that there is.
T: Final = 4.0

_MEMORY: Final = "/dev/shm" if os.path.isdir("/dev/shm") else None
_ROOT: Final = Path(__file__).parents[3]
# A member that was cut off asks before it begins an election when it is back.
_ETCD_ARGUMENTS: Final = (
    *("--heartbeat-interval", "100", "--election-timeout", "1000", "--pre-vote"),
)
# etcd allocates two segments of its log at once, of 64 MB each.
_ETCD_DISK_BYTES: Final = 192 << 20
_SERVER_DISK_BYTES: Final = 8 << 20
_DEADLINE_S: Final = 60.0
_PIECE: Final = bytes(1 << 16)
_BALLAST: Final = "ballast"


class LabMember(PaddockMember):
    """A server. `rate` is how fast the clock of its lease runs."""

    rate = 1.0

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        if self.rate != 1.0:
            scaled = [sys.executable, "-m", "tests.support.scaled_clock", str(self.rate)]
            command[: len(COMMAND)] = scaled
            paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return command, environment

    def is_serving(self) -> bool:
        """Whether it says that it serves; a session would be one that no history has."""
        return self.mode() in ("leader", "follower")


class Lab:
    """Everything of a scene, but its clients."""

    def __init__(self, rates: Sequence[float] = (1.0, 1.0, 1.0)) -> None:
        numbers = range(1, SIZE + 1)
        names = [f"{kind}{number}" for kind in ("etcd", "server") for number in numbers]
        self.network = Network(*names, "clients")
        *places, self.clients = self.network.places
        self.etcd_places, self.server_places = places[:SIZE], places[SIZE:]
        self._rates = rates
        self._stack = contextlib.ExitStack()
        self.members: list[LabMember] = []
        self.folder: Path
        self.etcd: EtcdCluster

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.network)
            self.folder = Path(tempfile.mkdtemp(prefix="paddock-test-lab-", dir=_MEMORY))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._make_etcd(stack)
            self._make_servers(stack)
            stack.enter_context(self.clients.entered())
            self.heal()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            for one in [*self.members, *self.etcd.members]:
                print(f"--- {one!r} ended so:\n{one.log_tail()}")
        self._stack.close()

    @property
    def small_etcd(self) -> Etcd:
        """The member of etcd with a small disk."""
        return self.etcd.members[0]

    def place_of(self, one: Etcd | Member) -> Place:
        """Where a process runs."""
        return next(place for place in self.network.places if place.address == one.host)

    def heal(self) -> None:
        """Undo everything that was done, and wait until all serve."""
        self.network.mend()
        for one in [self.small_etcd, *self.members]:
            (one.data / _BALLAST).unlink(missing_ok=True)
        self.etcd.start()
        for member in self.members:
            if not member.alive:
                member.kill()
                member.launch()
            elif member.paused:
                member.resume()
        wait_until(lambda: all(one.is_serving() for one in self.members), "all servers serve")

    def differences(self) -> list[str]:
        """Wait until all servers are at one zxid, and compare the digests of their states."""
        found: set[str] = set()

        def are_at_one_zxid() -> bool:
            nonlocal found
            found = {wire.four_letter_word(one.address, "hash") for one in self.members}
            return len({text.partition(":")[0] for text in found}) == 1

        wait_until(are_at_one_zxid, "all servers are at one zxid")
        if len(found) == 1:
            return []
        return [f"digests: the servers have different states: {sorted(found)}"]

    def read_log(
        self, history: History, counts: Counter[str], struck: set[Member]
    ) -> Iterator[Logged]:
        """Read the log of etcd; whom a scene has struck makes no difference to it."""
        records = self.records()
        # When they were committed is not known here.
        timeless = ((-1.0, record) for record in records)
        return read_shared_log(timeless, counts, _servers_of_boots(records, history))

    def records(self) -> list[Record]:
        """Read the whole log, which nobody has trimmed yet."""
        keys = Keys(SERVICE)
        etcd = self.etcd.leader()
        # First, because servers renew their leases meanwhile.
        (head,) = _items(etcd, keys.head.decode())
        found = []
        for item in _items(etcd, keys.batches.decode(), "--prefix"):
            named = keys.parse_batch(base64.b64decode(item["key"]))
            assert named is not None
            payload = base64.b64decode(item.get("value", ""))
            found.append((item["mod_revision"], named, payload))
        found.sort()
        assert len(found) >= head["version"], "a part of the log is trimmed"
        return [
            Record(index, payload, boot, number, revision)
            for index, (revision, (boot, number), payload) in enumerate(found, 1)
        ]

    def _make_etcd(self, stack: contextlib.ExitStack) -> None:
        self.etcd = EtcdCluster(self.folder / "etcd", arguments=_ETCD_ARGUMENTS)
        small = self.small_etcd
        small.data = stack.enter_context(
            disks.small_disk(self.folder / "etcd-disk", _ETCD_DISK_BYTES)
        )
        stack.callback(self.etcd.stop)
        for etcd, place in zip(self.etcd.members, self.etcd_places, strict=True):
            etcd.host, etcd.within = place.address, place.command
        for etcd in self.etcd.members:
            etcd.peers = {one.member: one.peer_url for one in self.etcd.members}

    def _make_servers(self, stack: contextlib.ExitStack) -> None:
        # Tick and limit of Paddock's tests; snapshots often enough to meet a full disk.
        options = Options(extra=(("snapCount", "500"), ("syncLimit", "2")))
        log = f"etcd://{','.join(self.etcd.endpoints)}/{SERVICE}"
        for number, place in enumerate(self.server_places, 1):
            member = LabMember(number, options, self.folder / place.name, log, advertises=False)
            member.host, member.within = place.address, place.command
            member.rate = self._rates[number - 1]
            member.data = stack.enter_context(
                disks.small_disk(self.folder / f"{place.name}-disk", _SERVER_DISK_BYTES)
            )
            stack.callback(member.kill)
            self.members.append(member)


def _servers_of_boots(records: list[Record], history: History) -> dict[bytes, str]:
    """Say which server a boot was of: the one to which clients had sent what it has proposed."""
    sent = {
        (call.connection.session, call.request.xid): call.connection.server
        for call in Calls(history).calls
        if call.is_write or call.operation == opcodes.SYNC
    }
    found: dict[bytes, str] = {}
    for record in records:
        boot = record.server or b""
        # Some propose nothing of clients, as long as they live.
        found.setdefault(boot, "?")
        for entry in Batch.decode(record.payload).entries if record.payload else ():
            found[boot] = sent.get((entry.session, entry.xid), found[boot])
    return found


def fill(one: Etcd | Member) -> None:
    """Fill the disk of a process, all of it; `heal` makes room again."""
    with (one.data / _BALLAST).open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(_PIECE)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until something holds that nobody tells."""
    limit = time.monotonic() + _DEADLINE_S
    while not condition():
        if time.monotonic() > limit:
            raise ServerFailedError(f"it took too long until {what}")
        time.sleep(POLL_S)


def _items(etcd: Etcd, *arguments: str) -> Iterator[dict[str, Any]]:
    answer = json.loads(etcd.ctl("get", *arguments, "--write-out", "json"))
    yield from answer.get("kvs", [])
