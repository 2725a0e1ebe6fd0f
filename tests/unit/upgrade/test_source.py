"""Which files of an Apache folder count, that none is missing, and what is done at the end."""

import gzip
from pathlib import Path

import pytest

from paddock.state.machine import StateMachine
from paddock.state.node import TTL_BASE
from paddock.upgrade.snapshot_file import read_snapshot
from paddock.upgrade.source import Reading, read_service, session_password
from paddock.upgrade.state import tree_digest
from paddock.upgrade.stream import UpgradeError
from tests.unit.upgrade import files
from tests.unit.upgrade.files import ApacheFolder, Node, transaction

EPOCH = 1 << 32


@pytest.fixture
def apache(tmp_path: Path) -> ApacheFolder:
    return ApacheFolder(tmp_path / "apache")


def read(apache: ApacheFolder, log: Path | None = None) -> tuple[StateMachine, Reading]:
    return read_service(apache.path, log)


def refusal(apache: ApacheFolder, log: Path | None = None) -> str:
    with pytest.raises(UpgradeError) as caught:
        read(apache, log)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def creates(first: int, last: int) -> list[bytes]:
    """Transactions that create a node each, named after their zxids."""
    return [
        transaction(zxid, files.create(f"/n{zxid & 0xFFFF:x}", zxid & 0xFFFF))
        for zxid in range(first, last + 1)
    ]


def names(machine: StateMachine) -> list[str]:
    """The numbers of the nodes that `creates` made."""
    return sorted(
        (path[2:].decode() for path in machine.tree.nodes if path.startswith(b"/n")),
        key=lambda name: int(name, 16),
    )


def test_the_newest_snapshot_and_the_log_behind_it_make_the_state(apache: ApacheFolder) -> None:
    apache.snapshot(0, files.snapshot())
    newest = apache.snapshot(2, files.snapshot({"/n1": Node(), "/n2": Node()}))
    apache.log(*creates(1, 1))
    log = apache.log(*creates(2, 4))
    machine, reading = read(apache)
    assert (names(machine), machine.zxid) == (["1", "2", "3", "4"], 4)
    assert reading.snapshot == newest
    assert [(one.path, one.transactions) for one in reading.logs] == [(log, 2)]
    assert (reading.transactions, reading.warnings, reading.digest_fits) == (2, [], None)


def test_the_names_are_hexadecimal_and_their_order_is_of_numbers(apache: ApacheFolder) -> None:
    apache.snapshot(0x9, files.snapshot({"/n9": Node()}))
    newest = apache.snapshot(0x10, files.snapshot({"/n10": Node()}))
    apache.log(*creates(0x11, 0x11))
    machine, reading = read(apache)
    assert (names(machine), reading.snapshot) == (["10", "11"], newest)


def test_other_files_are_left_alone(apache: ApacheFolder) -> None:
    apache.snapshot(0, files.snapshot())
    apache.log(*creates(1, 1))
    for name in ("acceptedEpoch", "currentEpoch", "log.1.bak", "snapshot.5.tmp", "log.x"):
        (apache.files / name).write_bytes(b"something")
    for name in ("myid", "initialize"):
        (apache.path / name).write_bytes(b"1")
    assert names(read(apache)[0]) == ["1"]


def test_a_folder_of_its_own_may_have_the_log(apache: ApacheFolder, tmp_path: Path) -> None:
    apache.snapshot(0, files.snapshot())
    elsewhere = ApacheFolder(tmp_path / "log")
    elsewhere.log(*creates(1, 3))
    machine, reading = read(apache, elsewhere.path)
    assert (names(machine), reading.warnings) == (["1", "2", "3"], [])
    apache.log(*creates(7, 8))
    machine, reading = read(apache, elsewhere.path)
    assert names(machine) == ["1", "2", "3"]
    assert "the transaction logs in it are not read" in reading.warnings[0]


def test_a_log_that_is_not_there_may_have_been_forgotten(apache: ApacheFolder) -> None:
    apache.snapshot(0, files.snapshot())
    assert "there is no transaction log in it; name the dataLogDir" in refusal(apache)
    # A log folder that is named explicitly may be empty.
    assert names(read(apache, apache.path)[0]) == []


