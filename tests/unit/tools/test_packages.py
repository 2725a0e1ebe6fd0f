"""What a build of a release sees: variables of ours, and the Pythons that are there."""

import sys
from pathlib import Path

import pytest

from tools.packages import commit_time_s, interpreter, linker, variables


def test_a_build_sees_no_variable_but_those_that_are_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CFLAGS", "-g")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PADDOCK_PURE", "1")
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("PADDOCK_OPT_LEVEL", raising=False)
    assert variables(7) == {
        "PATH": "/usr/bin",
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PADDOCK_COMPILE": "1",
        "SOURCE_DATE_EPOCH": "7",
    }


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.touch(0o755)
    return path


def test_of_several_pythons_of_a_version_the_newest_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert interpreter("3.12") is None
    on_path = executable(tmp_path / "bin" / "python3.12")
    assert interpreter("3.12") == on_path
    executable(tmp_path / "versions/3.12.9/bin/python3.12")
    newest = executable(tmp_path / "versions/3.12.10/bin/python3.12")
    assert interpreter("3.12") == newest
    assert interpreter("3.1") is None


def test_folders_of_the_python_that_links_are_left_out(tmp_path: Path) -> None:
    """It stands in for a Python that was built by pyenv."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho gcc -shared -L/home/me/lib -Wl,-rpath,/home/me/lib -O2\n")
    python.chmod(0o755)
    assert linker(python) == "gcc -shared -O2"
    assert "-rpath" not in linker(Path(sys.executable))


def test_the_time_of_a_build_is_that_of_its_commit(tmp_path: Path) -> None:
    git = tmp_path / "git"
    git.write_text(
        "#!/bin/sh\n"
        '[ "$*" = "log -1 --format=%ct HEAD" ] && echo 1700000000\n'
        '[ "$*" = "log -1 --format=%ct 5eed" ] && echo 1600000000\n'
        "true\n"
    )
    git.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        assert commit_time_s() == 1_700_000_000
        assert commit_time_s(commit="5eed") == 1_600_000_000
