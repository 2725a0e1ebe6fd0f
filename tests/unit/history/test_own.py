"""The past of a data folder: the state at any moment is the one that was served then."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from paddock.history.moment import BEGINNING, NOW, Moment
from paddock.history.own import OwnSource
from paddock.history.past import Gap, HistoryError, Step, state_at
from tests.property.dump import dump
from tests.unit.history.folder import PastFolder, live
from tests.unit.state.driver import World


@pytest.fixture
def folder(tmp_path: Path) -> PastFolder:
    return PastFolder(tmp_path / "data")


def source_of(folder: PastFolder) -> OwnSource:
    return OwnSource(folder.path / "log", folder.path / "snapshots")


@pytest.mark.parametrize("seed", range(4))
def test_the_state_at_any_zxid_is_the_one_that_was_served(folder: PastFolder, seed: int) -> None:
    with folder:
        live(folder, Random(seed), 60)
        source = source_of(folder)
        for zxid, state in folder.states.items():
            found = dump(state_at(source, Moment(zxid=zxid)).machine())
            # What takes no zxid may have come since.
            for name in ("sessions", "kept", "time_ms", "last_id"):
                found.pop(name)
                state.pop(name)
            assert found == state, zxid
        last = state_at(source, NOW).machine()
        assert dump(last) == dump(folder.world.machine)


def test_the_state_at_a_time_has_all_that_was_written_up_to_it(folder: PastFolder) -> None:
    with folder:
        live(folder, Random(9), 30)
        for zxid, time_ms in folder.times.items():
            past = state_at(source_of(folder), Moment(time_ms=time_ms))
            assert (past.zxid, past.time_ms) == (zxid, time_ms)
        # Between two entries, and after the last.
        assert state_at(source_of(folder), Moment(time_ms=10**15)).zxid == max(folder.states)


def test_a_step_says_who_asked_for_what_and_what_came_of_it(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open(timeout_ms=4000)
        client.create(b"/a", b"1", 1)
        client.set(b"/a", b"2", 7)
        folder.world.expire(client.session, 1)
        folder.commit()
        opened, created, refused, ended = source_of(folder).begin(BEGINNING).steps(NOW)
    assert isinstance(opened, Step)
    assert isinstance(created, Step)
    assert isinstance(refused, Step)
    assert isinstance(ended, Step)
    assert opened.session_change == (client.session, "opened", 4000)
    assert (created.operation, created.session, created.paths) == (
        "create",
        client.session,
        (b"/a",),
    )
    assert (refused.error, refused.paths) == (-103, ())
    # The service itself.
    assert (ended.operation, ended.session, ended.paths) == ("expire", 0, (b"/a",))
    assert ended.session_change == (client.session, "ended", 4000)


def test_what_was_purged_is_told_with_where_the_history_begins(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.create(b"/a")
        folder.snapshot()
        kept_zxid = folder.world.machine.zxid
        client.set(b"/a", b"1")
        folder.commit()
        folder.segment(1).unlink()
        source = source_of(folder)
        with pytest.raises(HistoryError, match=rf"begins at .* \(zxid 0x{kept_zxid:x}\)"):
            state_at(source, Moment(zxid=kept_zxid - 1))
        assert state_at(source, Moment(zxid=kept_zxid)).zxid == kept_zxid
        assert source.begin(BEGINNING).zxid == kept_zxid
        with pytest.raises(HistoryError, match=r"zxid 0x63 is not .* ends with zxid 0x3 at"):
            state_at(source, Moment(zxid=99))


def test_a_damaged_snapshot_is_passed_over(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.create(b"/a", b"1")
        folder.snapshot()
        (file,) = (folder.path / "snapshots").iterdir()
        file.write_bytes(file.read_bytes()[:-1] + b"?")
        client.set(b"/a", b"2")
        folder.commit()
        assert dump(state_at(source_of(folder), NOW).machine()) == dump(folder.world.machine)


def test_a_gap_is_told_and_the_state_goes_on_behind_it(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        for number in range(3):
            client.create(b"/n%d" % number)
            folder.commit()
        folder.snapshot()
        client.create(b"/last")
        folder.commit()
        folder.segment(2).unlink()
        past = source_of(folder).begin(BEGINNING)
        steps = list(past.steps(NOW))
        (gap,) = [one for one in steps if isinstance(one, Gap)]
        assert (gap.zxid, gap.next_zxid) == (2, 4)
        assert steps.index(gap) == 2
        assert dump(past.machine()) == dump(folder.world.machine)
        with pytest.raises(HistoryError, match="zxid 0x3 is not in the history: there is a gap"):
            state_at(source_of(folder), Moment(zxid=3))
        # Its two ends are there.
        assert state_at(source_of(folder), Moment(zxid=2)).zxid == 2
        assert state_at(source_of(folder), Moment(zxid=4)).zxid == 4


def test_a_time_in_a_gap_is_told_as_well(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        for number in range(4):
            client.create(b"/n%d" % number)
            folder.note()
            folder.commit()
        folder.snapshot()
        folder.segment(2).unlink()
        source, times = source_of(folder), folder.times
        for zxid in (3, 4):
            with pytest.raises(HistoryError, match="is not in the history: there is a gap"):
                state_at(source, Moment(time_ms=times[zxid]))
            # Those who look at steps are told, and the state is none from behind the moment.
            past = source.begin(BEGINNING)
            *_, gap = past.steps(Moment(time_ms=times[zxid]))
            assert isinstance(gap, Gap)
            assert (gap.zxid, gap.next_zxid, past.zxid) == (2, 5, 2)
        assert state_at(source, Moment(time_ms=times[2])).zxid == 2
        assert state_at(source, Moment(time_ms=times[5])).zxid == 5


def test_a_gap_without_a_snapshot_behind_it_is_not_taken_for_the_end(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        for number in range(3):
            client.create(b"/n%d" % number)
            folder.note()
            folder.commit()
        folder.segment(2).unlink()
        source = source_of(folder)
        for moment in (NOW, Moment(time_ms=folder.times[4])):
            with pytest.raises(HistoryError, match=r"nothing is known behind .* \(zxid 0x2\)"):
                state_at(source, moment)
        *_, gap = source.begin(BEGINNING).steps(NOW)
        assert isinstance(gap, Gap)
        assert (gap.zxid, gap.next_zxid) == (2, None)
        assert state_at(source, Moment(zxid=2)).zxid == 2


def test_a_batch_of_another_state_is_a_gap(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        for number in range(4):
            client.create(b"/n%d" % number)
            # The third one names another state than there was.
            folder._digest ^= number == 2
            folder.commit()
        source, texts = source_of(folder), "zxid 0x4 is not .* gave another state at batch 2 than"
        with pytest.raises(HistoryError, match=texts):
            state_at(source, Moment(zxid=4))
        folder.snapshot()
        client.create(b"/last")
        folder.commit()
        past = source.begin(BEGINNING)
        # It is told again, and what is behind it is not taken for what follows.
        for zxid in (3, 4, 4):
            gaps = [one for one in past.steps(Moment(zxid=zxid)) if isinstance(one, Gap)]
            assert [(one.zxid, one.next_zxid) for one in gaps] == [(3, 5)] * (zxid > 3)
            assert past.zxid == 3
        assert [one for one in past.steps(NOW) if isinstance(one, Gap)] == gaps
        assert dump(past.machine()) == dump(folder.world.machine)
        with pytest.raises(HistoryError, match="zxid 0x4 is not in the history: there is a gap"):
            state_at(source, Moment(zxid=4))


def test_a_folder_without_anything_has_no_history(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="there is no history in it"):
        OwnSource(tmp_path / "log", tmp_path / "snapshots").begin(NOW)


def test_worlds_differ() -> None:
    """The comparisons above would find another state."""
    one, other = World(), World()
    one.open().create(b"/a", b"1")
    other.open().create(b"/a", b"2")
    assert dump(one.machine) != dump(other.machine)