def test_what_is_no_data_folder_is_refused(apache: ApacheFolder, tmp_path: Path) -> None:
    assert "there is neither a snapshot nor a log in it" in refusal(apache)
    with pytest.raises(UpgradeError, match="there is no such folder"):
        read_service(tmp_path / "nothing", None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UpgradeError, match="has no folder 'version-2'"):
        read_service(tmp_path / "empty", None)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UpgradeError, match="cannot be read: Not a directory"):
        read_service(tmp_path / "file", None)


# Damage.


def test_a_damaged_snapshot_is_passed_over_for_the_one_before(apache: ApacheFolder) -> None:
    older = apache.snapshot(1, files.snapshot({"/n1": Node()}, {77: 5_000}))
    apache.snapshot(2, files.snapshot({"/n1": Node()}, {88: 5_000})[:-9])
    apache.snapshot(3, b"")
    apache.log(*creates(1, 2))
    apache.log(*creates(3, 4))
    machine, reading = read(apache)
    assert (names(machine), reading.snapshot) == (["1", "2", "3", "4"], older)
    assert set(machine.sessions.by_id) == {77}
    assert len(reading.warnings) == 2
    assert "snapshot.3: offset 0: the file ends before its contents do" in reading.warnings[0]


def test_a_damaged_snapshot_is_refused_if_the_log_for_the_one_before_is_gone(
    apache: ApacheFolder,
) -> None:
    apache.snapshot(1, files.snapshot({"/n1": Node()}))
    apache.snapshot(5, files.snapshot()[:-1])
    log = apache.log(*creates(4, 7))
    assert refusal(apache).startswith(
        f"{log}: offset 16: the transactions between 0x1 and 0x4 are missing; start Apache"
    )


def test_without_any_whole_snapshot_the_log_must_go_back_to_the_beginning(
    apache: ApacheFolder,
) -> None:
    apache.snapshot(0, b"garbage")
    log = apache.log(*creates(2, 3))
    assert f"{log}: offset 16: the log begins with transaction 0x2, and there is no" in refusal(
        apache
    )
    log.unlink()
    apache.log(*creates(1, 2))
    machine, reading = read(apache)
    assert (names(machine), reading.snapshot) == (["1", "2"], None)
    assert reading.warnings[0].endswith("there is none before it")
    # A fresh server has them, with these numbers.
    config = machine.tree.nodes[b"/zookeeper/config"]
    assert (config.aversion, config.czxid) == (-1, 0)


@pytest.mark.parametrize("first", [1, EPOCH | 1])
def test_a_log_alone_is_enough_if_it_is_whole(apache: ApacheFolder, first: int) -> None:
    apache.log(*creates(first, first + 1))
    assert names(read(apache)[0]) == ["1", "2"]


def test_a_gap_in_the_log_is_noticed(apache: ApacheFolder) -> None:
    apache.snapshot(0, files.snapshot())
    apache.log(*creates(1, 2))
    log = apache.log(*creates(5, 6))
    assert f"{log}: offset 16: the transactions between 0x2 and 0x5 are missing" in refusal(apache)


def test_a_log_that_goes_back_is_refused(apache: ApacheFolder) -> None:
    apache.snapshot(0, files.snapshot())
    apache.log(*creates(1, 5))
    apache.log(*creates(3, 4))
    assert "transaction 0x3 comes after 0x5" in refusal(apache)


def test_epochs_of_an_ensemble_follow_each_other(apache: ApacheFolder) -> None:
    apache.snapshot(3 * EPOCH | 2, files.snapshot({"/n1": Node(), "/n2": Node()}))
    apache.log(*creates(3 * EPOCH | 1, 3 * EPOCH | 3))
    apache.log(*[transaction(5 * EPOCH | 1, files.create("/n4", 4))])
    machine, _ = read(apache)
    assert (names(machine), machine.zxid) == (["1", "2", "3", "4"], 5 * EPOCH | 1)
    log = apache.log(*[transaction(6 * EPOCH | 2, files.create("/n5", 5))])
    assert f"{log}: offset 16: the transactions between" in refusal(apache)


