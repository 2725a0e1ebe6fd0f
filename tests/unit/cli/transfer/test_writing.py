"""Exports that are written: interrupted wherever it may be, then resumed, they are the same."""

from __future__ import annotations

import contextlib
import gzip
import io
import resource
import stat
from pathlib import Path
from typing import Any

import pytest

from paddock.cli.transfer.node import TransferError, order_of
from paddock.cli.transfer.writing import LineWriter, part_of, part_writer
from tests.unit.cli.transfer.helpers import NODES, lines_of

REQUEST: dict[str, Any] = {"path": "/app", "acls": True}
TEXT = b"".join(lines_of())


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "app.jsonl"


def write(target: Path, *, resume: bool = False) -> None:
    """Write an export, or what is missing of one."""
    with part_writer(target, REQUEST, resume=resume) as writer:
        for node in NODES:
            if writer.last is None or order_of(node.path) > order_of(writer.last):
                writer.write(node)
        writer.finish()


class InterruptedByTestError(Exception):
    pass


def interrupt(target: Path, count: int) -> None:
    """Write so many nodes and no more."""
    with contextlib.suppress(InterruptedByTestError):
        with part_writer(target, REQUEST, resume=False) as writer:
            for node in NODES[:count]:
                writer.write(node)
            raise InterruptedByTestError


def test_a_stream_has_the_same_lines_as_a_file(target: Path) -> None:
    stream = io.BytesIO()
    writer = LineWriter(stream, acls=True)
    for node in NODES:
        writer.write(node)
    writer.finish()
    write(target)
    assert stream.getvalue() == target.read_bytes() == TEXT


def test_nothing_is_left_beside_a_file_that_is_whole(target: Path) -> None:
    write(target)
    assert [*target.parent.iterdir()] == [target]


def test_only_its_owner_can_read_it(target: Path) -> None:
    write(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_name_that_ends_with_gz_is_compressed_always_to_the_same_bytes(target: Path) -> None:
    first, second = target.with_name("first.gz"), target.with_name("second.gz")
    write(first)
    write(second)
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()) == TEXT


def test_until_it_is_whole_there_is_no_such_file(target: Path) -> None:
    interrupt(target, 3)
    assert not target.exists()
    assert part_of(target).exists()


@pytest.mark.parametrize("name", ["app.jsonl", "app.jsonl.gz"])
def test_wherever_it_is_interrupted_the_resumed_export_is_the_same(
    tmp_path: Path, name: str
) -> None:
    target = tmp_path / name
    write(target)
    whole = target.read_bytes()
    target.unlink()
    interrupt(target, len(NODES))
    part = part_of(target).read_bytes()
    assert part.count(b"\n") == len(NODES) + 2
    # Within lines, and right before and behind their ends.
    ends = {place for place, byte in enumerate(part) if byte == ord("\n")}
    for length in sorted({*range(0, len(part), 20), *ends, *(end + 1 for end in ends)}):
        part_of(target).write_bytes(part[:length])
        write(target, resume=True)
        assert target.read_bytes() == whole
        assert not part_of(target).exists()


def test_nothing_is_left_of_a_line_that_was_not_whole(target: Path) -> None:
    interrupt(target, len(NODES))
    with part_of(target).open("ab") as part:
        part.write(b'{"path":"/c","data":"' + b"x" * 10_000)
    write(target, resume=True)
    assert target.read_bytes() == TEXT


def test_without_a_part_there_is_nothing_to_resume_and_it_begins(target: Path) -> None:
    write(target, resume=True)
    assert target.read_bytes() == TEXT


def test_beginning_anew_forgets_the_part(target: Path) -> None:
    part_of(target).write_bytes(b"something long that was there before" * 100)
    write(target)
    assert target.read_bytes() == TEXT


def test_a_part_of_something_else_is_not_resumed(target: Path) -> None:
    interrupt(target, 2)
    with (
        pytest.raises(TransferError, match="something else was being exported; --overwrite"),
        part_writer(target, {"path": "/other", "acls": True}, resume=True),
    ):
        pytest.fail("it was resumed")
    assert part_of(target).exists()


def test_a_damaged_part_is_not_resumed(target: Path) -> None:
    interrupt(target, 3)
    part = bytearray(part_of(target).read_bytes())
    part[part.index(b"blue")] ^= 1
    part_of(target).write_bytes(part)
    with (
        pytest.raises(TransferError, match=r"line 4, byte .* checksum .*--overwrite begins anew"),
        part_writer(target, REQUEST, resume=True),
    ):
        pytest.fail("it was resumed")


def test_a_full_disk_is_told_with_the_file_and_the_export_goes_on_when_there_is_room(
    target: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (250, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write(target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(part_of(target))
    assert part_of(target).stat().st_size == 250
    write(target, resume=True)
    assert target.read_bytes() == TEXT


def test_two_exports_do_not_write_the_same_file(target: Path) -> None:
    with part_writer(target, REQUEST, resume=False) as writer:
        writer.write(NODES[0])
        with (
            pytest.raises(TransferError, match="another export is writing it"),
            part_writer(target, REQUEST, resume=True),
        ):
            pytest.fail("both write")


def test_an_export_that_has_not_begun_leaves_nothing(target: Path) -> None:
    interrupt(target, 0)
    assert [*target.parent.iterdir()] == []
