"""What is unpacked of an archive, and that nobody's archive does anything else."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from paddock.storage.maintenance.archive import unpack

FILES = {
    "format": b"1\n",
    "log/1.log": b"record",
    "history/log/1.log": b"",
    "a b/ü..": b"x" * 70000,
}


def member(name: str, **values: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for key, value in values.items():
        setattr(made, key, value)
    return made


def packed(*members: tarfile.TarInfo, **files: bytes) -> tarfile.TarFile:
    """Return an open archive of files, and of members whose contents are zeros."""
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as archive:
        for name, content in files.items():
            archive.addfile(member(name, size=len(content)), io.BytesIO(content))
        for one in members:
            archive.addfile(one, io.BytesIO(bytes(one.size)))
    result.seek(0)
    return tarfile.open(fileobj=result)


def found(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_files_are_unpacked_with_their_folders(tmp_path: Path) -> None:
    with packed(**FILES) as archive:
        unpack(archive, tmp_path / "all")
    assert found(tmp_path / "all") == FILES


def test_only_what_is_wanted_is_unpacked(tmp_path: Path) -> None:
    link = member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    with packed(link, **FILES) as archive:
        unpack(archive, tmp_path / "some", lambda name: name.startswith("history/"))
    assert found(tmp_path / "some") == {"history/log/1.log": b""}


def test_a_file_is_for_its_owner_whatever_the_archive_says(tmp_path: Path) -> None:
    # Open to all, with the rights of its owner, and from another time.
    open_to_all = member("a/b/c", size=1, mode=0o7777, uid=12345, gid=12345, mtime=1)
    before = os.umask(0)
    try:
        with packed(open_to_all) as archive:
            unpack(archive, tmp_path / "new")
    finally:
        os.umask(before)
    made = tmp_path / "new" / "a" / "b" / "c"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert {stat.S_IMODE(one.stat().st_mode) for one in list(made.parents)[:3]} == {0o700}
    assert (made.stat().st_uid, made.stat().st_gid) == (os.getuid(), os.getgid())
    assert made.stat().st_mtime > 1


@pytest.mark.parametrize(
    "hostile",
    [
        *(
            member(name, size=1)
            for name in ("../out", "a/../../out", "/out", "a//b", "a/.", "..", ".", "./out")
        ),
        member("a\0b", size=1, pax_headers={"path": "a\0b"}),
        member("link", type=tarfile.SYMTYPE, linkname="../out"),
        member("link", type=tarfile.LNKTYPE, linkname="../out"),
        member("folder", type=tarfile.DIRTYPE, mode=0o777),
        member("pipe", type=tarfile.FIFOTYPE),
        member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
        member("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0),
    ],
    ids=lambda one: f"{one.name!r} {one.type}",
)
def test_what_is_no_file_below_the_folder_is_refused(
    hostile: tarfile.TarInfo, tmp_path: Path
) -> None:
    (tmp_path / "out").write_bytes(b"as it was")
    with packed(hostile) as archive, pytest.raises(tarfile.ExtractError, match="is not a file"):
        unpack(archive, tmp_path / "new")
    assert found(tmp_path) == {"out": b"as it was"}
    assert not list((tmp_path / "new").glob("**/*"))


def test_holes_are_refused(tmp_path: Path) -> None:
    # A file of a tebibyte in 512 bytes, as GNU's tar writes it.
    header = bytearray(member("holes", type=tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\0" * 2
    header[483:495] = b"20000000000\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    with tarfile.open(fileobj=io.BytesIO(bytes(header) + bytes(1024))) as archive:
        assert archive.getmembers()[0].size == 0o20000000000
        with pytest.raises(tarfile.ExtractError, match="'holes' is not a file"):
            unpack(archive, tmp_path)
    assert found(tmp_path) == {}


def test_nothing_that_is_there_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"as it was")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "link").symlink_to("../out")
    for name in "link", "file":
        (tmp_path / "new" / "file").write_bytes(b"as it was")
        with packed(**{name: b"changed"}) as archive, pytest.raises(FileExistsError):
            unpack(archive, tmp_path / "new")
    assert set(found(tmp_path).values()) == {b"as it was"}
    with packed(member("twice", size=1), twice=b"first") as archive:
        with pytest.raises(FileExistsError):
            unpack(archive, tmp_path / "new")
    assert (tmp_path / "new" / "twice").read_bytes() == b"first"


def test_an_archive_that_is_cut_is_an_error(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.addfile(member("file", size=70000), io.BytesIO(bytes(70000)))
    with tarfile.open(fileobj=io.BytesIO(whole.getvalue()[:60000])) as archive:
        with pytest.raises(tarfile.TarError):
            unpack(archive, tmp_path)