def test_a_write_that_was_cut_short_at_the_very_end_is_told(apache: ApacheFolder) -> None:
    apache.snapshot(0, files.snapshot())
    log = apache.log(*creates(1, 3), zeros=0)
    log.write_bytes(log.read_bytes()[:-20])
    machine, reading = read(apache)
    assert names(machine) == ["1", "2"]
    assert reading.warnings[0].endswith(": a write that was cut short is passed over")
    # The server was started again, and wrote it anew: then there is nothing to tell.
    apache.log(*creates(3, 3))
    machine, reading = read(apache)
    assert (names(machine), reading.warnings) == (["1", "2", "3"], [])


def test_a_transaction_that_cannot_be_understood_is_named(apache: ApacheFolder) -> None:
    apache.snapshot(0, files.snapshot())
    log = apache.log(*creates(1, 1), transaction(2, (99, b"")))
    assert f"{log}: offset " in refusal(apache)
    assert refusal(apache).endswith("a transaction of type 99, which is not known")


def test_a_log_that_ends_before_the_snapshot_was_written_is_refused(apache: ApacheFolder) -> None:
    apache.snapshot(1, files.snapshot(digest=(4, 0)))
    apache.log(*creates(1, 3))
    assert "written while transactions up to 0x4 were carried out, and the log ends at 0x3" in (
        refusal(apache)
    )


def test_a_compressed_snapshot_is_read(apache: ApacheFolder) -> None:
    apache.snapshot(1, gzip.compress(files.snapshot({"/n1": Node()})), ".gz")
    apache.log(*creates(2, 2))
    assert names(read(apache)[0]) == ["1", "2"]


# The digest.


def test_the_digest_that_apache_wrote_is_compared(apache: ApacheFolder) -> None:
    plain = apache.snapshot(0, files.snapshot())
    state = read_snapshot(plain, 0).state
    expected = tree_digest(state.nodes)
    apache.log(transaction(1, files.create_session(), digest=expected))
    assert read(apache)[1].digest_fits is True
    apache.log(transaction(1, files.create_session(), digest=expected + 1))
    reading = read(apache)[1]
    assert (reading.digest_fits, len(reading.warnings)) == (False, 1)


# What a server does when it has loaded everything, and what makes it fit here.


def test_sessions_come_with_their_timeouts_and_passwords(apache: ApacheFolder) -> None:
    apache.snapshot(0, files.snapshot(sessions={77: 5_000}))
    apache.log(
        transaction(1, files.create_session(6_000), session=78),
        transaction(2, files.create_session(6_000), session=90),
        transaction(3, files.close_session([]), session=90),
    )
    machine, _ = read(apache)
    sessions = machine.sessions
    assert {one.id: one.timeout_ms for one in sessions.by_id.values()} == {77: 5_000, 78: 6_000}
    assert {one.password for one in sessions.by_id.values()} == {
        session_password(77),
        session_password(78),
    }
    assert {one.generation for one in sessions.by_id.values()} == {1}
    # None is given twice, also not the one that is over.
    assert sessions.last_id == 90


def test_nodes_of_a_session_that_is_gone_go_too(apache: ApacheFolder) -> None:
    apache.snapshot(
        5, files.snapshot({"/mine": Node(owner=77), "/his": Node(owner=78)}, {77: 5_000})
    )
    machine, _ = read(apache, apache.path)
    assert b"/mine" in machine.tree.nodes
    assert b"/his" not in machine.tree.nodes
    assert machine.tree.nodes[b"/"].pzxid == 5
    assert machine.tree.ephemerals == {77: {b"/mine": None}}


def test_a_ttl_of_3_5_3_stays_one(apache: ApacheFolder) -> None:
    apache.snapshot(5, files.snapshot({"/brief": Node(owner=files.CONTAINER + 1_000)}))
    machine, _ = read(apache, apache.path)
    assert machine.tree.nodes[b"/brief"].owner == TTL_BASE + 1_000
    assert list(machine.tree.ttls) == [b"/brief"]


