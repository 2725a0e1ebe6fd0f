"""This builds Paddock: pure Python, unless PADDOCK_COMPILE=1 asks mypyc to compile the hot modules.

PADDOCK_PURE=1 wins over it. Everything else about the package stands in pyproject.toml, and so
does the list of the compiled modules.
"""

import os
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


def extensions() -> list[Extension]:
    """Return the compiled modules, none for a pure build."""
    if os.environ.get("PADDOCK_COMPILE") != "1" or os.environ.get("PADDOCK_PURE") == "1":
        return []
    sources = compiled_sources()
    if not sources:
        return []
    try:
        from mypyc.build import mypycify
    except ImportError:
        raise SystemExit("PADDOCK_COMPILE=1 needs mypy in the building environment") from None
    return list(mypycify(sources, opt_level=os.environ.get("PADDOCK_OPT_LEVEL", "3")))


if __name__ == "__main__":
    setup(ext_modules=extensions())
