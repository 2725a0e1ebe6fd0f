"""Write the lock files of `requirements`: what is installed to build, to test and to release.

    python -m tools.lock          the newest versions that pyproject.toml allows
    python -m tools.lock --keep   the locked versions, where they still fit

| file | what it is for |
|---|---|
| `build.txt` | a wheel: `build-system.requires`, and the group `compile` |
| `run.txt` | `make install`: the dependencies of Paddock, and what installs it |
| `dev.txt` | `make test`: the extra `dev` |
| `kerberos.txt` | `make test`, where it may compile: the extra `dev-kerberos` |
| `oldest.txt` | `make test-oldest`: the same, with the oldest dependencies that are allowed |
| `release.txt` | `make lock` and `make dist`: the group `release` |
| `applications-*.txt` | `make applications`: the groups of these names |

pip installs them with `--require-hashes`. A lock has the hashes of every file of a version, and
markers for what differs between Pythons, so it serves all platforms. The hashes are those of PyPI:
settings for other package indexes are ignored, and none is named.

Of each package there is one version in all files but `oldest.txt`: `dev.txt` is resolved first, and
the others keep to it. In the end each file is resolved for every platform below, with wheels alone:
an sdist would run a build of its own.
"""

import os
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Collection
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
INDEX = "https://pypi.org/simple"
OLDEST_PYTHON = "3.11"
PYTHONS = (OLDEST_PYTHON, "3.12", "3.13")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
# PyPI has no wheel of them. They are built with the setuptools that is locked.
WITHOUT_WHEEL = ("gssapi", "pure-sasl", "pykerberos", "ydiff")
# Extras that need a compiler and the headers of Kerberos. Their oldest versions are those locked.
COMPILED_EXTRAS = {"kerberos", "dev-kerberos"}
# The oldest grpcio has no wheels for later Pythons.
ONLY_ON_THE_OLDEST = ("oldest.txt",)


# Extras that nobody but our tests needs.
OF_TESTS = {"dev", "dev-kerberos"}


def settings() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    """Return the name of a package, as lock files spell it."""
    return canonicalize_name(Requirement(requirement).name)


def pins(lock: str) -> dict[str, set[str]]:
    """Return the versions that a lock file has, by package: several where markers choose."""
    found: dict[str, set[str]] = {}
    for line in lock.splitlines():
        if line[:1].isalnum():
            name, _, rest = line.partition("==")
            found.setdefault(canonicalize_name(name.strip()), set()).add(rest.split()[0])
    return found


def of_users(project: dict[str, Any]) -> set[str]:
    """Return the names of what users install with Paddock, with all extras."""
    extras = project["optional-dependencies"]
    listed = [one for extra, ones in extras.items() if extra not in OF_TESTS for one in ones]
    return {name_of(one) for one in (*project["dependencies"], *listed)}


def applications(project: dict[str, Any]) -> list[str]:
    """Return the groups that are environments of programs of others."""
    return [group for group in project["dependency-groups"] if group.startswith("applications-")]


def constraints(lock: str, names: Collection[str] | None = None) -> str:
    """Return the pins of a lock without their hashes: all of them, or those of some packages."""
    lines = [line.removesuffix("\\").strip() for line in lock.splitlines() if line[:1].isalnum()]
    return "".join(f"{one}\n" for one in lines if names is None or name_of(one) in names)


def uv(*arguments: str) -> None:
    """Run uv, deaf to the settings of this machine."""
    command = [str(Path(sysconfig.get_path("scripts"), "uv")), "--quiet", "--no-config", "pip"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))
    }
    subprocess.run(
        [*command, *arguments, "--default-index", INDEX], cwd=ROOT, env=environment, check=True
    )


def compile_lock(name: str, *arguments: str, keep: bool) -> None:
    """Resolve what the arguments name, and write it down."""
    uv(
        *("compile", "--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes"),
        # Notes on who needs a package would name temporary files.
        *("--no-annotate", "--custom-compile-command", "make lock"),
        *("--output-file", f"requirements/{name}"),
        *([] if keep else ["--upgrade"]),
        *arguments,
    )
    print(f"requirements/{name}: {len(pins((FOLDER / name).read_text()))} packages", flush=True)


def write(*, keep: bool) -> None:
    """Write all of them."""
    project = settings()
    builders = project["build-system"]["requires"]
    with TemporaryDirectory() as folder:

        def file(name: str, lines: str) -> str:
            path = Path(folder, name)
            path.write_text(lines, encoding="utf-8")
            return str(path)

        compile_lock("dev.txt", "pyproject.toml", "--extra", "dev", keep=keep)
        development = (FOLDER / "dev.txt").read_text()
        same = ("--constraints", file("same.txt", constraints(development)))
        compile_lock("kerberos.txt", "pyproject.toml", "--extra", "dev-kerberos", *same, keep=keep)
        needed = file("build.in", "\n".join(builders))
        compile_lock("run.txt", "pyproject.toml", needed, *same, keep=keep)
        compile_lock("build.txt", needed, "--group", "pyproject.toml:compile", *same, keep=keep)
        # What users install comes first, as old as may be. Our tools are the newest ones for it.
        extras = project["project"]["optional-dependencies"].keys() - {"dev"} - COMPILED_EXTRAS
        asked = [word for extra in sorted(extras) for word in ("--extra", extra)]
        lowest = ("pyproject.toml", *asked, "--resolution", "lowest-direct")
        compile_lock("oldest.txt", *lowest, keep=False)
        found = constraints((FOLDER / "oldest.txt").read_text(), of_users(project["project"]))
        oldest = ("--constraints", file("oldest.txt", found))
        compile_lock("oldest.txt", "pyproject.toml", "--extra", "dev", *oldest, keep=False)
        compile_lock("release.txt", "--group", "pyproject.toml:release", keep=keep)
        for group in applications(project):
            compile_lock(f"{group}.txt", "--group", f"pyproject.toml:{group}", keep=keep)


def check() -> None:
    """Resolve each file for every Python and platform, with the hashes that it has."""
    with TemporaryDirectory() as target:
        for path in sorted(FOLDER.glob("*.txt")):
            pythons = PYTHONS[:1] if path.name in ONLY_ON_THE_OLDEST else PYTHONS
            for python, platform in product(pythons, PLATFORMS):
                uv(
                    *("install", "--dry-run", "--target", target, "--require-hashes"),
                    *("--python-version", python, "--python-platform", platform),
                    *("--only-binary", ":all:"),
                    *(word for name in WITHOUT_WHEEL for word in ("--no-binary", name)),
                    *("--requirements", str(path)),
                )
            print(f"{path.relative_to(ROOT)}: Python {', '.join(pythons)}; {', '.join(PLATFORMS)}")


def main(arguments: list[str]) -> int:
    """Write the files and check them."""
    if arguments not in ([], ["--keep"]):
        print(__doc__, file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    try:
        write(keep="--keep" in arguments)
        check()
    except subprocess.CalledProcessError as failure:
        # uv has said why.
        return failure.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
