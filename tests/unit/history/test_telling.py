"""What the steps of a history have changed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from paddock.history.moment import BEGINNING, NOW, Moment
from paddock.history.own import OwnSource
from paddock.history.past import Gap, Past, Step, state_at
from paddock.history.telling import (
    ACL_CHANGED,
    CHANGED,
    CREATED,
    DELETED,
    Below,
    Image,
    NodeChange,
    changes,
    difference,
)
from paddock.protocol import opcodes
from paddock.protocol.requests import CreateRequest, SetDataRequest, VersionRequest
from tests.unit.history.folder import READERS, PastFolder, live
from tests.unit.state.driver import OPEN


@pytest.fixture
def folder(tmp_path: Path) -> PastFolder:
    return PastFolder(tmp_path / "data")


def source_of(folder: PastFolder) -> OwnSource:
    return OwnSource(folder.path / "log", folder.path / "snapshots")


def told(past: Past, below: Below) -> list[tuple[str, bytes, bytes | None, bytes | None]]:
    found = []
    for one in changes(past, NOW, below):
        assert isinstance(one, NodeChange)
        before, after = one.before, one.after
        found.append((one.kind, one.path, before and before.data, after and after.data))
    return found  # type: ignore[return-value]


def test_every_change_is_told_with_what_was_before(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.create(b"/a", b"1")
        client.create(b"/a/b", b"2")
        client.set(b"/a/b", b"3")
        client.set(b"/none", b"")
        client.delete(b"/a/b")
        client.set_acl(b"/a", READERS)
        client.create(b"/ab", b"")
        folder.commit()
        assert told(source_of(folder).begin(BEGINNING), Below(b"/a")) == [
            (CREATED, b"/a", None, b"1"),
            (CREATED, b"/a/b", None, b"2"),
            (CHANGED, b"/a/b", b"2", b"3"),
            (DELETED, b"/a/b", b"3", None),
            (ACL_CHANGED, b"/a", b"1", b"1"),
        ]
        alone = told(source_of(folder).begin(BEGINNING), Below(b"/a", is_recursive=False))
        assert [path for _, path, _, _ in alone] == [b"/a", b"/a"]
        everything = told(source_of(folder).begin(BEGINNING), Below(b"/"))
        assert (CREATED, b"/ab", None, b"") in everything


def test_a_transaction_changes_a_node_once(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.create(b"/a", b"0")
        client.multi(
            (opcodes.SET_DATA, SetDataRequest(b"/a", b"1", -1)),
            (opcodes.SET_DATA, SetDataRequest(b"/a", b"2", -1)),
            (opcodes.CREATE, CreateRequest(b"/gone", b"", OPEN, 0)),
            (opcodes.DELETE, VersionRequest(b"/gone", -1)),
        )
        client.multi(
            (opcodes.DELETE, VersionRequest(b"/a", -1)),
            (opcodes.CREATE, CreateRequest(b"/a", b"new", OPEN, 0)),
        )
        folder.commit()
        assert told(source_of(folder).begin(BEGINNING), Below(b"/")) == [
            (CREATED, b"/a", None, b"0"),
            (CHANGED, b"/a", b"0", b"2"),
            (CREATED, b"/a", b"2", b"new"),
        ]


@pytest.mark.parametrize("seed", range(3))
def test_changes_lead_from_one_state_to_the_other(folder: PastFolder, seed: int) -> None:
    """Applied one after the other they give every later state; so does the difference."""
    with folder:
        live(folder, Random(100 + seed), 60)
        source, below = source_of(folder), Below(b"/")
        zxids = sorted(folder.states)
        begin = zxids[len(zxids) // 3]
        images = below.images(state_at(source, Moment(zxid=begin)))
        first = dict(images)
        last_zxid = begin
        for one in changes(state_at(source, Moment(zxid=begin)), NOW, below):
            assert isinstance(one, NodeChange)
            assert isinstance(one.cause, Step)
            assert one.cause.zxid >= last_zxid
            last_zxid = one.cause.zxid
            assert _own(images.get(one.path)) == _own(one.before)
            if one.after is None:
                del images[one.path]
            else:
                images[one.path] = one.after
        end = below.images(state_at(source, NOW))
        assert {path: _own(image) for path, image in images.items()} == {
            path: _own(image) for path, image in end.items()
        }
        patched = dict(first)
        for path, _, new, _ in difference(first, end):
            if new is None:
                del patched[path]
            else:
                patched[path] = new
        assert {path: _own(image) for path, image in patched.items()} == {
            path: _own(image) for path, image in end.items()
        }


def _own(image: Image | None) -> object:
    """Without the counts of children, which changes of others make."""
    return None if image is None else (image.data, image.acl, image.stat.mzxid, image.stat.version)


def test_behind_a_gap_comes_what_it_hides(folder: PastFolder) -> None:
    with folder:
        client = folder.world.open()
        client.create(b"/a", b"1")
        folder.commit()
        client.set(b"/a", b"2")
        folder.commit()
        client.set(b"/a", b"3")
        folder.snapshot()
        client.set(b"/a", b"4")
        folder.commit()
        folder.segment(2).unlink()
        found = list(changes(source_of(folder).begin(BEGINNING), NOW, Below(b"/a")))
    created, gap, hidden, last = found
    assert isinstance(created, NodeChange)
    assert isinstance(gap, Gap)
    assert isinstance(hidden, NodeChange)
    assert isinstance(last, NodeChange)
    assert hidden.cause is gap
    assert [one.after and one.after.data for one in (created, hidden, last)] == [b"1", b"3", b"4"]
