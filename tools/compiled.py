"""Check that a compiled build really is compiled: `python tools/compiled.py`.

It imports every module that pyproject.toml lists for mypyc, from wherever the interpreter finds
it, and fails if one of them is Python source.
"""

import importlib
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def compiled_modules() -> list[str]:
    """Return the dotted names of the modules that mypyc is to compile."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for pattern in settings["tool"]["paddock"]["compiled"]
        for path in ROOT.glob(pattern)
        if path.name != "__init__.py"
    }
    return sorted(found)


def main() -> int:
    """Report each listed module that is not compiled; the status is 1 if there is one."""
    names = compiled_modules()
    pure = [
        f"{name}: {file}"
        for name in names
        if not (file := importlib.import_module(name).__file__ or "").endswith((".so", ".pyd"))
    ]
    for line in pure:
        print(f"not compiled: {line}", file=sys.stderr)
    print(f"{len(names) - len(pure)} of {len(names)} modules are compiled")
    return 1 if pure else 0


if __name__ == "__main__":
    sys.exit(main())
