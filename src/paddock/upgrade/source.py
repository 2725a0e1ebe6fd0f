"""Reading an Apache data folder: the files that count, their order, and the state they give.

The newest snapshot that is whole, and every transaction behind it. A damaged snapshot is passed
over for the one before it, which takes more of the log. Then nothing may be missing: a transaction
takes the next zxid, or the first of a later epoch of its ensemble, so a file that was purged or
forgotten shows as a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from paddock.protocol.jute import DecodeError
from paddock.state.machine import StateMachine
from paddock.state.sessions import Session
from paddock.state.tree import CONFIG, SPECIAL, Tree
from paddock.upgrade.snapshot_file import read_snapshot
from paddock.upgrade.state import NOT_YET_KNOWN, ApacheState, tree_digest, ttl_of_3_5_3
from paddock.upgrade.stream import DamagedFileError, UpgradeError
from paddock.upgrade.transaction import Transaction, decode
from paddock.upgrade.transaction_log import TransactionLog

_SNAPSHOT_NAME: Final = re.compile(r"snapshot\.([0-9a-f]{1,16})(?:\.gz|\.snappy)?")
_LOG_NAME: Final = re.compile(r"log\.([0-9a-f]{1,16})")
# Where an ensemble begins: the first transaction of its first epoch.
_FIRST_ZXIDS: Final = (1, 1 << 32 | 1)

# Of Java's random numbers, and of Apache's passwords.
_MULTIPLIER: Final = 0x5DEECE66D
_MASK: Final = (1 << 48) - 1
_SECRET: Final = 0xB3415C00

_WAY_OUT: Final = "start Apache ZooKeeper on it once and stop it again: then it has a new snapshot"


@dataclass(slots=True)
class ReadLog:
    """A file of the log, and how many of its transactions were replayed."""

    path: Path
    transactions: int = 0


@dataclass(slots=True)
class Reading:
    """A report of what was read."""

    # None if there is none and the log goes back to the beginning.
    snapshot: Path | None = None
    logs: list[ReadLog] = field(default_factory=list)
    # Sentences about what is not as it should be, and what was done about it.
    warnings: list[str] = field(default_factory=list)
    # Whether the tree has the digest that Apache wrote for it; None if it wrote none.
    digest_fits: bool | None = None

    @property
    def transactions(self) -> int:
        return sum(log.transactions for log in self.logs)


def read_service(data: Path, log: Path | None) -> tuple[StateMachine, Reading]:
    """Read the state that an Apache server would start with.

    `data` and `log` are what its `zoo.cfg` calls dataDir and dataLogDir. Without the latter the log
    is looked for beside the snapshots, and then there must be one: it may have been forgotten.
    Raises UpgradeError.
    """
    reading = Reading()
    snapshots = find_snapshots(data)
    logs = find_logs(data if log is None else log)
    if not snapshots and not logs:
        raise UpgradeError(f"{data / 'version-2'}: there is neither a snapshot nor a log in it")
    if not logs and log is None:
        raise UpgradeError(
            f"{data / 'version-2'}: there is no transaction log in it; name the dataLogDir of the"
            " zoo.cfg with --log-dir, or this folder itself if there really is none"
        )
    if log is not None and log.resolve() != data.resolve() and find_logs(data):
        reading.warnings.append(
            f"{data / 'version-2'}: the transaction logs in it are not read, but those in {log}"
        )
    state, reaches_zxid = _load(snapshots, reading)
    _replay(state, logs, reading)
    if state.zxid < reaches_zxid:
        raise UpgradeError(
            f"{reading.snapshot}: it was written while transactions up to 0x{reaches_zxid:x} were"
            f" carried out, and the log ends at 0x{state.zxid:x}; is this the right folder for it?"
        )
    if state.digest is not None:
        reading.digest_fits = tree_digest(state.nodes) == state.digest
        if not reading.digest_fits:
            reading.warnings.append(
                "the nodes do not have the digest that Apache ZooKeeper wrote for them"
            )
    finish(state, reading)
    return machine_of(state), reading


def find_snapshots(folder: Path) -> list[tuple[int, Path]]:
    """Find the snapshots of a server, with the zxids in their names, ascending."""
    return _find(folder, _SNAPSHOT_NAME)


def find_logs(folder: Path) -> list[tuple[int, Path]]:
    """Find the files of its transaction log, with the first zxid of each, ascending."""
    return _find(folder, _LOG_NAME)


def _find(folder: Path, name: re.Pattern[str]) -> list[tuple[int, Path]]:
    """Find files by their names, with the zxids in these, ascending."""
    within = folder / "version-2"
    try:
        matches = [(name.fullmatch(path.name), path) for path in within.iterdir()]
    except FileNotFoundError:
        if not folder.exists():
            raise UpgradeError(f"{folder}: there is no such folder") from None
        raise UpgradeError(
            f"{folder}: has no folder 'version-2', so it is not what a zoo.cfg calls dataDir"
        ) from None
    except OSError as error:
        raise UpgradeError(f"{within}: cannot be read: {error.strerror}") from None
    return sorted((int(match[1], 16), path) for match, path in matches if match is not None)


def _load(snapshots: list[tuple[int, Path]], reading: Reading) -> tuple[ApacheState, int]:
    """Load the newest whole snapshot; return it with the last zxid that it may have."""
    for zxid, path in reversed(snapshots):
        try:
            snapshot = read_snapshot(path, zxid)
        except DamagedFileError as error:
            reading.warnings.append(f"{error}; the snapshot before it is taken")
        else:
            reading.snapshot = path
            return snapshot.state, snapshot.reaches_zxid
    if reading.warnings:
        reading.warnings[-1] = reading.warnings[-1].replace(
            "the snapshot before it is taken", "there is none before it"
        )
    return ApacheState.fresh(), 0


def _replay(state: ApacheState, logs: list[tuple[int, Path]], reading: Reading) -> None:
    """Apply every transaction behind the state, and check that none is missing."""
    # The file before the first that is surely needed may end with some that are.
    behind = [zxid for zxid, _ in logs if zxid <= state.zxid]
    needed = [(zxid, path) for zxid, path in logs if not behind or zxid >= behind[-1]]
    torn: str | None = None
    has_begun = False
    for _, path in needed:
        read = ReadLog(path)
        reading.logs.append(read)
        file = TransactionLog(path)
        for offset, transaction in transactions(file):
            if not has_begun and transaction.zxid <= state.zxid:
                continue
            has_begun = True
            if not follows(transaction.zxid, state.zxid, reading.snapshot is None):
                raise DamagedFileError(path, offset, _gap(transaction.zxid, state.zxid, reading))
            state.apply(transaction)
            read.transactions += 1
            torn = None
        if file.torn_offset is not None:
            torn = f"{path}: offset {file.torn_offset}: a write that was cut short is passed over"
    if torn is not None:
        reading.warnings.append(torn)


def transactions(file: TransactionLog) -> Iterator[tuple[int, Transaction]]:
    """Yield the transactions of a file, each with its offset. Raises DamagedFileError."""
    for record in file.records():
        try:
            yield record.offset, decode(record.payload)
        except DecodeError as error:
            raise DamagedFileError(file.path, record.offset, str(error)) from None


def follows(zxid: int, last: int, is_beginning: bool) -> bool:
    """Return whether nothing is missing between two transactions; at the beginning, before one."""
    if last == 0 and is_beginning:
        return zxid in _FIRST_ZXIDS
    is_first_of_epoch = zxid & 0xFFFF_FFFF == 1 and zxid >> 32 > last >> 32
    return zxid == last + 1 or is_first_of_epoch


def _gap(zxid: int, last: int, reading: Reading) -> str:
    if last == 0 and reading.snapshot is None:
        return (
            f"the log begins with transaction 0x{zxid:x}, and there is no whole snapshot that it"
            f" could follow; {_WAY_OUT}"
        )
    if zxid > last:
        missing = f"the transactions between 0x{last:x} and 0x{zxid:x} are missing"
    else:
        missing = f"transaction 0x{zxid:x} comes after 0x{last:x}"
    return f"{missing}; {_WAY_OUT}"


def finish(state: ApacheState, reading: Reading) -> None:
    """Do what an Apache server does after loading, and adapt the state to Paddock."""
    for owner in [one for one in state.ephemerals if one not in state.sessions]:
        converted = ttl_of_3_5_3(owner)
        if converted is None:
            state.end_session(owner, state.zxid)
        else:
            for path in state.ephemerals.pop(owner):
                state.nodes[path].owner = converted
    for session in state.sessions:
        if session <= 0:
            raise UpgradeError(
                f"session 0x{session % (1 << 64):x} was given by a server with an id above 127, and"
                " such sessions cannot be taken over; stop their clients, and the servers once"
                " these sessions have expired"
            )
    _add_special_nodes(state)
    config = state.nodes[CONFIG]
    if config.data:
        # Clients that follow it would go back to the servers that are named there.
        config.data = b""
        reading.warnings.append(
            "the servers in /zookeeper/config are left out, since this one serves alone"
        )
    _check_tree(state)


def _add_special_nodes(state: ApacheState) -> None:
    """Add the nodes that are always there here, but were not before 3.5."""
    fresh = ApacheState.fresh()
    for path in sorted(SPECIAL):
        if path not in state.nodes:
            node = fresh.nodes[path]
            node.children = None
            node.acl = state.acl(node.acl.entries)
            state.put(path, node)


def _check_tree(state: ApacheState) -> None:
    """Check that the result is a tree, with an ACL for every node."""
    for path, node in state.nodes.items():
        parent = state.nodes.get(path[: path.rfind(b"/")])
        siblings = None if parent is None else parent.children
        is_root = len(path) < 2
        if parent is None or not (is_root or (siblings is not None and path in siblings)):
            raise UpgradeError(
                f"node {path[:100]!r} is in the snapshot, and the log does not say how it came"
                f" there; {_WAY_OUT}"
            )
        if node.acl is NOT_YET_KNOWN:
            raise UpgradeError(
                f"node {path[:100]!r} has an ACL that neither the snapshot nor the log holds"
            )


def machine_of(state: ApacheState) -> StateMachine:
    """Return the state as a server of Paddock has it."""
    tree = Tree()
    for path, node in state.nodes.items():
        if path:
            tree.acls.retain(node.acl)
            # Whose child it is follows from the paths.
            node.children = None
            tree.plant(path, node)
    tree.link()
    machine = StateMachine()
    machine.adopt(tree)
    machine.zxid = state.zxid
    for session, timeout_ms in state.sessions.items():
        machine.sessions.by_id[session] = Session(session, session_password(session), timeout_ms, 1)
    machine.sessions.last_id = max(state.last_session, 0)
    return machine


def session_password(session: int) -> bytes:
    """Return the password of a session as Apache makes it: Java's random bytes, the id as seed.

    So clients can go on with their sessions.
    """
    seed = (session ^ _SECRET ^ _MULTIPLIER) & _MASK
    password = b""
    for _ in range(4):
        seed = (seed * _MULTIPLIER + 0xB) & _MASK
        password += (seed >> 16).to_bytes(4, "little")
    return password
