"""Archives that depend on nothing but their contents, and what is said of two that differ."""

import io
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from tools.archives import compiled_members_with, differences, members, normalize

TIME_S = 1_700_000_000
FILES = {"p-1/b.py": b"two", "p-1/a.py": b"one"}


def tar(path: Path, *, owner: int, mode: int, files: dict[str, bytes] = FILES) -> Path:
    """Write an sdist as setuptools does: with whatever the files happen to have."""
    with tarfile.open(path, "w:gz") as archive:
        folder = tarfile.TarInfo("p-1")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.uid, member.uname = len(data), mode, owner, f"u{owner}"
            member.mtime = time.time() + owner
            archive.addfile(member, io.BytesIO(data))
    return path


def test_every_builder_gets_the_same_bytes(tmp_path: Path) -> None:
    one = tar(tmp_path / "one.tar.gz", owner=1, mode=0o664)
    other = tar(tmp_path / "other.tar.gz", owner=2, mode=0o600, files=dict(reversed(FILES.items())))
    assert differences(one, other) != []
    for path in (one, other):
        normalize(path, TIME_S)
    assert differences(one, other) == []
    assert members(one) == {
        "p-1": (0o755, TIME_S, b""),
        "p-1/a.py": (0o644, TIME_S, b"one"),
        "p-1/b.py": (0o644, TIME_S, b"two"),
    }
    with tarfile.open(one) as archive:
        assert [(member.uid, member.uname) for member in archive] == [(0, "")] * 3


def test_programs_stay_programs(tmp_path: Path) -> None:
    path = tar(tmp_path / "one.tar.gz", owner=1, mode=0o700)
    normalize(path, TIME_S)
    assert members(path)["p-1/a.py"][0] == 0o755


def test_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("p-1/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(ValueError, match="p-1/link is neither a file nor a folder"):
        normalize(path, TIME_S)


def wheel(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(
                zipfile.ZipInfo(name.replace("_so", ".so"), (2020, 1, 1, 0, 0, 0)), data
            )
    return path


def test_each_member_that_differs_is_named(tmp_path: Path) -> None:
    one = wheel(tmp_path / "one.whl", same=b"1", code_so=b"abc", gone=b"")
    other = wheel(tmp_path / "other.whl", same=b"1", code_so=b"abXd")
    assert differences(one, other) == [
        "gone: only in one of them",
        "code.so: 3 and 4 bytes, different from byte 2 on",
    ]
    longer = wheel(tmp_path / "longer.whl", same=b"1", code_so=b"abc_", gone=b"")
    assert differences(one, longer) == ["code.so: 3 and 4 bytes, different from byte 3 on"]


def test_modes_and_times_and_order_count(tmp_path: Path) -> None:
    one = wheel(tmp_path / "one.whl", first=b"1", second=b"2")
    swapped = wheel(tmp_path / "swapped.whl", second=b"2", first=b"1")
    assert differences(one, swapped) == [
        "the same members, in another order or compressed in another way"
    ]
    later = tmp_path / "later.whl"
    with zipfile.ZipFile(later, "w") as archive:
        archive.writestr(zipfile.ZipInfo("first", (2021, 1, 1, 0, 0, 0)), b"1")
        archive.writestr(zipfile.ZipInfo("second", (2020, 1, 1, 0, 0, 0)), b"2")
    (line,) = differences(one, later)
    assert line.startswith("first: mode ")


def test_folders_in_compiled_modules_are_found_and_others_may_be_named(tmp_path: Path) -> None:
    path = wheel(tmp_path / "one.whl", code_so=b"\0/home/me/build\0", text=b"/home/me/build")
    assert compiled_members_with(path, "/home/me") == ["code.so"]
    assert compiled_members_with(path, "/home/you") == []
