"""The story of a lock: holders, waiters, and how each lost it."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddock.history.moment import BEGINNING, NOW, Moment
from paddock.history.own import OwnSource
from paddock.history.past import Past, state_at
from paddock.history.stories import lock as k
from paddock.history.stories.lock import LockStory, tell_lock
from paddock.layouts import Request, with_request
from tests.unit.history.folder import PastFolder
from tests.unit.state.driver import Connection

SEQUENTIAL = 3


@pytest.fixture
def folder(tmp_path: Path) -> PastFolder:
    found = PastFolder(tmp_path / "data")
    found.world.open().create(b"/lock")
    return found


def begin(folder: PastFolder) -> Past:
    folder.commit()
    return OwnSource(folder.path / "log", folder.path / "snapshots").begin(BEGINNING)


def told(folder: PastFolder, until: Moment = NOW) -> LockStory:
    return tell_lock(begin(folder), "/lock", until)


def ask(client: Connection, name: bytes = b"lock-") -> bytes:
    """Ask for the lock; return the path of the node."""
    outcome = client.create(b"/lock/" + name, b"who", SEQUENTIAL)
    return outcome.body[4:]


def test_holder_waiters_and_every_way_to_lose_it(folder: PastFolder) -> None:
    with folder:
        clients = [folder.world.open() for _ in range(6)]
        paths = [ask(client) for client in clients]
        clients[0].delete(paths[0])
        folder.world.expire(clients[1].session, 1)
        clients[5].delete(paths[2])
        clients[3].close()
        story = told(folder)
        sessions = [client.session for client in clients]
        assert [one.session for one in story.line] == sessions[4:]
        former = [one for one in story.contenders if one.went is not None]
        assert [(one.session, one.how) for one in former] == [
            (sessions[0], k.RELEASED),
            (sessions[1], k.EXPIRED),
            (sessions[2], k.DELETED_BY_OTHER),
            (sessions[3], k.CLOSED),
        ]
        # Each got it when the one before had lost it.
        for before, after in zip(story.contenders, story.contenders[1:5], strict=False):
            assert after.held is before.went
        assert story.contenders[5].held is None


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        (b"0123456789abcdef0123456789abcdef__lock__", "kazoo"),
        (b"_c_01234567-89ab-cdef-0123-456789abcdef-lock-", "Curator"),
        (b"_c_0123456789abcdef0123456789abcdef-lock-", "Paddock"),
        (b"n_", "another"),
    ],
)
def test_the_layouts_of_others_are_known(folder: PastFolder, name: bytes, layout: str) -> None:
    with folder:
        first, second = folder.world.open(), folder.world.open()
        ask(first, name)
        ask(second, name)
        story = told(folder)
    assert [one.layout for one in story.line] == [layout, layout]
    assert [one.session for one in story.line] == [first.session, second.session]


def test_at_a_moment_it_is_as_it_was(folder: PastFolder) -> None:
    with folder:
        first, second = folder.world.open(), folder.world.open()
        path = ask(first)
        ask(second)
        zxid = folder.world.machine.zxid
        first.delete(path)
        assert [one.session for one in told(folder, Moment(zxid=zxid)).line] == [
            first.session,
            second.session,
        ]
        assert [one.session for one in told(folder).line] == [second.session]


def test_what_was_there_before_the_history_is_in_the_line(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        path = ask(client)
        # Somebody asks the holder to let go, which changes nothing in what it says of itself.
        client.set(path, with_request(b"who", Request("a" * 32, b"another", 5)))
        folder.commit()
        source = OwnSource(folder.path / "log", folder.path / "snapshots")
        past = state_at(source, NOW)
        (held,) = tell_lock(past, "/lock", NOW).line
        assert (held.session, held.came, held.data) == (client.session, None, b"who")


def test_who_held_it_before_the_history_has_held_it_since_then(folder: PastFolder) -> None:
    with folder:
        first, second, third = (folder.world.open() for _ in range(3))
        path = ask(first)
        ask(second)
        before = Moment(zxid=folder.world.machine.zxid)
        # Another one comes, which changes nothing for the holder.
        ask(third)
        folder.commit()
        source = OwnSource(folder.path / "log", folder.path / "snapshots")
        story = tell_lock(state_at(source, before), "/lock", NOW)
        held, *_ = story.lines()
        assert held.startswith(f"/lock: held by session 0x{first.session:x}")
        assert held.endswith("since before this history")
        first.delete(path)
        folder.commit()
        holder, *others = tell_lock(state_at(source, before), "/lock", NOW).lines()
    assert holder.startswith(f"/lock: held by session 0x{second.session:x}")
    assert others[-1].startswith("  held from before this history to ")


def test_what_is_no_contender_does_not_count(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.create(b"/lock/note")
        path = ask(client)
        client.create(b"/lock/deep")
        client.create(b"/lock/deep/n-0000000001")
        assert [one.path for one in told(folder).contenders] == [path]


def test_it_is_told_to_people_and_to_programs(folder: PastFolder) -> None:
    with folder:
        first, second, third = (folder.world.open() for _ in range(3))
        path = ask(first)
        ask(second)
        ask(third)
        third.delete(path)
        story = told(folder)
    lines = list(story.lines())
    assert lines[0].startswith(
        f"/lock: held by session 0x{second.session:x}, lock-0000000001 since"
    )
    assert lines[1].startswith(f"  waits as number 1: session 0x{third.session:x}")
    assert (
        f"by session 0x{first.session:x}, lock-0000000000: deleted by another session" in lines[2]
    )
    assert lines[2].endswith(f"0x{third.session:x}")
    fields = story.fields()
    assert fields["holder"]["session"] == f"0x{second.session:x}"
    assert [one["how"] for one in fields["former"]] == [k.DELETED_BY_OTHER]


def test_a_lock_that_nobody_holds(folder: PastFolder) -> None:
    with folder:
        story = told(folder)
        assert story.is_known
        assert list(story.lines()) == ["/lock: nobody holds it"]


def test_a_lock_that_never_was_is_not_known(folder: PastFolder) -> None:
    with folder:
        past = begin(folder)
        assert not tell_lock(past, "/loc", NOW).is_known
        # One that is gone is.
        client = folder.world.open()
        client.create(b"/other")
        client.delete(b"/other")
        assert tell_lock(begin(folder), "/other", NOW).is_known
        # And one that was there before all that is told.
        source = OwnSource(folder.path / "log", folder.path / "snapshots")
        assert tell_lock(state_at(source, NOW), "/lock", NOW).is_known
        assert tell_lock(state_at(source, NOW), "/", NOW).is_known
