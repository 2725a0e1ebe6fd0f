"""`paddock upgrade` on folders that a real Apache ZooKeeper wrote, and was killed over.

What Apache shows after a restart on its folder is the truth. Paddock has to show the same on what
it made of a copy of that folder, node by node: data, stat, ACL and children.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from paddock.state.machine import StateMachine
from paddock.upgrade.source import read_service
from tests.support import requests as rq
from tests.support import wire
from tests.support.apache import ApacheServer
from tests.support.awake import kept_awake
from tests.support.command import ended, refusal, success
from tests.support.ensemble import choose_ports
from tests.support.paddock_server import PaddockServer
from tests.support.records import CREATOR_ALL, OPEN, READ_ONLY, Acl, Mode, Perm, Request, Stat
from tests.support.server import SUPER_CREDENTIALS, Options, Server, ServerMissingError

pytestmark = pytest.mark.judge

DEADLINE_S = 120.0
PIPELINE = 200
SESSION_TIMEOUT_MS = 600_000

# Nothing may end on its own while two servers are compared.
OPTIONS = Options(
    durable=False, reap_interval_ms=3_600_000, max_session_timeout_ms=SESSION_TIMEOUT_MS
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, and Apache ZooKeeper on this machine."""
    try:
        ApacheServer(folder=tmp_path).prepare()
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    return tmp_path


def apache(folder: Path, **keys: str) -> ApacheServer:
    """An Apache with its data below a folder, and with further keys in its zoo.cfg."""
    home = folder / "apache"
    home.mkdir(exist_ok=True)
    extra = tuple((key.replace("_", "."), value) for key, value in keys.items())
    return ApacheServer(replace(OPTIONS, extra=extra), home)


def session(server: Server) -> wire.Client:
    return wire.connect(server.address, timeout_ms=SESSION_TIMEOUT_MS, deadline_s=DEADLINE_S)


Open = Callable[[Server], wire.Client]


@pytest.fixture
def open_session() -> Iterator[Open]:
    """Open sessions whose connections last as long as the test."""
    with contextlib.ExitStack() as clients:
        yield lambda server: clients.enter_context(session(server))


def pipelined(client: wire.Client, many: list[Request]) -> list[Any]:
    replies = []
    for start in range(0, len(many), PIPELINE):
        replies += client.calls(*many[start : start + PIPELINE])
    return replies


# What a folder is filled with.

DIGEST_ACL = (Acl(Perm.ALL, "digest", "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E="),)
MIXED_ACL = (*READ_ONLY, *DIGEST_ACL, Acl(Perm.WRITE, "ip", "10.0.0.0/8"))
ACLS = (OPEN, OPEN, OPEN, DIGEST_ACL, MIXED_ACL, READ_ONLY)
DATA = (None, b"", b"x", b"something longer", bytes(300))


def quota_requests(path: str) -> list[Request]:
    above = ["/zookeeper/quota" + path[:cut] for cut in range(1, len(path)) if path[cut] == "/"]
    place = f"/zookeeper/quota{path}"
    return [
        *(rq.create(one) for one in above),
        rq.create(place),
        rq.create(f"{place}/zookeeper_limits", b"count=5,bytes=100=;byteHardLimit=-1"),
        rq.create(f"{place}/zookeeper_stats", b"count=0,bytes=0"),
    ]


def many_requests(seed: int, count: int) -> Iterator[Request]:
    """Yield requests of every kind, most of which succeed; the same for the same seed."""
    rng = random.Random(seed)
    groups = [f"/load{seed}-{number}" for number in range(8)]
    yield from (rq.create(group, b"group") for group in groups)
    yield from quota_requests(groups[0])
    made = 0
    while made < count:
        group = rng.choice(groups)
        path = f"{group}/n{rng.randrange(made + 1)}"
        new = f"{group}/n{made}"
        data = rng.choice(DATA)
        match rng.randrange(12):
            case 0 | 1 | 2 | 3 | 4:
                made += 1
                yield rq.create(new, data, rng.choice(ACLS))
            case 5:
                made += 1
                yield rq.create2(f"{group}/s-", data, flags=Mode.SEQUENTIAL)
            case 6:
                yield rq.set_data(path, data)
            case 7:
                yield rq.delete(path)
            case 8:
                yield rq.set_acl(path, rng.choice(ACLS))
            case 9:
                made += 1
                yield rq.create(f"{group}/e{made}", data, flags=Mode.EPHEMERAL)
                if rng.random() < 0.5:
                    yield rq.delete(f"{group}/e{made}")
            case 10:
                made += 2
                yield rq.multi(
                    rq.create(f"{group}/m{made}", data),
                    rq.create(f"{group}/m{made}/below", data, rng.choice(ACLS)),
                    rq.set_data(f"{group}/m{made}", b"set"),
                    *([rq.delete("/not/there")] if rng.random() < 0.3 else []),
                    rq.check(f"{group}/m{made}/below"),
                )
            case 11:
                made += 2
                yield rq.create_container(f"{new}c", data)
                yield rq.create_ttl(f"{new}t", 1 << rng.randrange(20, 40), data)
                yield rq.create(f"{new}c/below", data)


