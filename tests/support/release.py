"""Which release of Apache ZooKeeper a judge is: its jar says so. What to expect of it follows.

Debian 12 has 3.8.0, Debian 13 has 3.9.3, its next suite 3.9.6; and 3.9.5 is fetched. These have
been tried. Any other is judged as the newest one known before it.
"""

from __future__ import annotations

import re
import zipfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PROPERTIES = "META-INF/maven/org.apache.zookeeper/zookeeper/pom.properties"
_VERSION = re.compile(r"^version=(\d+)\.(\d+)\.(\d+)", re.MULTILINE)


class Release(NamedTuple):
    """A release; `release >= (3, 9)` asks whether it is of 3.9 or later."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


@cache
def release_of(jar: Path) -> Release:
    """Return the release of a server's jar. (Debian's have no version in their manifests.)"""
    with zipfile.ZipFile(jar) as opened:
        found = _VERSION.search(opened.read(_PROPERTIES).decode())
    if found is None:
        raise ValueError(f"{jar} does not tell its release")
    return Release(*map(int, found.groups()))
