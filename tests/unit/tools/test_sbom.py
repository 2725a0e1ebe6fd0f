"""What we add to the SBOM that cyclonedx-py writes."""

from pathlib import Path
from typing import Any

from tools.sbom import complete

SHA256_OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def bare() -> dict[str, Any]:
    return {
        "metadata": {"component": {"bom-ref": "root-component", "name": "paddock-zk"}},
        "components": [{"bom-ref": "click==8.5.1", "name": "click"}],
        "dependencies": [
            {"ref": "click==8.5.1"},
            {"ref": "root-component", "dependsOn": ["click==8.5.1"]},
        ],
    }


def test_the_release_itself_is_named_with_its_files(tmp_path: Path) -> None:
    file = tmp_path / "paddock_zk-1.tar.gz"
    file.write_bytes(b"abc")
    bom = bare()
    complete(bom, "1", "2.4.1", [file])
    root = bom["metadata"]["component"]
    assert (root["version"], root["purl"]) == ("1", "pkg:pypi/paddock-zk@1")
    (reference,) = root["externalReferences"]
    assert reference["url"] == "paddock_zk-1.tar.gz"
    assert reference["hashes"] == [{"alg": "SHA-256", "content": SHA256_OF_ABC}]


def test_what_is_compiled_into_the_wheels_is_a_component() -> None:
    bom = bare()
    complete(bom, "1", "2.4.1", [])
    runtime = bom["components"][-1]
    assert (runtime["name"], runtime["version"]) == ("mypy", "2.4.1")
    needed = {one["ref"]: one.get("dependsOn") for one in bom["dependencies"]}
    assert needed == {
        "click==8.5.1": None,
        "root-component": ["click==8.5.1", "mypyc-runtime==2.4.1"],
        "mypyc-runtime==2.4.1": None,
    }