def fill(server: Server, open_session: Open, seed: int, count: int) -> list[wire.Client]:
    """Fill a server, and give two sessions that hold ephemeral nodes and are still open."""
    keeper, busy, leaving = (open_session(server) for _ in range(3))
    kept = f"/kept{seed}"
    keeper.call(rq.auth("digest", b"alice:secret"))
    replies = pipelined(keeper, [
        rq.create(kept, None, CREATOR_ALL),
        rq.create(f"{kept}/null", None),
        rq.create(f"{kept}/empty", b""),
        rq.create(f"{kept}/held", b"", flags=Mode.EPHEMERAL),
        rq.create(f"{kept}/seq", flags=Mode.EPHEMERAL_SEQUENTIAL),
        rq.create(f"{kept}/ünïcode", "ü".encode()),
        rq.set_acl(f"{kept}/empty", CREATOR_ALL),
        rq.set_data("/", b"of the root"),
        rq.set_acl("/", MIXED_ACL + OPEN),
    ])  # fmt: skip
    assert {reply.err for reply in replies} == {0}
    replies = pipelined(
        leaving, [rq.create(f"/gone{seed}-{n}", flags=Mode.EPHEMERAL) for n in range(20)]
    )
    assert {reply.err for reply in replies} == {0}
    pipelined(busy, list(many_requests(seed, count)))
    leaving.close()
    return [keeper, busy]


# What is compared.


@dataclass(frozen=True, slots=True)
class Seen:
    """All that a client can see of one node."""

    data: bytes | None
    stat: Stat
    acl: tuple[Acl, ...]
    children: frozenset[str]


def whole_tree(server: Server) -> dict[str, Seen]:
    """Return every node, as the super user sees it."""
    seen: dict[str, Seen] = {}
    with session(server) as client:
        assert client.call(rq.auth("digest", SUPER_CREDENTIALS)).err == 0
        waiting = ["/"]
        while waiting:
            found = pipelined(client, [
                request
                for path in waiting
                for request in (rq.get_data(path), rq.get_acl(path), rq.get_children2(path))
            ])  # fmt: skip
            level, waiting = waiting, []
            for path, data, acl, children in zip(
                level, found[::3], found[1::3], found[2::3], strict=True
            ):
                seen[path] = Seen(data.data, data.stat, acl.acl, frozenset(children.names))
                above = "" if path == "/" else path
                waiting += [f"{above}/{name}" for name in sorted(children.names)]
        client.close()
    return seen


