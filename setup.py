"""This builds Paddock: pure Python, unless PADDOCK_COMPILE=1 asks mypyc to compile the hot modules.

PADDOCK_PURE=1 wins over it. Everything else about the package stands in pyproject.toml, and so
does the list of the compiled modules.
"""

import os
import sys
import tomllib
from pathlib import Path

from setuptools import Extension, setup


def compiled_sources() -> list[str]:
    """Return the files that `tool.paddock.compiled` names, `__init__.py` left out."""
    settings = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    found = {
        str(path)
        for pattern in settings["tool"]["paddock"]["compiled"]
        for path in Path().glob(pattern)
        if path.name != "__init__.py"
    }
    return sorted(found)


def is_compiled() -> bool:
    """Tell whether the modules are to be compiled."""
    return os.environ.get("PADDOCK_COMPILE") == "1" and os.environ.get("PADDOCK_PURE") != "1"


def extensions() -> list[Extension]:
    """Return the compiled modules, none for a pure build or when only the metadata is asked for."""
    if not is_compiled() or {"egg_info", "dist_info"} & set(sys.argv):
        return []
    try:
        from mypyc.build import mypycify
    except ImportError:
        raise SystemExit("PADDOCK_COMPILE=1 needs mypy in the building environment") from None
    # What they import may be in want of packages that are there to run it, not to build it.
    flags = ["--follow-imports=silent", "--ignore-missing-imports"]
    optimization = os.environ.get("PADDOCK_OPT_LEVEL", "3")
    return list(mypycify([*flags, *compiled_sources()], opt_level=optimization))


if __name__ == "__main__":
    setup(ext_modules=extensions(), setup_requires=["mypy>=2.4"] if is_compiled() else [])
