"""Replaying a log: what is kept meanwhile, and what is said of a record that takes too much."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from paddock.log.file.file_log import FileLog
from paddock.log.interface import LogError, Record
from paddock.protocol import opcodes
from paddock.protocol.acl import Identity
from paddock.protocol.requests import SetDataRequest
from paddock.server.durability import startup
from paddock.state.access import Identities
from paddock.state.entry import Batch, Entry
from paddock.state.machine import Outcome, StateMachine, session_body
from paddock.storage import load as loading
from paddock.storage.data_directory import DataDirectory
from paddock.storage.load import load
from paddock.storage.maintenance import check as checking
from paddock.storage.maintenance.check import check
from paddock.storage.maintenance.repair import repair
from paddock.storage.replay import (
    DIGESTS_MAX,
    KNOWN_BYTES_MAX,
    KNOWN_MAX,
    OtherStateError,
    Replay,
    TooMuchForThisMachineError,
)
from paddock.storage.snapshots import SnapshotStore
from tests.support.logs import recover_state
from tests.unit.log.folders import SESSION, FolderBuilder, contents, names, paths
from tests.unit.log.helpers import segments
from tests.unit.state.driver import PASSWORD, encode

EPOCH = 1 << 32


class SmallMachine:
    """A state on a machine that cannot apply the entry with this time: as if it took too much."""

    def __init__(self, machine: StateMachine, time_ms: int, error: BaseException) -> None:
        self._machine = machine
        self._time_ms = time_ms
        self._error = error

    def __getattr__(self, name: str) -> object:
        return getattr(self._machine, name)

    def replay(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> Outcome:
        if entry.time_ms == self._time_ms:
            raise self._error
        return self._machine.apply(entry)


# The node that a record creates is that of its index less two, its time 999 and its index.
TOO_MUCH = 9
TIME_MS = 999 + TOO_MUCH
NODES = 12


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with 13 records, the first of which makes the session, and snapshots at 5 and 11."""
    folder = tmp_path / "data"
    with FolderBuilder(folder) as builder:
        builder.create(*names(4))
        builder.snapshot()
        builder.create(*names(6, 4))
        builder.snapshot()
        builder.create(*names(2, 10))
    return folder


