"""Which Paddock the interpreter of `.venv` runs: the compiled build while it is current."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.build import INPUTS, build, build_in_background, install_hook, only_build
from tools.paddock_build import BUILD, STAMP, is_current, use

EARLIER, NOW, LATER = 1_000_000_000, 2_000_000_000, 3_000_000_000


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A tree with a build of its source."""
    for name in INPUTS:
        if name != "src":
            (tmp_path / name).touch()
    for name in ("src/paddock/state/__pycache__", BUILD):
        (tmp_path / name).mkdir(parents=True)
    for name in ("src/paddock/__init__.py", "src/paddock/state/tree.py", f"{BUILD}/{STAMP}"):
        (tmp_path / name).touch()
    for path in tmp_path.rglob("*"):
        os.utime(path, ns=(EARLIER, EARLIER))
    os.utime(tmp_path / BUILD / STAMP, ns=(NOW, NOW))
    return tmp_path


def edit(clone: Path, name: str) -> None:
    (clone / name).touch()
    os.utime(clone / name, ns=(LATER, LATER))


def path_with_it(clone: Path, **environment: str) -> list[str]:
    """Return the search path of an interpreter that has our source on it."""
    path = ["/before", str(clone / "src"), "/after"]
    use(str(clone), path, environment)
    return path


def test_the_build_of_the_present_source_goes_before_it(clone: Path) -> None:
    assert is_current(str(clone))
    expected = ["/before", str(clone / BUILD), str(clone / "src"), "/after"]
    assert path_with_it(clone) == expected
    # Byte code is no source.
    edit(clone, "src/paddock/state/__pycache__/tree.cpython-311.pyc")
    assert path_with_it(clone, PYTHONPATH="/elsewhere", PADDOCK_PURE="") == expected


@pytest.mark.parametrize(
    "name",
    ["src/paddock/state/tree.py", "src/paddock/new.py", "setup.py", "pyproject.toml"],
)
def test_after_an_edit_the_source_counts(clone: Path, name: str) -> None:
    edit(clone, name)
    assert not is_current(str(clone))
    assert str(clone / BUILD) not in path_with_it(clone)


def test_without_a_build_the_source_counts(clone: Path) -> None:
    (clone / BUILD / STAMP).unlink()
    assert str(clone / BUILD) not in path_with_it(clone)


def test_the_environment_may_ask_for_the_source(clone: Path) -> None:
    assert str(clone / BUILD) not in path_with_it(clone, PADDOCK_PURE="1")
    pythonpath = f"/elsewhere{os.pathsep}{clone / 'src'}"
    assert str(clone / BUILD) not in path_with_it(clone, PYTHONPATH=pythonpath)


def test_an_interpreter_without_our_source_is_left_alone(clone: Path) -> None:
    path = ["/before"]
    use(str(clone), path, {})
    assert path == ["/before"]


def test_the_hook_is_a_module_that_the_interpreter_imports_when_it_starts(tmp_path: Path) -> None:
    install_hook(tmp_path)
    assert (tmp_path / "paddock_build.pth").read_text() == "import paddock_build\n"
    assert "def is_current" in (tmp_path / "paddock_build.py").read_text()


@pytest.fixture
def installing(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set what becomes of builds from here on."""

    def becomes(status: int) -> None:
        def install(source: Path, target: Path) -> int:
            assert (source / "src" / "paddock" / "state" / "tree.py").exists()
            target.mkdir()
            (target / "new").touch()
            return status

        monkeypatch.setattr("tools.build._install", install)

    return becomes


def test_what_is_current_is_not_built_again(clone: Path, installing: Callable[[int], None]) -> None:
    installing(0)
    assert build(clone) == 0
    assert not (clone / BUILD / "new").exists()
    assert build_in_background(clone) == "this is the compiled build"


def test_a_build_takes_the_place_of_the_old_one_when_it_is_complete(
    clone: Path, installing: Callable[[int], None], capfd: pytest.CaptureFixture[str]
) -> None:
    edit(clone, "src/paddock/state/tree.py")
    installing(1)
    assert build(clone) == 1
    begin, end = capfd.readouterr().out.splitlines()
    assert begin.endswith("compiling Paddock into build/optimized")
    assert "the build failed, after 0 s" in end
    assert not (clone / BUILD / "new").exists()
    assert not is_current(str(clone))
    installing(0)
    assert build(clone) == 0
    assert (clone / BUILD / "new").exists()
    assert is_current(str(clone))
    assert sorted(one.name for one in (clone / "build").iterdir()) == [
        "optimized",
        "optimized.lock",
    ]


def test_while_one_build_runs_no_other_is_started(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr("subprocess.Popen", lambda *given, **_: started.append(given))
    edit(clone, "setup.py")
    with only_build(clone, wait=True):
        said = build_in_background(clone)
    assert not started
    assert build_in_background(clone) == said
    assert len(started) == 1
    assert said.startswith("this is plain Python; the compiled build is being made")
