"""Check that a compiled build really is compiled: `python tools/compiled.py`.

It imports every module that pyproject.toml lists for mypyc, and on Linux what is written in C, from
wherever the interpreter finds it, and fails if one of them is Python source.
"""

import importlib
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def compiled_modules() -> list[str]:
    """Return the dotted names of the modules that mypyc is to compile."""
    found = {
        path
        for pattern in _settings()["compiled"]
        for path in ROOT.glob(pattern)
        if path.name != "__init__.py"
    }
    return sorted(map(_name, found))


def modules_in_c() -> list[str]:
    """Return the dotted names of the modules that are written in C."""
    return [_name(ROOT / source) for source in _settings()["in-c"]]


def _settings() -> dict[str, list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = settings["tool"]["paddock"]
    return found


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)


def _file(name: str) -> str:
    """Import a module and return its file; one in C is missing where nothing is built."""
    try:
        return importlib.import_module(name).__file__ or ""
    except ModuleNotFoundError:
        return "missing"


def main() -> int:
    """Report each listed module that is not compiled; the status is 1 if there is one."""
    names = [*compiled_modules(), *(modules_in_c() if sys.platform == "linux" else ())]
    pure = [
        f"{name}: {file}" for name in names if not (file := _file(name)).endswith((".so", ".pyd"))
    ]
    for line in pure:
        print(f"not compiled: {line}", file=sys.stderr)
    print(f"{len(names) - len(pure)} of {len(names)} modules are compiled")
    return 1 if pure else 0


if __name__ == "__main__":
    sys.exit(main())
