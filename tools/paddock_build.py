"""Let the interpreter of `.venv` run the compiled build, as long as it is current.

`make` installs the source into `.venv` in editable form, and copies this module beside it, with a
`.pth` file that imports it whenever that interpreter starts. If `build/optimized` was built from
the present source, it goes on `sys.path` in front of `src`: the command `paddock`, the shell and
every program then run compiled. After an edit they run the source, until the next build. Folders in
PYTHONPATH come first, and PADDOCK_PURE=1 always selects the source.

It runs at each start of the interpreter, so it imports nothing but `os` and `sys`.
"""

import os
import sys

BUILD = os.path.join("build", "optimized")
STAMP = ".built"


def is_current(root: str) -> bool:
    """Return whether there is a build in `root` that began after the last edit of its source."""
    try:
        built = os.stat(os.path.join(root, BUILD, STAMP)).st_mtime_ns
        others = (os.path.join(root, name) for name in ("setup.py", "pyproject.toml"))
        return max(map(_changed, others)) <= built and not _is_newer(
            os.path.join(root, "src"), built
        )
    except OSError:
        return False


def _changed(path: str) -> int:
    return os.stat(path).st_mtime_ns


def _is_newer(folder: str, built: int) -> bool:
    """Return whether a module below `folder` was changed after `built`."""
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for one in entries:
                if one.name.endswith((".py", ".c")):
                    if one.stat().st_mtime_ns > built:
                        return True
                elif one.name != "__pycache__" and one.is_dir():
                    folders.append(one.path)
    return False


def use(root: str, path: list[str], environment: "os._Environ[str] | dict[str, str]") -> None:
    """Put the build of `root` on `path` in front of the source, if it is current."""
    source = os.path.join(root, "src")
    asked_for = environment.get("PYTHONPATH", "").split(os.pathsep)
    if environment.get("PADDOCK_PURE") == "1" or source in asked_for or source not in path:
        return
    if is_current(root):
        path.insert(path.index(source), os.path.join(root, BUILD))


if __name__ == "paddock_build":
    use(os.path.dirname(sys.prefix), sys.path, os.environ)
