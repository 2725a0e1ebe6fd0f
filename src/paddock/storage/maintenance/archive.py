"""The files of a tar archive, unpacked without trust in who has made it.

`tarfile` has filters for that, but not in every release of Python 3.11. The rules:

* Only files are unpacked, and each is a new one below the folder. Anything else is an error: a
  link, a device, holes that a few bytes stand for, a name that leads elsewhere, a second file of
  the same name.
* Of a member only the name and the content count. A file is for its owner alone, and so is a
  folder, whatever the archive says.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path


def unpack(
    archive: tarfile.TarFile, folder: Path, is_wanted: Callable[[str], bool] | None = None
) -> None:
    """Write the files of an archive into a folder: all, or those whose names are wanted.

    Raises tarfile.TarError, OSError, or EOFError for an archive that is cut short.
    """
    for member in archive:
        if is_wanted is not None and not is_wanted(member.name):
            continue
        if not member.isfile() or member.issparse() or not _leads_below(member.name):
            raise tarfile.ExtractError(f"{member.name!r} is not a file that can be unpacked")
        content = archive.extractfile(member)
        assert content is not None, "it is a file"
        for above in reversed(Path(member.name).parents):
            (folder / above).mkdir(mode=0o700, exist_ok=True)
        with content, open(folder / member.name, "xb", opener=_for_its_owner) as file:
            shutil.copyfileobj(content, file)


def _leads_below(name: str) -> bool:
    return "\0" not in name and not {"", ".", ".."}.intersection(name.split("/"))


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
