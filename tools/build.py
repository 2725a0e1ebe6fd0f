"""Build the compiled Paddock that `.venv` runs, into `build/optimized`.

    python -m tools.build               build it now, unless it is current
    python -m tools.build --background  name the present build, and build in the background
    python -m tools.build --hook        let this environment run the build (tools/paddock_build.py)

It is built as `pip install .` does, from a copy of the source and with the packages that are locked
in `requirements/build.txt`. It replaces the old build when it is complete. A build takes two to
three minutes, nearly all of it in one C compiler, and half a gigabyte of memory, so `make serve`
does not wait for it. A build in the background has the lowest priority, and continues when the
server is stopped. Only one build runs at a time.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.packages import environment
from tools.paddock_build import BUILD, STAMP, is_current

ROOT = Path(__file__).resolve().parent.parent
HOOK = "paddock_build"
LOG = Path("build", "optimized.log")
LOCK = Path("build", "optimized.lock")
WORK = Path("build", "optimized.work")
# Everything that a build reads.
INPUTS = ("src", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")


@contextmanager
def only_build(root: Path, *, wait: bool) -> Iterator[bool]:
    """Take the lock of builds; return False if another build runs and we do not wait for it."""
    lock = root / LOCK
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def build(root: Path) -> int:
    """Build it, unless it is current; return the status of pip."""
    with only_build(root, wait=True):
        if is_current(str(root)):
            return 0
        work = root / WORK
        shutil.rmtree(work, ignore_errors=True)
        source, target, old = work / "source", work / "target", work / "old"
        # Edits from now on are not in this build.
        began = time.time_ns()
        source.mkdir(parents=True)
        for name in INPUTS:
            _copy(root / name, source / name)
        # The log has these two lines, also where pip has nothing to say.
        print(f"{time.strftime('%H:%M:%S')} compiling Paddock into {BUILD}", flush=True)
        status = _install(source, target)
        took = (time.time_ns() - began) / 1e9
        outcome = "failed" if status else "is done, and the next start runs it"
        print(f"{time.strftime('%H:%M:%S')} the build {outcome}, after {took:.0f} s", flush=True)
        if status == 0:
            stamp = target / STAMP
            stamp.touch()
            os.utime(stamp, ns=(began, began))
            built = root / BUILD
            if built.exists():
                built.rename(old)
            target.rename(built)
        shutil.rmtree(work, ignore_errors=True)
        return status


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    else:
        shutil.copy2(source, target)


def _install(source: Path, target: Path) -> int:
    """Install the package of `source` into the folder `target`, as pip does."""
    variables = {name: value for name, value in os.environ.items() if name != "PADDOCK_PURE"}
    options = ["--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps"]
    try:
        builder = environment(Path(sys.executable), source.parent / "environment")
        subprocess.run(
            [builder, "-m", "pip", "install", *options, "--target", target, source],
            env={**variables, "PADDOCK_COMPILE": "1"},
            check=True,
        )
    except subprocess.CalledProcessError as failure:
        # It has said why.
        return failure.returncode
    return 0


def build_in_background(root: Path) -> str:
    """Start a build in the background, if it is needed; return a message for the user."""
    if is_current(str(root)):
        return "this is the compiled build"
    with only_build(root, wait=False) as is_free:
        pass
    if is_free:
        with (root / LOG).open("wb") as log:
            subprocess.Popen(
                [sys.executable, "-m", "tools.build", "--low-priority"],
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    return (
        "this is plain Python; the compiled build is being made in the background, in minutes, "
        f"and the next `make serve` runs it (its log: {LOG})"
    )


def install_hook(site_packages: Path) -> None:
    """Make the interpreter of these site-packages import the hook at its start."""
    shutil.copy(ROOT / "tools" / f"{HOOK}.py", site_packages)
    (site_packages / f"{HOOK}.pth").write_text(f"import {HOOK}\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Execute the option."""
    match arguments:
        case ["--hook"]:
            install_hook(Path(sysconfig.get_path("purelib")))
        case ["--background"]:
            print("make serve:", build_in_background(ROOT), file=sys.stderr)
        case ["--low-priority"]:
            os.nice(19)
            return build(ROOT)
        case []:
            return build(ROOT)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
