"""The disk writer, also where Paddock is plain Python: then the tests compile it themselves."""

from __future__ import annotations

import functools
import importlib.util
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from paddock.log.file.disk_writer import DiskWriter

NAME = "paddock.log.file.disk_writer"
SOURCE = Path(__file__).parents[2] / "src/paddock/log/file/disk_writer.c"
_SHIM_HEADERS = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>
#undef PY_SSIZE_T_CLEAN
"""


def new_disk_writer(shim: str = "") -> DiskWriter:
    """Start a disk writer; with a shim, one that is compiled behind that piece of C.

    A shim stands for the system where that would have to fail.
    """
    return _compiled(shim)() if shim else _disk_writer_class()()


@functools.cache
def _disk_writer_class() -> type[DiskWriter]:
    try:
        from paddock.log.file.disk_writer import DiskWriter
    except ImportError:
        return _compiled("")
    return DiskWriter


def _compiled(shim: str) -> type[DiskWriter]:
    headers = sysconfig.get_path("include")
    if not Path(headers, "Python.h").exists():
        pytest.skip("Python's headers are not installed")
    # It is loaded when the folder goes.
    with tempfile.TemporaryDirectory() as folder:
        before, built = Path(folder, "shim.h"), Path(folder, "disk_writer.so")
        before.write_text(_SHIM_HEADERS + shim if shim else "")
        options = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", f"-I{headers}"]
        options += ["-include", str(before)]
        try:
            subprocess.run(["gcc", "-O1", *options, "-o", built, SOURCE], check=True)
        except FileNotFoundError:
            pytest.skip("gcc is not installed")
        spec = importlib.util.spec_from_file_location(NAME, built)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    found: type[DiskWriter] = module.DiskWriter
    return found
