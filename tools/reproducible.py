"""Build everything twice and compare it byte by byte: `python -m tools.reproducible 3.11 3.12`.

The two builds have different folders, umasks, time zones and variables, and the second one happens
later. The source distribution is compared once, and the wheel for each Python that is named. The
status is 1 if two files differ; each member that differs is named.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.archives import differences
from tools.packages import build_sdist, build_wheel, environment, interpreter, last_commit

# What another builder may have: a folder, a umask, variables.
SITES = (
    ("one", 0o022, {"TZ": "UTC", "LANG": "C", "CFLAGS": ""}),
    ("another/and/deeper/one", 0o077, {"TZ": "Asia/Tokyo", "LANG": "en_US.UTF-8", "CFLAGS": "-g"}),
)


def build(python: Path, site: Path, commit: str) -> list[Path]:
    """Build the source distribution and the wheel in a folder that is still empty."""
    site.mkdir(parents=True)
    work, target = site / "work", site / "built"
    for folder in (work, target, work / "sdist", work / "wheel"):
        folder.mkdir()
    builder = environment(python, work / "environment")
    sdist = build_sdist(builder, work / "sdist", target, commit)
    return [sdist, build_wheel(builder, sdist, work / "wheel", target)]


def main(versions: list[str]) -> int:
    """Compare two builds for each version of Python."""
    status, compared = 0, 0
    # Somebody may commit between the two builds.
    commit = last_commit()
    for version in versions:
        python = interpreter(version)
        if python is None:
            print(f"Python {version} is not installed here: not compared")
            continue
        with TemporaryDirectory() as folder:
            built = []
            for name, umask, variables in SITES:
                os.umask(umask)
                os.environ.update(variables)
                built.append(build(python, Path(folder, name), commit))
            for left, right in zip(*built, strict=True):
                lines = differences(left, right)
                equal = "differs between two builds:" if lines else "is the same bytes, built twice"
                print(f"{left.name} {equal}", *lines, sep="\n  ", flush=True)
                status |= bool(lines)
                compared += 1
    return status if compared else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
