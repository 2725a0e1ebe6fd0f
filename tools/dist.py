"""Make a release in `dist`, and try each file of it: `python -m tools.dist 3.11 3.12 3.13`.

    paddock_zk-VERSION.tar.gz         the source distribution, of the last commit
    paddock_zk-VERSION-cp311-….whl    a compiled wheel for each Python
    paddock_zk-VERSION.cdx.json       the SBOM (tools/sbom.py)
    SHA256SUMS                        for `sha256sum --check`

For each Python, the wheel is installed into an empty environment with all extras, at the versions
of `requirements/dev.txt`, and the source distribution into another one, at the newest versions, as
`pip install` does it for users. Both have to pass tools/smoke.py, and both have to be compiled. A
Python that is not installed here is named and left out. Nothing is uploaded.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import sbom
from tools.archives import compiled_members_with
from tools.lock import FOLDER, OF_TESTS, ROOT, constraints, settings
from tools.packages import build_sdist, build_wheel, commit_time_s, environment, interpreter
from tools.smoke import smoke

DIST = ROOT / "dist"
# What the versions are from with which wheels are tried.
LOCKED = ("dev.txt", "kerberos.txt")
# What is tried is compiled as fast as possible, and is as correct as what is released.
QUICKLY = {"PADDOCK_COMPILE": "1", "PADDOCK_OPT_LEVEL": "0"}


def say(text: str) -> None:
    """Print what has been done."""
    print(text, flush=True)


def installed(python: Path, folder: Path, *what: str) -> Path:
    """Make an environment that holds nothing but what is installed; return its Python."""
    # Without pip: it would be listed in the SBOM. Ours installs from outside.
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    ours = folder / "bin" / "python"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(ours),
        "install",
        "--quiet",
        "--no-cache-dir",
    ]
    subprocess.run([*pip, *what], env={**os.environ, **QUICKLY}, check=True)
    return ours


def tried(file: Path, python: Path) -> None:
    """Run the smoke test on what was installed; SystemExit if it fails or is not compiled."""
    version = smoke(python.parent)
    if not version.endswith(", compiled"):
        raise SystemExit(f"{file.name}: {version}, which should be compiled")
    say(f"{file.name} works: {version}")


def main(versions: list[str]) -> int:
    """Build, install and try everything."""
    pythons = {version: interpreter(version) for version in versions}
    for version in [one for one, python in pythons.items() if python is None]:
        say(f"Python {version} is not installed here: no wheel for it, and nothing is tried on it")
    present = {version: python for version, python in pythons.items() if python}
    if not present:
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with TemporaryDirectory() as folder:
        release(present, Path(folder))
    return 0


def release(pythons: dict[str, Path], work: Path) -> None:
    """Fill `dist`, with temporary files in `work`."""
    extras = sorted(settings()["project"]["optional-dependencies"].keys() - OF_TESTS)
    locked = work / "locked.txt"
    pinned = [constraints((FOLDER / name).read_text(encoding="utf-8")) for name in LOCKED]
    locked.write_text("".join(pinned), encoding="utf-8")
    files: list[Path] = []
    digests: dict[Path, str] = {}
    first = None
    for version, python in pythons.items():
        place = work / version
        place.mkdir()
        builder = environment(python, place / "builder")
        if not files:
            (work / "sdist").mkdir()
            files = [build_sdist(builder, work / "sdist", DIST)]
            digests[files[0]] = sbom.digest(files[0])
        (place / "wheel").mkdir()
        wheel = build_wheel(builder, files[0], place / "wheel", DIST)
        say(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        for folder in (str(work), str(python.parents[1])):
            if told := compiled_members_with(wheel, folder):
                raise SystemExit(f"{wheel.name} names the folder {folder}: {', '.join(told)}")
        files.append(wheel)
        digests[wheel] = sbom.digest(wheel)
        with_extras = f"{wheel}[{','.join(extras)}]"
        tried_on = installed(python, place / "of-wheel", "--constraint", str(locked), with_extras)
        tried(wheel, tried_on)
        first = first or tried_on
        tried(files[0], installed(python, place / "of-sdist", str(files[0])))
    assert first is not None
    stem, _, _ = files[0].name.partition(".tar")
    bill = DIST / f"{stem}.cdx.json"
    sbom.write(first, commit_time_s(), stem.rpartition("-")[2], files, bill)
    say(f"{bill.name}: valid CycloneDX {sbom.SPECIFICATION}")
    for path in files:
        # To try a file runs what it depends on, beside the files.
        if sbom.digest(path) != digests[path]:
            raise SystemExit(f"{path.name} is not what was built")
    sums = "".join(f"{sbom.digest(path)}  {path.name}\n" for path in [*files, bill])
    (DIST / "SHA256SUMS").write_text(sums, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
