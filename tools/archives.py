"""Archives that do not tell when, where and by whom they were made, and how two of them differ.

setuptools writes a wheel with the time of SOURCE_DATE_EPOCH, but a source distribution with the
times, the owners and the modes of the files that it finds. `normalize` writes it anew: members in
the order of their names, one time, no owner, and two modes, that of programs and that of the rest.
"""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

# What a member has beside its name: mode, time, contents.
Member = tuple[int, object, bytes]


def normalize(sdist: Path, time_s: int) -> None:
    """Write a source distribution again, so that it depends on the contents of its files alone."""
    packed = io.BytesIO()
    with (
        tarfile.open(sdist) as old,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, time_s
            is_open = member.isdir() or bool(member.mode & 0o100)
            plain.mode = 0o755 if is_open else 0o644
            if not (member.isdir() or member.isfile()):
                raise ValueError(f"{sdist.name}: {member.name} is neither a file nor a folder")
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=time_s) as squeezed:
        squeezed.write(packed.getvalue())


def members(archive: Path) -> dict[str, Member]:
    """Return what an archive holds, by name."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            return {
                one.filename: (one.external_attr >> 16, one.date_time, wheel.read(one))
                for one in wheel.infolist()
            }
    found: dict[str, Member] = {}
    with tarfile.open(archive) as sdist:
        for one in sdist:
            data = sdist.extractfile(one) if one.isfile() else None
            found[one.name] = (one.mode, one.mtime, data.read() if data else b"")
    return found


def compiled_members_with(archive: Path, text: str) -> list[str]:
    """Return the compiled modules that contain a text, such as the folder of the build."""
    found = members(archive).items()
    return [name for name, one in found if name.endswith(".so") and text.encode() in one[2]]


def differences(left: Path, right: Path) -> list[str]:
    """Return how two archives differ, one line for each member; none if they are equal bytes."""
    if left.read_bytes() == right.read_bytes():
        return []
    ours, theirs = members(left), members(right)
    lines = [f"{name}: only in one of them" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        one, other = ours[name], theirs[name]
        if one[2] != other[2]:
            lines.append(f"{name}: {_first_difference(one[2], other[2])}")
        elif one != other:
            lines.append(f"{name}: mode {one[0]:o} and {other[0]:o}, time {one[1]} and {other[1]}")
    return lines or ["the same members, in another order or compressed in another way"]


def _first_difference(one: bytes, other: bytes) -> str:
    pairs = zip(one, other, strict=False)
    at = next((at for at, (left, right) in enumerate(pairs) if left != right), None)
    sizes = f"{len(one)} and {len(other)} bytes"
    return f"{sizes}, different from byte {min(len(one), len(other)) if at is None else at} on"
