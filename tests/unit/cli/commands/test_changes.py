"""What `paddock changes` keeps in a checkpoint, and what it takes for a zxid."""

import json
from pathlib import Path

import click
import pytest

from paddock.cli.commands.changes import Checkpoint, Zxid
from paddock.cli.output import CannotBeDone
from paddock.client.operations.feeds import FeedChange
from paddock.client.states import FeedKind


def change(zxid: int, *, is_last: bool = True) -> FeedChange:
    return FeedChange(FeedKind.DELETED, "/a/b", zxid, None, None, is_last)


def test_a_checkpoint_says_where_to_go_on_also_within_a_transaction(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    checkpoint = Checkpoint(file, "/a", 4)
    for one, expected in [
        (change(5), (5, 0)),
        (change(6, is_last=False), (5, 1)),
        (change(6, is_last=False), (5, 2)),
        (change(6), (6, 0)),
    ]:
        checkpoint.pass_(one)
        # Whatever it would begin with, the file says more.
        again = Checkpoint(file, "/a", None)
        assert (again.zxid, again.lines) == expected
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"zxid": "1", "lines": 0, "path": "/a"}', '{"zxid": 1, "path": "/a"}', "{"]
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "checkpoint"
    file.write_text(text)
    with pytest.raises(CannotBeDone, match="is no checkpoint of `paddock changes`"):
        Checkpoint(file, "/a", None)


def test_a_checkpoint_of_another_path_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_text(json.dumps({"zxid": 1, "lines": 0, "path": "/other"}))
    with pytest.raises(CannotBeDone, match="is a checkpoint of /other, and not of /a"):
        Checkpoint(file, "/a", None)


def test_a_checkpoint_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotBeDone):
        Checkpoint(tmp_path, "/a", None)


def test_a_checkpoint_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "checkpoint"
    with pytest.raises(CannotBeDone) as refused:
        Checkpoint(file, "/a", 4).pass_(change(5))
    assert str(refused.value) == f"{file}: cannot be written: No such file or directory"


@pytest.mark.parametrize(
    ("text", "zxid"), [("now", None), ("0", 0), ("12", 12), ("0x100000002", 0x100000002)]
)
def test_a_zxid_is_decimal_or_hexadecimal(text: str, zxid: int | None) -> None:
    assert Zxid().convert(text, None, None) == zxid


@pytest.mark.parametrize("text", ["yesterday", "-1", "", "0x8000000000000000", "1.5"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no zxid, such as 0x100000002, and not `now`"):
        Zxid().convert(text, None, None)
