"""The real disk, where it does more than to pass a call on."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.log.file.disk import Disk

MIB = 1 << 20


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What files are cut to."""
    found: list[int] = []
    truncate = os.truncate

    def spy(path: Path, size: int) -> None:
        found.append(size)
        truncate(path, size)

    monkeypatch.setattr(os, "truncate", spy)
    return found


def file_of(path: Path, size: int) -> Path:
    path.touch()
    os.truncate(path, size)
    return path


def test_large_file_is_removed_from_its_end_in_steps(tmp_path: Path, sizes: list[int]) -> None:
    path = file_of(tmp_path / "large", 10 * MIB + 1)
    sizes.clear()
    Disk().remove(path)
    assert sizes == [6 * MIB + 1, 2 * MIB + 1]
    assert not path.exists()


@pytest.mark.parametrize("size", [0, 1, 4 * MIB])
def test_small_file_is_removed_at_once(tmp_path: Path, sizes: list[int], size: int) -> None:
    path = file_of(tmp_path / "small", size)
    sizes.clear()
    Disk().remove(path)
    assert sizes == []
    assert not path.exists()


@pytest.mark.parametrize("link", [Path.hardlink_to, Path.symlink_to])
def test_what_is_reached_by_another_name_too_remains_as_it_is(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    path = file_of(tmp_path / "large", 10 * MIB)
    other = tmp_path / "other"
    link(other, path)
    Disk().remove(other)
    assert not other.is_symlink()
    assert not other.exists()
    assert path.stat().st_size == 10 * MIB


def test_file_that_may_be_removed_but_not_changed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path / "large", 10 * MIB)

    def refuse(path: Path, size: int) -> None:
        raise PermissionError(errno.EACCES, "not yours", str(path))

    monkeypatch.setattr(os, "truncate", refuse)
    Disk().remove(path)
    assert not path.exists()


def test_removing_what_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Disk().remove(tmp_path / "absent")


def test_space_is_made_from_one_place_to_another(tmp_path: Path) -> None:
    disk = Disk()
    path = tmp_path / "file"
    file = disk.create(path)
    disk.write(file, b"before", 0)
    disk.preallocate(file, 6, 2 * MIB + 5)
    disk.close(file)
    assert path.read_bytes() == b"before" + bytes(2 * MIB - 1)


@pytest.mark.parametrize("taken", [None, 1, 9])
def test_all_pieces_are_written_behind_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int | None
) -> None:
    # More of them than the kernel takes at once; and it may take fewer bytes than it was given.
    pieces = [b"%d," % number for number in range(2_500)]
    whole = os.pwritev
    if taken is not None:
        monkeypatch.setattr(
            os,
            "pwritev",
            lambda file, some, offset: whole(file, [b"".join(some)[:taken]], offset),
        )
    disk = Disk()
    file = disk.create(tmp_path / "pieces")
    disk.write(file, b"before", 0)
    disk.write_parts(file, pieces, 3)
    disk.close(file)
    assert (tmp_path / "pieces").read_bytes() == b"bef" + b"".join(pieces)


def test_a_file_that_was_dropped_is_still_there(tmp_path: Path) -> None:
    disk = Disk()
    file = disk.create(tmp_path / "dropped")
    disk.write(file, b"content" * 1_000, 0)
    disk.sync(file)
    disk.drop(file)
    disk.close(file)
    assert (tmp_path / "dropped").read_bytes() == b"content" * 1_000
