"""Write the SBOM of a release: what is installed with Paddock and all its extras, as CycloneDX 1.6.

cyclonedx-py lists the packages of an environment with their licences and who needs whom; nothing
but Paddock may have been installed there. It knows neither the version of Paddock, which is not in
pyproject.toml, nor what is inside the wheels, so that is added here: the files of the release with
their hashes, and mypyc's runtime, which is C code of mypy's that each wheel contains. The result is
checked against the schema that the makers of CycloneDX publish.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from tools.lock import FOLDER, ROOT, of_users, pins, settings

SPECIFICATION = "1.6"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


def complete(bom: dict[str, Any], version: str, mypy: str, files: Iterable[Path]) -> None:
    """Add to an SBOM what only the build knows."""
    name = settings()["project"]["name"]
    root = bom["metadata"]["component"]
    root |= {"version": version, "purl": f"pkg:pypi/{name}@{version}"}
    root.setdefault("externalReferences", []).extend(
        {
            "type": "distribution",
            "url": path.name,
            "hashes": [{"alg": "SHA-256", "content": digest(path)}],
        }
        for path in files
    )
    runtime = {
        "type": "library",
        "bom-ref": f"mypyc-runtime=={mypy}",
        "name": "mypy",
        "version": mypy,
        "purl": f"pkg:pypi/mypy@{mypy}",
        "description": "mypyc's runtime in C, compiled into the wheels",
        "licenses": [{"license": {"id": "MIT", "acknowledgement": "declared"}}],
    }
    bom["components"].append(runtime)
    for one in bom["dependencies"]:
        if one["ref"] == root["bom-ref"]:
            one["dependsOn"] = sorted([*one.get("dependsOn", ()), runtime["bom-ref"]])
    bom["dependencies"].append({"ref": runtime["bom-ref"]})


def check(bom: dict[str, Any], ours: set[str]) -> None:
    """Raise ValueError if the SBOM does not keep to its schema, or lacks a requirement of ours."""
    # Here, so that tests of the rest need no validator.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bom)):
        raise ValueError(f"the SBOM is not CycloneDX {SPECIFICATION}: {error}")
    listed = {canonicalize_name(one["name"]) for one in bom["components"]}
    if missing := ours - listed:
        raise ValueError(f"the SBOM lacks {', '.join(sorted(missing))}")


def write(python: Path, time_s: int, version: str, files: Iterable[Path], target: Path) -> None:
    """Write the SBOM of the environment of `python`."""
    written = subprocess.check_output(
        [
            *(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"),
            *("--spec-version", SPECIFICATION, "--output-format", "JSON"),
            *("--pyproject", str(ROOT / "pyproject.toml"), str(python)),
        ],
        env={"SOURCE_DATE_EPOCH": str(time_s)},
    )
    bom = json.loads(written)
    (mypy,) = pins((FOLDER / "build.txt").read_text(encoding="utf-8"))["mypy"]
    complete(bom, version, mypy, files)
    check(bom, of_users(settings()["project"]))
    target.write_text(json.dumps(bom, indent=2, sort_keys=True) + "\n", encoding="utf-8")
