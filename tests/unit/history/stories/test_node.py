"""The story of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddock.history.moment import BEGINNING, NOW, Moment
from paddock.history.own import OwnSource
from paddock.history.stories.node import NodeStory, tell_node
from tests.unit.history.folder import PastFolder


@pytest.fixture
def folder(tmp_path: Path) -> PastFolder:
    return PastFolder(tmp_path / "data")


def told(folder: PastFolder, path: str, limit: int = 3, until: Moment = NOW) -> NodeStory:
    folder.commit()
    source = OwnSource(folder.path / "log", folder.path / "snapshots")
    return tell_node(source.begin(BEGINNING), path, until, limit)


def test_who_made_it_and_who_changed_it_last(folder: PastFolder) -> None:
    with folder:
        maker, writer = folder.world.open(), folder.world.open()
        maker.create(b"/a", b"0")
        for number in range(1, 8):
            writer.set(b"/a", b"%d" % number)
        story = told(folder, "/a")
        assert story.count == 8
        first, made, left_out, *last = story.lines()
        assert first == "/a: version 7"
        assert f"created by session 0x{maker.session:x}" in made
        assert left_out == "  … 4 changes"
        assert len(last) == 3
        assert all(f"changed by session 0x{writer.session:x}" in line for line in last)
        fields = story.fields()
        assert (fields["exists"], fields["version"], fields["changes"]) == (True, 7, 8)
        assert told(folder, "/a", until=Moment(zxid=3)).count == 1


def test_how_it_went(folder: PastFolder) -> None:
    with folder:
        owner = folder.world.open()
        owner.create(b"/e", b"", 1)
        assert f"ephemeral, of session 0x{owner.session:x}" in next(told(folder, "/e").lines())
        folder.world.expire(owner.session, 1)
        story = told(folder, "/e")
        assert story.image is None
        first, _, last = story.lines()
        assert first == "/e: not there"
        assert last.endswith(f"by the end of its session 0x{owner.session:x}, which expired")
        assert not told(folder, "/none").is_known
