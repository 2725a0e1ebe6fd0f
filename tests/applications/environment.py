"""The programs of others: each in an environment of its own, with the versions that are locked.

An environment is made once, in `build/applications`, and again when its lock or Python has changed.
What cannot be installed raises `ServerMissingError`, which says why.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from tests.support.documents import ROOT, Page
from tests.support.server import ServerFailedError, ServerMissingError

T = TypeVar("T")

#: The page that says how to run them. Its blocks are their configuration.
PAGE: Final = "docs/how-to/run-applications.md"
INSTALL_DEADLINE_S: Final = 600.0
#: How long anything may take, on a busy machine.
DEADLINE_S: Final = 240.0

_POLL_S: Final = 0.2
_FOLDER: Final = ROOT / "build" / "applications"
_LOCKS: Final = ROOT / "requirements"


def installed(name: str, python: str | None = None) -> Path:
    """Return the folder with the programs of an environment, which is made where it is missing."""
    python = python or str(Path(sys.base_prefix, "bin", "python3"))
    # Packages without a wheel are built with the setuptools of build.txt, so it comes first.
    locks = [_LOCKS / "build.txt", _LOCKS / f"applications-{name}.txt"]
    version = hashlib.sha256(python.encode())
    for lock in locks:
        version.update(lock.read_bytes())
    folder = _FOLDER / name
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text() != version.hexdigest():
        print(f"\napplications: installing {name} into {folder.relative_to(ROOT)}", flush=True)
        _install([python, "-m", "venv", "--clear", str(folder)], name)
        for lock in locks:
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            pip += ["--disable-pip-version-check", "--require-hashes", "--no-build-isolation"]
            _install([*pip, "--requirement", str(lock)], name)
        stamp.write_text(version.hexdigest())
    return folder / "bin"


def _install(command: Sequence[str], name: str) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_DEADLINE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise ServerMissingError(f"{name} cannot be installed: {failure}") from failure
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        why = said[0] if said else done.stderr[-500:]
        raise ServerMissingError(f"{name} cannot be installed: {why}")


def variables(programs: Path) -> dict[str, str]:
    """Return our environment with the programs of another one found first, and not our source."""
    ours = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    return {**ours, "PATH": path, "PYTHONUNBUFFERED": "1"}


def block(page: Page, title: str) -> str:
    """Return the block of a page that has this title."""
    (found,) = (one.text for one in page.every_block() if one.title == title)
    return found


def wait_for(find: Callable[[], T | None], what: str, story: Callable[[], str] = str) -> T:
    """Wait for something that nobody announces; if it does not come, say what is in the logs."""
    limit = time.monotonic() + DEADLINE_S
    while (found := find()) is None:
        if time.monotonic() > limit:
            raise ServerFailedError(f"it took too long until {what}\n{story()}")
        # Asking starts processes, some of them three.
        time.sleep(_POLL_S)
    return found


def wait_until(condition: Callable[[], bool], what: str, story: Callable[[], str] = str) -> None:
    """Wait until something holds that nobody announces."""
    wait_for(lambda: condition() or None, what, story)


def observe(application: str, what: str) -> None:
    """Print what was seen, which nothing is asserted of."""
    print(f"\n{application}: {what}", flush=True)