@pytest.mark.parametrize("session", [-(1 << 63) + (1 << 50), -5, 0])
def test_a_session_that_would_not_fit_is_refused(apache: ApacheFolder, session: int) -> None:
    apache.snapshot(5, files.snapshot(sessions={session: 5_000}))
    assert f"session 0x{session % (1 << 64):x} was given by a server with an id above 127" in (
        refusal(apache, apache.path)
    )


def test_a_folder_of_3_4_gets_the_node_that_it_lacks(apache: ApacheFolder) -> None:
    nodes = files.basic_nodes()
    del nodes["/zookeeper/config"]
    apache.snapshot(0, files.Snapshot(nodes).encode())
    apache.log(*creates(1, 1))
    tree = read(apache)[0].tree
    assert set(tree.nodes[b"/zookeeper"].child_names()) == {b"config", b"quota"}
    assert tree.nodes[b"/zookeeper/config"].aversion == -1


def test_the_servers_of_an_ensemble_are_not_handed_on_to_clients(apache: ApacheFolder) -> None:
    apache.snapshot(
        5, files.snapshot({"/zookeeper/config": Node(b"server.1=old:1:2", mzxid=4, version=3)})
    )
    machine, reading = read(apache, apache.path)
    config = machine.tree.nodes[b"/zookeeper/config"]
    assert (config.data, config.mzxid, config.version) == (b"", 4, 3)
    assert "/zookeeper/config" in reading.warnings[0]


def test_an_acl_that_nothing_tells_of_is_refused(apache: ApacheFolder) -> None:
    apache.snapshot(5, files.snapshot({"/n1": Node(acl=99)}))
    assert "node b'/n1' has an ACL that neither the snapshot nor the log holds" in refusal(
        apache, apache.path
    )
    apache.log(transaction(6, files.create("/n1", 1, b"", files.ALICE)))
    machine, _ = read(apache)
    assert len(machine.tree.nodes[b"/n1"].acl.entries) == 2


def test_a_node_that_is_left_without_a_parent_is_refused(apache: ApacheFolder) -> None:
    apache.snapshot(5, files.snapshot({"/a": Node(), "/a/b": Node()}))
    apache.log(transaction(6, files.delete("/a")))
    assert "node b'/a/b' is in the snapshot, and the log does not say how" in refusal(apache)


def test_the_tree_keeps_beside_its_nodes_what_trees_keep(apache: ApacheFolder) -> None:
    apache.snapshot(
        5,
        files.snapshot(
            {
                "/a": Node(b"123", acl=2, cversion=4),
                "/a/b": Node(acl=2),
                "/box": Node(owner=files.CONTAINER),
                "/zookeeper/quota/a": Node(),
                "/zookeeper/quota/a/zookeeper_limits": Node(b"count=1,bytes=1"),
            },
            acls={2: files.ALICE},
        ),
    )
    tree = read(apache, apache.path)[0].tree
    assert len(tree) == 9
    assert len(tree.acls) == 3
    assert tree.quotas.size == 1
    assert tree.quotas.governor(b"/a/b") is not None
    assert list(tree.containers) == [b"/box"]
    assert tree.nodes[b"/a"].acl is tree.nodes[b"/a/b"].acl
    assert tree.nodes[b"/a"].acl.users == 2
    digest = tree.digest()
    tree.adopt_digest()
    assert tree.digest() == digest


# Sessions.


@pytest.mark.parametrize(
    ("session", "password"),
    [
        # Told by Java's own Random.
        (1, "054cc74a37327db215e702e20c73f005"),
        (0x1000_0342_0A4F_0001, "96728693f4e332b48e624b9a91bb475d"),
        (72058411964694529, "19085ab2bb3e615b49d30ab030bd76b5"),
        (-2, "0dd532b5c441e3927c04b55e50fd9421"),
    ],
)
def test_the_password_of_a_session_is_the_one_that_apache_gave_out(
    session: int, password: str
) -> None:
    assert session_password(session).hex() == password
