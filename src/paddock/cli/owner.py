"""Run as the owner of a data folder.

The owner of a data folder controls its links, which may lead anywhere: root must not follow them.
And the server could not read files that root writes. So root becomes the owner meanwhile.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def as_owner_of(folder: Path) -> Iterator[None]:
    """Switch to the owner of a folder in this scope, if we are root and the owner is not."""
    owner = folder.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)