def without_newest(folder: Path) -> Path:
    max((folder / "snapshots").iterdir()).unlink()
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loading run on a machine that has too little for one of the records."""

    class SmallReplay(Replay):
        def apply(self, record: Record) -> None:
            # Only meanwhile: a compiled replica takes no other machine.
            machine = self.machine
            self.machine = cast(StateMachine, SmallMachine(machine, TIME_MS, MemoryError()))
            try:
                super().apply(record)
            finally:
                self.machine = machine

    for module in (checking, loading, startup):
        monkeypatch.setattr(module, "Replay", SmallReplay)


def with_identities(index: int, identities: Identities) -> Record:
    entry = Entry(opcodes.SYNC, b"", SESSION, 1, identities=identities)
    return Record(index, Batch([entry], -1, 0).encode())


def kept(replay: Replay) -> tuple[int, int]:
    return len(replay._known), sum(map(len, replay._known))


@pytest.mark.parametrize(("size", "records"), [(10, 3 * KNOWN_MAX), (5000, 300)])
def test_identities_that_are_kept_do_not_grow_with_the_log(size: int, records: int) -> None:
    replay = Replay(StateMachine(), 0)
    most = (0, 0)
    for index in range(1, records + 1):
        one = Identity("digest", f"user-{index}:" + "x" * size)
        replay.apply(with_identities(index, Identities((one,))))
        most = max(most[0], kept(replay)[0]), max(most[1], kept(replay)[1])
    assert 1 < most[0] <= KNOWN_MAX
    assert most[1] <= KNOWN_BYTES_MAX


@pytest.mark.parametrize("behind", [0, 1, DIGESTS_MAX - 1, DIGESTS_MAX])
def test_a_batch_is_checked_against_the_state_that_its_proposer_had(behind: int) -> None:
    """Several may be in flight, so that is not always the last one."""
    replay = Replay(StateMachine(), 0)
    digests = {}
    for index in range(1, DIGESTS_MAX + 2):
        digests[replay.index] = replay.machine.digest()
        if index == 1:
            entry = Entry(opcodes.CREATE_SESSION, session_body(30_000, PASSWORD), SESSION)
        else:
            body = encode(SetDataRequest(b"/", b"%d" % index, -1))
            entry = Entry(opcodes.SET_DATA, body, SESSION, 1)
        replay.apply(Record(index, Batch([entry], -1, 0).encode()))
    digests[replay.index] = replay.machine.digest()
    assert len(set(digests.values())) > DIGESTS_MAX
    digest_index = replay.index - behind
    wrong = Batch([], digest_index, digests[digest_index] + 1).encode()
    if behind < DIGESTS_MAX:
        with pytest.raises(OtherStateError, match=f"at batch {digest_index} "):
            replay.apply(Record(replay.index + 1, wrong))
        right = Batch([], digest_index, digests[digest_index]).encode()
        replay.apply(Record(replay.index + 1, right))
        assert replay.verified_index == digest_index
    else:
        # Too long ago to be known.
        replay.apply(Record(replay.index + 1, wrong))
        assert replay.verified == 0


def test_identities_of_the_same_client_are_decoded_once() -> None:
    replay = Replay(StateMachine(), 0)
    for index in range(1, 10):
        replay.apply(with_identities(index, Identities((Identity("digest", "a:b"),))))
    assert kept(replay)[0] == 1


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("too deep"), OSError(12, "no")])
def test_record_that_takes_too_much_is_named_with_the_way_out(error: BaseException) -> None:
    machine = SmallMachine(StateMachine(), 7, error)
    replay = Replay(cast(StateMachine, machine), 0)
    entry = Entry(opcodes.CREATE_SESSION, session_body(30_000, PASSWORD), SESSION, time_ms=7)
    with pytest.raises(TooMuchForThisMachineError) as raised:
        replay.apply(Record(1, Batch([entry], 0, replay.machine.digest()).encode()))
    text = str(raised.value)
    assert text.startswith("record 1 of the log takes more")
    assert "Nothing was changed. Start it with more memory" in text
    assert text.endswith("paddock fsck DATA --repair COPY --before 1")
    # What it was called with would be kept in memory by its frames.
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.usefixtures("small")
def test_server_backup_and_check_all_name_the_record_and_change_nothing(data: Path) -> None:
    without_newest(data)
    before = contents(data)
    said = f"record {TOO_MUCH} of the log takes more memory"
    with pytest.raises(TooMuchForThisMachineError, match=said):
        load(data)
    with pytest.raises(TooMuchForThisMachineError, match=said):
        check(data)
    with pytest.raises(TooMuchForThisMachineError, match=said):
        repair(data, data.parent / "copy")
    with DataDirectory(data) as directory:
        log = FileLog(directory.log_path)
        with pytest.raises(TooMuchForThisMachineError, match=said):
            recover_state(log, SnapshotStore(directory.snapshots_path))
        log.close()
    assert {**contents(data), "lock": before["lock"]} == before
    assert not (data.parent / "copy").exists()


@pytest.mark.usefixtures("small")
def test_copy_without_that_record_has_everything_before_it_and_a_new_epoch(data: Path) -> None:
    copy = data.parent / "copy"
    before = contents(data)
    # The newest snapshot has the record in it, so that one is not loaded either.
    result = repair(data, copy, before=TOO_MUCH)
    assert contents(data) == before
    assert result.report.loses
    assert result.report.left_out == NODES + 1 - (TOO_MUCH - 1)
    assert not result.report.is_damaged
    assert result.saved.index == TOO_MUCH - 1
    assert result.zxid == EPOCH
    assert paths(load(copy).machine) == set(names(TOO_MUCH - 2))


@pytest.mark.parametrize("before", range(2, NODES + 2))
def test_copy_before_any_record_has_what_came_before_it(data: Path, before: int) -> None:
    result = repair(data, data.parent / "copy", before)
    assert result.saved.index == before - 1
    assert paths(load(data.parent / "copy").machine) == set(names(before - 2))


def test_record_that_is_not_there_cannot_be_left_out(data: Path) -> None:
    with pytest.raises(LogError, match=rf"the last record is {NODES + 1}, so nothing is left out"):
        repair(data, data.parent / "copy", NODES + 2)
    assert not (data.parent / "copy").exists()


def test_record_before_which_everything_was_purged_cannot_be_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "purged"
    with FolderBuilder(folder) as builder:
        builder.create(*names(6))
        builder.snapshot()
        builder.create(*names(2, 6))
        builder.purge()
    assert int(segments(folder / "log")[0].stem) > 1
    for before in (3, 7):
        with pytest.raises(LogError, match=f"before record {before} is not there any more"):
            repair(folder, tmp_path / "copy", before)
    assert repair(folder, tmp_path / "copy", 8).saved.index == 7


def test_damage_before_the_record_counts_as_ever(data: Path) -> None:
    without_newest(data)
    damaged = segments(data / "log")[2]
    first = int(damaged.stem)
    assert 5 < first < 12
    damaged.write_bytes(b"")
    result = repair(data, data.parent / "copy", 12)
    assert result.saved.index == first - 1
    assert result.report.is_damaged


def test_snapshot_that_takes_too_much_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_: object) -> StateMachine:
        raise MemoryError

    newest = max((data / "snapshots").iterdir())
    monkeypatch.setattr(loading, "restore", too_much)
    said = "the snapshot takes more memory than this machine has, or than a limit on it allows"
    with pytest.raises(TooMuchForThisMachineError, match=f"{newest}: {said}"):
        load(data)
    with pytest.raises(TooMuchForThisMachineError, match=said):
        check(data)
    with DataDirectory(data) as directory:
        log = FileLog(directory.log_path)
        with pytest.raises(TooMuchForThisMachineError, match=f"{newest}: {said}"):
            recover_state(log, SnapshotStore(directory.snapshots_path))
        log.close()