def take_over(folder: Path, server: ApacheServer) -> tuple[PaddockServer, dict[str, Any]]:
    """Take over a copy of what a killed Apache left; give the server for it, and the summary."""
    copy = folder / "copy"
    shutil.copytree(server.data, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    home = folder / "paddock"
    home.mkdir()
    summary = json.loads(success("upgrade", "--json", copy, home / "data"))
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    assert isinstance(summary, dict)
    return PaddockServer(OPTIONS, home), summary


def assert_same(apache: ApacheServer, paddock: Server, *except_for: str) -> int:
    """Compare node by node, Apache started again on what it left; give how many there are."""
    apache.start()
    try:
        expected = whole_tree(apache)
    finally:
        apache.kill()
    actual = whole_tree(paddock)
    assert sorted(actual) == sorted(expected)
    for path, node in expected.items():
        assert actual[path] == node or path in except_for, path
    return len(expected)


def test_ten_thousand_nodes_of_a_killed_server_come_over_as_they_are(
    folder: Path, open_session: Open
) -> None:
    server = apache(folder)
    server.start()
    try:
        keeper, busy = fill(server, open_session, 1, 13_000)
        # It dies with requests under way, some logged and some not.
        busy.send(*(rq.create(f"/load1-1/late{number}", b"late") for number in range(2_000)))
        busy.read()
    finally:
        server.kill()
    paddock, summary = take_over(folder, server)
    with paddock:
        assert summary["snapshot"].endswith("snapshot.0")
        assert summary["digest_fits"] is True
        assert summary["sessions"] == 2
        assert assert_same(server, paddock) == summary["nodes"] > 10_000
        # A session of the old server continues here, with its password and its nodes.
        with wire.reattach(paddock.address, keeper) as again:
            assert again.session_id == keeper.session_id
            assert again.call(rq.exists("/kept1/held")).stat.ephemeral_owner == keeper.session_id
            assert again.call(rq.create("/load1-1/s-", flags=Mode.SEQUENTIAL)).err == 0
            again.close()
        with session(paddock) as other:
            assert other.call(rq.exists("/kept1/held")).err != 0
            assert other.session_id not in (keeper.session_id, busy.session_id)
            other.close()


@pytest.mark.parametrize(
    ("method", "scale"), [("", 5), ("gz", 1), ("snappy", 1)], ids=["plain", "gz", "snappy"]
)
def test_snapshots_that_were_written_under_load_come_over(
    folder: Path, open_session: Open, method: str, scale: int
) -> None:
    server = apache(
        folder,
        snapCount=str(140 * scale),
        preAllocSize="64",
        snapshot_compression_method=method,
    )
    server.start()
    try:
        for seed in (1, 2):
            fill(server, open_session, seed, 500 * scale)
        server.kill()
        server.start()
        clients = [open_session(server) for _ in range(2)]
        for number, client in enumerate(clients):
            client.send(*many_requests(10 + number, 200 * scale))
        clients[0].read()
    finally:
        server.kill()
    snapshots = list(server.data.glob("version-2/snapshot.*"))
    assert len(snapshots) >= 3
    assert {path.suffix == f".{method}" for path in snapshots} == {bool(method)}
    paddock, summary = take_over(folder, server)
    with paddock:
        assert Path(summary["snapshot"]).name != "snapshot.0"
        assert summary["digest_fits"] is not False
        assert assert_same(server, paddock) == summary["nodes"] > 600 * scale


def test_a_member_of_an_ensemble_with_a_log_of_its_own_comes_over(
    folder: Path, open_session: Open
) -> None:
    log = folder / "log"
    (ports,) = choose_ports(1)
    server = apache(
        folder,
        snapCount="700",
        dataLogDir=str(log),
        standaloneEnabled="false",
        initLimit="10",
        syncLimit="5",
        server_1=f"127.0.0.1:{ports.quorum}:{ports.election}",
    )
    server.port = ports.client
    (server.data / "myid").write_text("1")
    # Each start is another election, so another epoch.
    for epoch in (1, 2):
        server.start()
        try:
            with kept_awake([server]):
                fill(server, open_session, epoch, 1_000)
        finally:
            server.kill()
    assert "--log-dir" in refusal("upgrade", server.data, folder / "nowhere", status=1)
    (folder / "paddock").mkdir()
    target = folder / "paddock" / "data"
    result = ended("upgrade", "--json", "--log-dir", log, server.data, target)
    assert result.status == 0, result
    assert "the servers in /zookeeper/config are left out" in result.errors
    summary = json.loads(result.output)
    assert (summary["zxid"] >> 32, summary["digest_fits"]) == (2, True)
    with PaddockServer(OPTIONS, folder / "paddock") as paddock:
        assert assert_same(server, paddock, "/zookeeper/config") == summary["nodes"]


def test_every_snapshot_with_the_log_behind_it_gives_the_same(
    folder: Path, open_session: Open
) -> None:
    """Each was written while the server went on, so each leaves other things to be mended."""
    server = apache(folder, snapCount="800", preAllocSize="64")
    server.start()
    try:
        fill(server, open_session, 1, 2_500)
    finally:
        server.kill()
    snapshots = sorted(
        server.data.glob("version-2/snapshot.*"), key=lambda path: int(path.suffix[1:], 16)
    )
    assert len(snapshots) >= 4
    newest, reading = read_service(server.data, None)
    if reading.snapshot != snapshots[-1]:
        # It was killed while it wrote the last one.
        snapshots.pop().unlink()
    replayed = -1
    for snapshot in reversed(snapshots):
        again, reading = read_service(server.data, None)
        assert (reading.snapshot, reading.digest_fits, reading.warnings) == (snapshot, True, [])
        assert again.digest() == newest.digest()
        assert again.zxid == newest.zxid
        assert sessions(again) == sessions(newest)
        assert reading.transactions > replayed
        replayed = reading.transactions
        snapshot.unlink()
    # The log goes back to the first transaction, so it is enough.
    again, reading = read_service(server.data, None)
    assert (reading.snapshot, again.digest()) == (None, newest.digest())


def sessions(machine: StateMachine) -> set[tuple[int, bytes, int]]:
    return {(one.id, one.password, one.timeout_ms) for one in machine.sessions.by_id.values()}
