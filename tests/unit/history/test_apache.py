"""The past of a data folder of Apache ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddock.history.apache import ApacheSource
from paddock.history.moment import BEGINNING, NOW, Moment
from paddock.history.past import Gap, HistoryError, Step, state_at
from paddock.history.stories.lock import EXPIRED, tell_lock
from paddock.history.stories.session import NOT_KNOWN, tell_session
from paddock.history.telling import Below, NodeChange, changes
from tests.unit.upgrade import files
from tests.unit.upgrade.files import ApacheFolder, transaction

SESSION = files.SESSION


@pytest.fixture
def apache(tmp_path: Path) -> ApacheFolder:
    return ApacheFolder(tmp_path / "apache")


def fill(apache: ApacheFolder) -> None:
    apache.log(
        transaction(1, files.create_session()),
        transaction(2, files.create("/a", 1, b"1")),
        transaction(3, files.set_data("/a", b"2", 1)),
        transaction(4, files.error()),
    )
    apache.log(
        transaction(5, files.multi(files.create("/b", 2), files.set_data("/a", b"3", 2))),
        transaction(6, files.delete("/b")),
    )


def data(apache: ApacheFolder, moment: Moment) -> tuple[int, bytes | None]:
    past = state_at(ApacheSource(apache.path), moment)
    node = past.nodes.get(b"/a")
    return past.zxid, None if node is None else node.data


def test_the_state_at_a_zxid_is_read_from_the_log_alone(apache: ApacheFolder) -> None:
    fill(apache)
    found = [data(apache, Moment(zxid=zxid)) for zxid in range(1, 7)]
    assert found == [(1, None), (2, b"1"), (3, b"2"), (4, b"2"), (5, b"3"), (6, b"3")]
    assert data(apache, NOW) == (6, b"3")
    with pytest.raises(HistoryError, match="ends with zxid 0x6"):
        data(apache, Moment(zxid=7))


def test_a_state_can_be_served(apache: ApacheFolder) -> None:
    fill(apache)
    machine = state_at(ApacheSource(apache.path), Moment(zxid=5)).machine()
    assert {b"/a", b"/b"} < {path for path, _ in machine.tree.nodes.items()}


def test_a_snapshot_is_begun_with_if_all_that_it_may_hold_is_there(apache: ApacheFolder) -> None:
    nodes = {**files.basic_nodes(), "/a": files.Node(b"2")}
    apache.snapshot(3, files.snapshot(nodes))
    apache.log(
        transaction(4, files.set_data("/a", b"4", 2)), transaction(5, files.set_data("/a", b"5", 3))
    )
    assert data(apache, Moment(zxid=3)) == (3, b"2")
    assert data(apache, Moment(zxid=4)) == (4, b"4")
    with pytest.raises(HistoryError, match="oldest whole snapshot is complete at zxid 0x3"):
        data(apache, Moment(zxid=2))
    assert ApacheSource(apache.path).begin(BEGINNING).zxid == 3


def test_steps_say_what_the_log_knows(apache: ApacheFolder) -> None:
    fill(apache)
    apache.log(
        transaction(7, files.create("/e", 3, ephemeral=True)),
        transaction(8, files.close_session(["/e"])),
    )
    steps = [
        one
        for one in ApacheSource(apache.path).begin(BEGINNING).steps(NOW)
        if isinstance(one, Step)
    ]
    assert [(one.zxid, one.operation, one.paths) for one in steps] == [
        (1, "create_session", ()),
        (2, "create", (b"/a",)),
        (3, "set", (b"/a",)),
        (4, "refused", ()),
        (5, "multi", (b"/b", b"/a")),
        (6, "delete", (b"/b",)),
        (7, "create", (b"/e",)),
        (8, "close_session", (b"/e",)),
    ]
    assert {one.session for one in steps} == {SESSION}
    assert steps[0].session_change == (SESSION, "opened", 30_000)
    assert steps[-1].session_change == (SESSION, "ended", 30_000)


def test_changes_are_told_as_those_of_paddock_are(apache: ApacheFolder) -> None:
    fill(apache)
    past = ApacheSource(apache.path).begin(BEGINNING)
    found = [one for one in changes(past, NOW, Below(b"/a")) if isinstance(one, NodeChange)]
    assert [(one.kind, one.after and one.after.data) for one in found] == [
        ("created", b"1"),
        ("changed", b"2"),
        ("changed", b"3"),
    ]


def test_transactions_that_are_missing_are_a_gap(apache: ApacheFolder) -> None:
    fill(apache)
    apache.snapshot(9, files.snapshot({**files.basic_nodes(), "/a": files.Node(b"9")}))
    apache.log(transaction(10, files.set_data("/a", b"10", 9)))
    past = ApacheSource(apache.path).begin(BEGINNING)
    steps = list(past.steps(NOW))
    (gap,) = [one for one in steps if isinstance(one, Gap)]
    assert (gap.zxid, gap.next_zxid) == (6, 9)
    assert past.zxid == 10
    with pytest.raises(HistoryError, match="there is a gap"):
        data(apache, Moment(zxid=8))


def test_a_session_that_nobody_closed_has_expired(apache: ApacheFolder) -> None:
    apache.log(
        transaction(1, files.create_session()),
        transaction(2, files.create("/l", 1)),
        transaction(3, files.create("/l/x-0000000000", 1, ephemeral=True)),
        transaction(4, files.close_session(["/l/x-0000000000"]), cxid=0),
    )
    source = ApacheSource(apache.path)
    steps = list(source.begin(BEGINNING).steps(NOW))
    story = tell_session(SESSION, steps, [])
    assert story.cause()[:2] == (NOT_KNOWN, "a server found it silent; no event says more")
    assert story.ended is not None
    assert (story.ended.operation, story.ended.session) == ("expire", 0)
    (former,) = tell_lock(source.begin(BEGINNING), "/l", NOW).contenders
    assert former.how == EXPIRED


def test_a_time_in_a_gap_is_told_as_well(apache: ApacheFolder) -> None:
    fill(apache)
    apache.log(transaction(9, files.set_data("/a", b"9", 9)))
    for moment in (NOW, Moment(time_ms=files.TIME_MS + 8), Moment(time_ms=files.TIME_MS + 9)):
        with pytest.raises(HistoryError, match=r"nothing is known behind .* \(zxid 0x6\)"):
            data(apache, moment)
    assert data(apache, Moment(time_ms=files.TIME_MS + 6)) == (6, b"3")


def test_a_time_before_the_log_says_when_it_begins(apache: ApacheFolder) -> None:
    fill(apache)
    with pytest.raises(HistoryError, match="whose log begins at"):
        data(apache, Moment(time_ms=files.TIME_MS - 10**6))
    assert data(apache, Moment(time_ms=files.TIME_MS + 10**6)) == (6, b"3")


# The state behind a gap.

TIME_MS = files.TIME_MS


def leave_gap(apache: ApacheFolder, *later: bytes) -> None:
    """Write a log up to 6, the snapshot at 9 whose last write to a node is at 7, and a log."""
    fill(apache)
    nodes = {"/a": files.Node(b"7", mzxid=7, mtime=TIME_MS + 7)}
    apache.snapshot(9, files.snapshot(nodes))
    if later:
        apache.log(*later)


def at(time: int) -> Moment:
    return Moment(time_ms=TIME_MS + time)


def test_a_time_at_which_a_snapshot_may_not_have_been_yet_is_in_the_gap(
    apache: ApacheFolder,
) -> None:
    leave_gap(apache, transaction(10, files.error(), time_ms=TIME_MS + 20))
    # What came at 8 and 9 is not known, so the state before it may have been there until 20.
    for time in (7, 8, 9, 19):
        with pytest.raises(HistoryError, match=r"some time between .* \(zxid 0x9\)"):
            data(apache, at(time))
    assert data(apache, at(20)) == (10, b"7")
    past = ApacheSource(apache.path).begin(BEGINNING)
    (gap,) = [one for one in past.steps(NOW) if isinstance(one, Gap)]
    assert (gap.next_time_ms, gap.next_time_ms_max) == (TIME_MS + 7, TIME_MS + 20)


def test_the_log_says_the_time_of_a_snapshot_if_it_has_its_transaction(
    apache: ApacheFolder,
) -> None:
    leave_gap(
        apache,
        transaction(9, files.error(), time_ms=TIME_MS + 15),
        transaction(10, files.error(), time_ms=TIME_MS + 20),
    )
    with pytest.raises(HistoryError, match="there is a gap"):
        data(apache, at(14))
    assert data(apache, at(15)) == (9, b"7")
    past = ApacheSource(apache.path).begin(Moment(zxid=9))
    assert (past.time_ms, past.time_ms_max) == (TIME_MS + 15, TIME_MS + 15)


def test_a_snapshot_behind_the_end_of_the_log_shows_a_gap(apache: ApacheFolder) -> None:
    leave_gap(apache)
    assert data(apache, at(6)) == (6, b"3")
    with pytest.raises(HistoryError, match=r"or later \(zxid 0x9\)"):
        data(apache, at(10**6))
    assert data(apache, NOW) == (9, b"7")
    with pytest.raises(HistoryError, match=r"ends with zxid 0x9 at .* or later"):
        data(apache, Moment(zxid=10))
    steps = list(ApacheSource(apache.path).begin(BEGINNING).steps(NOW))
    assert [one.next_zxid for one in steps if isinstance(one, Gap)] == [9]


def test_a_snapshot_before_the_next_epoch_shows_a_gap(apache: ApacheFolder) -> None:
    first = 1 << 32 | 1
    leave_gap(apache, transaction(first, files.error(), time_ms=TIME_MS + 20))
    steps = list(ApacheSource(apache.path).begin(BEGINNING).steps(NOW))
    assert [one.next_zxid for one in steps if isinstance(one, Gap)] == [9]
    assert data(apache, at(20)) == (first, b"7")


@pytest.mark.parametrize("has_next", [False, True])
def test_a_snapshot_at_the_beginning_of_an_epoch_shows_no_gap(
    apache: ApacheFolder, has_next: bool
) -> None:
    fill(apache)
    apache.snapshot(1 << 32, files.snapshot({"/a": files.Node(b"3")}))
    if has_next:
        apache.log(transaction(1 << 32 | 1, files.error(), time_ms=TIME_MS + 20))
    steps = list(ApacheSource(apache.path).begin(BEGINNING).steps(NOW))
    assert not [one for one in steps if isinstance(one, Gap)]
    assert data(apache, at(19)) == (6, b"3")


def test_snapshots_alone_do_not_say_what_was_at_a_time(apache: ApacheFolder) -> None:
    apache.snapshot(9, files.snapshot({"/a": files.Node(b"7", mtime=TIME_MS + 7)}))
    # As if somebody says that there is really no log.
    source = ApacheSource(apache.path, apache.path)
    for time in (-(10**6), 7, 10**6):
        with pytest.raises(HistoryError, match="Ask for 'now', or for zxid 0x9"):
            state_at(source, at(time))
    for moment in (NOW, Moment(zxid=9)):
        past = state_at(source, moment)
        assert (past.zxid, past.time_ms, past.time_ms_max) == (9, TIME_MS + 7, None)


@pytest.mark.parametrize("moment", [NOW, BEGINNING, Moment(zxid=9), Moment(time_ms=TIME_MS)])
def test_a_log_that_was_forgotten_is_asked_for(apache: ApacheFolder, moment: Moment) -> None:
    apache.snapshot(9, files.snapshot())
    with pytest.raises(HistoryError, match=r"name the dataLogDir of the zoo\.cfg with --log-dir"):
        data(apache, moment)


def test_a_snapshot_is_not_begun_with_if_the_log_lacks_what_it_may_hold(
    apache: ApacheFolder,
) -> None:
    apache.snapshot(9, files.snapshot({"/a": files.Node(b"11")}, last_zxid=11))
    apache.log(transaction(12, files.set_data("/a", b"12", 1)))
    for moment in (Moment(zxid=9), Moment(zxid=12), NOW, BEGINNING):
        with pytest.raises(HistoryError, match="no whole snapshot to begin with"):
            ApacheSource(apache.path).begin(moment)
