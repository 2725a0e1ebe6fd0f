"""How Paddock is built: compiled, or as plain Python where that is asked for or nothing compiles.

Most tests build a package of one module with our setup.py, which takes seconds rather than minutes.
All other tests run on a build of Paddock itself.
"""

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import paddock
from paddock.cli.version import is_compiled
from paddock.testing import ServerProcess
from tests.support.command import COMMAND, serving
from tests.support.documents import ROOT
from tests.support.paddock_server import PaddockServer
from tools.compiled import compiled_modules, modules_in_c

DEADLINE_S = 300.0
SHARED_LIBRARY = "paddock__mypyc"
BESIDE_THE_LIBRARY_BYTES_MAX = 4_500_000
IN_C = """\
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "in_c", .m_size = -1};
PyMODINIT_FUNC PyInit_in_c(void) { return PyModule_Create(&module); }
"""
SETTINGS = """\
[project]
name = "small"
version = "1"

[dependency-groups]
compile = ["mypy>=2"]

[tool.setuptools.packages.find]
where = ["src"]

[tool.paddock]
compiled = ["src/small/*.py"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package of one module that is to be compiled, with our setup.py."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    package = tmp_path / "src" / "small"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "hot.py").write_text("def twice(number: int) -> int:\n    return 2 * number\n")
    return tmp_path


def build(project: Path, *, succeeds: bool = True, **variables: str) -> tuple[list[str], list[str]]:
    """Build it; return the modules that there are then, and the lines that we said."""
    ours = {"PADDOCK_PURE", "PADDOCK_COMPILE", "PADDOCK_OPT_LEVEL", "CC"}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    result = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build"],
        cwd=project,
        env={**kept, "PADDOCK_OPT_LEVEL": "0", **variables},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert (result.returncode == 0) == succeeds, result
    said = [line for line in result.stderr.splitlines() if line.startswith("paddock: ")]
    modules = (path.name for path in (project / "build").glob("lib*/**/*") if path.is_file())
    return sorted(name.partition(".")[0] + Path(name).suffix for name in modules), said


PURE = ["__init__.py", "hot.py"]
COMPILED = ["__init__.py", "hot.py", "hot.so", f"{SHARED_LIBRARY}.so"]


def need_compiler() -> None:
    if subprocess.run([ROOT / "tools" / "judges.sh", "compiler"]).returncode:
        pytest.skip("there is no C compiler, or Python's headers are missing")


def test_with_a_compiler_it_is_compiled_and_keeps_its_sources(project: Path) -> None:
    need_compiler()
    assert build(project) == (COMPILED, [])
    (built,) = (project / "build").glob("lib*")
    code = "import small.hot; print(small.hot.__file__, small.hot.twice(21))"
    said = subprocess.check_output([sys.executable, "-c", code], cwd=built, text=True)
    assert said.endswith(".so 42\n")
    # What is no longer compiled must not hide its source.
    modules, said_then = build(project, PADDOCK_PURE="1", PADDOCK_COMPILE="1")
    assert modules == PURE
    assert said_then == ["paddock: built as plain Python: PADDOCK_PURE=1 asks for it"]


@pytest.mark.skipif(sys.platform != "linux", reason="they are for Linux")
def test_modules_in_c_are_compiled_with_the_others(project: Path) -> None:
    need_compiler()
    with (project / "pyproject.toml").open("a") as settings:
        settings.write('in-c = ["src/small/in_c.c"]\n')
    (project / "src/small/in_c.c").write_text(IN_C)
    modules, said = build(project)
    assert {*COMPILED, "in_c.so"} <= set(modules)
    assert not said
    (built,) = (project / "build").glob("lib*")
    code = "import small.in_c; print(small.in_c.__name__)"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=built) == b"small.in_c\n"
    # Where nothing is compiled, neither are they.
    assert "in_c.so" not in build(project, PADDOCK_PURE="1")[0]


@pytest.mark.skipif(sys.platform != "linux", reason="what is in C is for Linux")
def test_the_check_of_a_build_names_what_is_not_compiled() -> None:
    plain = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(ROOT / "tools" / "compiled.py")]
    result = subprocess.run(command, env=plain, capture_output=True, text=True)
    names = [*compiled_modules(), *modules_in_c()]
    files = [ROOT / "src" / name.replace(".", "/") for name in compiled_modules()]
    where = [*(f"{file}.py" for file in files), *("missing" for _ in modules_in_c())]
    assert result.stderr.splitlines() == [
        f"not compiled: {name}: {file}" for name, file in zip(names, where, strict=True)
    ]
    assert result.stdout == f"0 of {len(names)} modules are compiled\n"
    assert result.returncode == 1


@pytest.mark.skipif(sys.platform != "linux", reason="its threads are looked for in /proc")
def test_a_compiled_server_syncs_its_log_by_the_module_in_c(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        threads = {
            task.joinpath("comm").read_text().strip()
            for task in Path(f"/proc/{server.pid}/task").iterdir()
        }
    assert ("paddock-disk" in threads) == is_compiled()


@pytest.mark.skipif(sys.platform != "linux", reason="the options are for Linux")
def test_compiled_functions_are_private_and_begin_where_a_huge_page_would(project: Path) -> None:
    need_compiler()
    build(project)
    assert not exports_functions(project)
    library = shared_library(project)
    assert alignment(library) == 2 << 20
    # Two parts before its data are padded to 2 MiB, and the data is not.
    assert library.stat().st_size < 5_000_000
    # The modules that load it have no code of their own, and must not be padded to 2 MiB each.
    (module,) = (project / "build").glob("lib*/small/hot.*.so")
    assert alignment(module) < 2 << 20
    assert module.stat().st_size < 10_000
    # Where mypyc is installed is nobody's business, and differs between two builds.
    assert b"/site-packages/" not in library.read_bytes()


def test_a_compiled_install_is_small() -> None:
    """The size of the library depends on the level of optimization: 5 MB in an install."""
    if not is_compiled():
        pytest.skip("this build is plain Python")
    package = Path(paddock.__file__).parent
    assert len([*package.parent.glob(f"{SHARED_LIBRARY}.*.so")]) == 1
    files = [one for one in package.rglob("*") if one.is_file() and one.suffix != ".pyc"]
    assert sum(one.stat().st_size for one in files) < BESIDE_THE_LIBRARY_BYTES_MAX


def test_a_compiler_that_refuses_our_options_compiles_without_them(project: Path) -> None:
    need_compiler()
    compiler = project / "compiler"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-fno-plt*) exit 1;; esac\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    assert build(project, CC=str(compiler)) == (COMPILED, [])
    assert exports_functions(project)
    assert alignment(shared_library(project)) < 2 << 20


def shared_library(project: Path) -> Path:
    (found,) = (project / "build").glob(f"lib*/{SHARED_LIBRARY}.*.so")
    return found


def exports_functions(project: Path) -> bool:
    """Tell whether a compiled function can be called by its name."""
    return hasattr(ctypes.CDLL(str(shared_library(project))), "CPyDef_twice")


def alignment(library: Path) -> int:
    """Return the alignment of a library in memory, from its ELF headers."""
    data = library.read_bytes()
    (offset,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    segments = [struct.unpack_from("<IIQQQQQQ", data, offset + at * size) for at in range(count)]
    # Those of kind 1 are loaded, and what they ask for stands last.
    return max(int(segment[-1]) for segment in segments if segment[0] == 1)


NOT_INSTALLED = "/nowhere/gcc"


def test_without_a_compiler_it_is_plain_python_and_says_so(project: Path) -> None:
    modules, (line,) = build(project, CC=NOT_INSTALLED)
    assert modules == PURE
    assert line.startswith("paddock: built as plain Python: there is no C compiler '/nowhere/gcc'")


def test_who_demands_compilation_does_not_get_plain_python(project: Path) -> None:
    modules, (line,) = build(project, CC=NOT_INSTALLED, PADDOCK_COMPILE="1", succeeds=False)
    assert modules == []
    assert "PADDOCK_COMPILE=1 is set, but it is not compiled: there is no C compiler" in line


def refused(project: Path, **variables: str) -> str:
    """Build it, which must fail and leave nothing; return our line, which ends with what to do."""
    modules, (line,) = build(project, succeeds=False, **variables)
    assert modules == []
    reason, _, remedy = line.partition("; ")
    assert remedy == "PADDOCK_PURE=1 builds plain Python"
    # Asked for, plain Python is built whatever the compiler does.
    assert build(project, succeeds=True, PADDOCK_PURE="1", **variables)[0] == PURE
    return reason


def test_a_compiler_that_does_not_work_fails_the_build(project: Path) -> None:
    need_compiler()
    said = refused(project, CC="/bin/false")
    assert said.startswith("paddock: not built: the C compiler does not compile")


def test_a_compiler_that_fails_half_way_fails_the_build(project: Path) -> None:
    need_compiler()
    compiler = project / "compiler"
    # It compiles the probe and all modules but one.
    compiler.write_text('#!/bin/sh\ncase "$*" in *__native_*) exit 1;; esac\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    # setuptools names the command that failed.
    said = refused(project, CC=str(compiler))
    assert said.startswith("paddock: not built: error: ")
    assert str(compiler) in said


def test_what_mypyc_refuses_fails_the_build(project: Path) -> None:
    need_compiler()
    (project / "src" / "small" / "hot.py").write_text("wrong: int = 'text'\n")
    assert refused(project).startswith("paddock: not built: mypyc refuses it")


def test_without_mypy_the_build_fails(project: Path) -> None:
    need_compiler()
    # In front of the real one.
    (project / "mypyc.py").write_text("raise ImportError\n")
    said = refused(project, PYTHONPATH=str(project))
    assert said == "paddock: not built: mypy is not in the environment that builds it"


@pytest.mark.parametrize("variables", [{"PADDOCK_PURE": "1"}, {"CC": NOT_INSTALLED}], ids=str)
def test_without_compilation_the_build_needs_no_mypy(
    project: Path, variables: dict[str, str]
) -> None:
    assert required(project, **variables) == "[]"


def test_for_compilation_the_build_needs_mypy(project: Path) -> None:
    need_compiler()
    assert required(project) == "['mypy>=2']"


def required(project: Path, **variables: str) -> str:
    """Ask what a build takes, as pip does before it builds."""
    code = "from setuptools import build_meta as it; print(it.get_requires_for_build_wheel())"
    kept = {name: value for name, value in os.environ.items() if name != "PADDOCK_PURE"}
    return subprocess.check_output(
        [sys.executable, "-c", code], cwd=project, env={**kept, **variables}, text=True
    ).splitlines()[-1]


def is_compiled_in(process: int) -> bool:
    """Tell whether a process has loaded compiled modules of ours."""
    return SHARED_LIBRARY in Path(f"/proc/{process}/maps").read_text()


def test_the_servers_that_tests_start_are_of_the_build_that_they_test(tmp_path: Path) -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("what a process has loaded is not to be seen here")
    with ServerProcess() as process:
        assert is_compiled_in(process.pid) == is_compiled()
    with PaddockServer() as server:
        assert is_compiled_in(server.pid) == is_compiled()
    with serving("--memory", "--port", "0") as running:
        assert is_compiled_in(running.process.pid) == is_compiled()


def test_what_a_command_says_of_its_build_is_so() -> None:
    code = "import sys, paddock.protocol.jute as one; print(one.__file__)"
    path = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    said = subprocess.check_output([*COMMAND, "--version"], text=True)
    assert said.endswith(", pure Python\n" if path.endswith(".py") else ", compiled\n")
