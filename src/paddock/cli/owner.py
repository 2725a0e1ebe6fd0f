"""Working on a data folder as the user that it belongs to.

Whoever owns a data folder says what is in it, and where its log is: a link there may lead anywhere.
Root, who may follow it anywhere, must not; and what root writes the server could not read. So root
becomes the owner of the folder for as long as it takes.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def as_owner_of(folder: Path) -> Iterator[None]:
    """Be the user that a folder belongs to, if we are root and he is not."""
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
