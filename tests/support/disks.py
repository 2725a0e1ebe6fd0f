"""File systems for tests: small ones, and folders that nobody may write to, not even root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """Make a folder a file system of its own, with so much room."""
    folder.mkdir()
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)):
        yield folder


@contextlib.contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Take the permission to write in a folder away, from root by mounting it read-only."""
    if os.geteuid() != 0:
        mode = folder.stat().st_mode
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(mode)
    else:
        with _mounted(folder, "--bind", "-o", "ro", str(folder), str(folder)):
            yield


@contextlib.contextmanager
def _mounted(folder: Path, *arguments: str) -> Iterator[None]:
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
        problem = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError:
        problem = "there is no mount"
    if problem:
        pytest.skip(f"mounting is not possible here: {problem}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
