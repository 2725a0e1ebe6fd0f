"""`tests/unit` mirrors the source, so that the tests of a module are found by its path.

A test file stands in the folder of its module and has the module's name, or that name and what it
is about: `client/session/session.py` has `client/session/test_session.py` and
`client/session/test_session_losses.py`. The tests of a package itself (its `__init__.py`) have the
package's name. Folders for `tools`, `bench`, `tests/support` and `tests/mutants` stand beside those
of the source.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
# Where the folders of `tests/unit` have their modules; any other is one of `src/paddock`.
ELSEWHERE = {
    "tools": ROOT / "tools",
    "bench": ROOT / "bench",
    "support": ROOT / "tests/support",
    "mutants": ROOT / "tests/mutants",
}
# Tests of the tree as a whole, beside those of the modules of `src/paddock` itself.
OF_THE_TREE = {
    "test_change_recipes.py",
    "test_checksums.py",
    "test_compiled_rules.py",
    "test_import_rules.py",
    "test_loops.py",
    "test_mirror.py",
    "test_pitfalls.py",
    "test_public_names.py",
    "test_python_releases.py",
    "test_run.py",
}


def source_folder(test: Path) -> Path:
    """Return the folder that has to hold the module of a test file."""
    top, *rest = test.relative_to(UNIT).parent.parts or ("",)
    return ELSEWHERE.get(top, ROOT / "src" / "paddock" / top).joinpath(*rest)


def has_module(test: Path) -> bool:
    """Return whether the folder holds a module, or a package, that the file's name begins with."""
    folder = source_folder(test)
    modules = {one.stem for suffix in ("py", "c") for one in folder.glob(f"*.{suffix}")} | {
        one.parent.name for one in folder.glob("*/__init__.py")
    }
    subject = test.stem.removeprefix("test_")
    return any(f"{subject}_".startswith(f"{name}_") for name in modules | {folder.name})


def all_tests() -> list[Path]:
    return sorted(UNIT.rglob("test_*.py"))


@pytest.mark.parametrize("test", all_tests(), ids=lambda path: str(path.relative_to(UNIT)))
def test_every_test_file_has_its_module(test: Path) -> None:
    if test.parent == UNIT and test.name in OF_THE_TREE:
        return
    assert has_module(test), f"no module of {source_folder(test)} has this file's name"


@pytest.mark.parametrize(
    ("test", "is_there"),
    [
        ("test_errors.py", True),
        ("state/test_machine.py", True),
        ("state/test_machine_totality.py", True),
        ("testing/test_testing_names.py", True),
        ("tools/blocking/test_words.py", True),
        ("state/test_machines.py", False),
        ("test_machine.py", False),
        ("server/test_machine.py", False),
        ("novelty/test_machine.py", False),
    ],
)
def test_a_file_without_a_module_is_noticed(test: str, is_there: bool) -> None:
    assert has_module(UNIT / test) == is_there
