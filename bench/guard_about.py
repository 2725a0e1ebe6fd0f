"""The conditions of instruction counts, besides our own code."""

from __future__ import annotations

import platform
import subprocess
import sys
import sysconfig
from importlib.metadata import version

from paddock.server.connections import connection


def combination() -> dict[str, str]:
    """Return the conditions under which alone counts can be compared."""
    python = f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}"
    is_compiled = not (connection.__file__ or "").endswith(".py")
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": python,
        "interpreter": " ".join([platform.python_compiler(), *_interpreter_options()]),
        "build": "compiled" if is_compiled else "pure",
        "compiler": _compiler() if is_compiled else "",
    }


def versions() -> dict[str, str]:
    """Return versions that may change the counts, to explain a difference."""
    return {
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
        **{name: version(name) for name in ("isal", "librt", "mypy")},
    }


def _interpreter_options() -> list[str]:
    """Return the options that the interpreter was built with and that change its instructions."""
    flags = str(sysconfig.get_config_var("PY_CORE_CFLAGS") or "").split()
    arguments = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    known = ("--enable-shared", "--enable-optimizations", "--with-lto")
    found = [flag for flag in flags if flag.startswith(("-O", "-f", "-m"))]
    found += [option for option in known if option in arguments]
    return list(dict.fromkeys(found))


def _compiler() -> str:
    """Name the compiler that extension modules are built with, and its major version."""
    command = str(sysconfig.get_config_var("CC") or "cc").split()[0]
    try:
        found = subprocess.run([command, "-dumpversion"], capture_output=True, text=True)
    except OSError:
        return command
    return f"{command} {found.stdout.strip().partition('.')[0]}"
