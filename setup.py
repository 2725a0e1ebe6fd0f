"""This builds Paddock: its hot modules compiled by mypyc where that is possible, else plain Python.

It takes a C compiler and Python's headers. Without them, or with PADDOCK_PURE=1, the same package
is built as plain Python, and one line says why; with PADDOCK_COMPILE=1 that is a failure instead.
All modules of the list are compiled or none, and `paddock --version` tells which. The sources are
part of the package both ways.

Everything else about the package stands in pyproject.toml, and so does the list.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import Extension, setup
from setuptools.errors import CCompilerError, ExecError, PlatformError

# isort: split
# Behind setuptools, which brings them where Python itself no longer does.
from distutils.ccompiler import new_compiler
from distutils.sysconfig import customize_compiler

MYPY = "mypy>=2.4"
# Where the C code goes that mypyc writes.
GENERATED = "build/mypyc"
# What the compiler and the linker are asked for besides, on Linux. The functions call each other
# directly, since nobody else calls them by name. And the library begins where a huge page would, so
# its hot part is never cut in two: which stretches of 2 MiB the hot code of the whole process lies
# in decides up to a third of its speed. docs/explanation/speed.md has the figures.
COMPILER_OPTIONS = ["-fvisibility=hidden", "-fno-semantic-interposition", "-fno-plt"]
LINKER_OPTIONS = ["-Wl,-z,max-page-size=0x200000"]
COMPILER_FAILURES = (CCompilerError, ExecError, PlatformError)
PROBE = "#include <Python.h>\nint probe(void) { return Py_IsInitialized(); }\n"


class NotCompiledError(Exception):
    """Why a build cannot be compiled, or is not to be."""


def compiled_sources() -> list[str]:
    """Return the files that `tool.paddock.compiled` names, `__init__.py` left out."""
    settings = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    found = {
        str(path)
        for pattern in settings["tool"]["paddock"]["compiled"]
        for path in Path().glob(pattern)
        if path.name != "__init__.py"
    }
    return sorted(found)


def is_set(variable: str) -> bool:
    """Tell whether a variable of the environment is 1."""
    return os.environ.get(variable) == "1"


def check_that_it_can_be_compiled() -> None:
    """Raise NotCompiledError if there is a reason against it; mypyc may have others."""
    if is_set("PADDOCK_PURE"):
        raise NotCompiledError("PADDOCK_PURE=1 asks for it")
    if {"editable_wheel", "develop"} & set(sys.argv):
        # Compiled modules in the source tree would hide every later edit of their source.
        raise NotCompiledError("an editable install runs the source as it is after each edit")
    if platform.python_implementation() != "CPython":
        raise NotCompiledError("what mypyc compiles runs on CPython only")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise NotCompiledError(
            "Python's headers are not installed (Debian has them in python3-dev)"
        )
    if not has_compiler():
        raise NotCompiledError(
            "there is no C compiler that works (Debian has one in gcc and libc6-dev)"
        )


def has_compiler(compiling: Sequence[str] = (), linking: Sequence[str] = ()) -> bool:
    """Tell whether a tiny module compiles, as the real ones would, with these options."""
    compiler = new_compiler()
    customize_compiler(compiler)
    with TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(PROBE, encoding="utf-8")
        try:
            # An absolute path keeps its folders below this one.
            objects = compiler.compile(
                [str(source)],
                folder,
                include_dirs=[sysconfig.get_path("include")],
                extra_postargs=list(compiling),
            )
            target = str(Path(folder, "probe.so"))
            compiler.link_shared_object(objects, target, extra_postargs=list(linking))
        except COMPILER_FAILURES:
            return False
    return True


def generated() -> list[Extension]:
    """Let mypyc write its C code; raise NotCompiledError where it cannot."""
    check_that_it_can_be_compiled()
    try:
        from mypyc.build import mypycify
    except ImportError:
        raise NotCompiledError(f"{MYPY} is not in the environment that builds it") from None
    # What they import may be in want of packages that are there to run it, not to build it.
    flags = ["--follow-imports=silent", "--ignore-missing-imports"]
    try:
        found = mypycify(
            [*flags, *compiled_sources()],
            opt_level=os.environ.get("PADDOCK_OPT_LEVEL", "3"),
            debug_level="0",
            target_dir=GENERATED,
            group_name="paddock",
        )
    except SystemExit as refusal:
        # A later mypy may find an error where ours finds none.
        raise NotCompiledError(f"mypyc refuses it: {refusal}") from None
    takes_options = sys.platform == "linux" and has_compiler(COMPILER_OPTIONS, LINKER_OPTIONS)
    for extension in found:
        # A later compiler may warn of what ours does not.
        strict = extension.extra_compile_args
        extension.extra_compile_args = [option for option in strict if option != "-Werror"]
        if takes_options:
            extension.extra_compile_args += COMPILER_OPTIONS
            extension.extra_link_args += LINKER_OPTIONS
    return list(found)


def extensions() -> list[Extension]:
    """Return what is to be compiled: nothing for a pure build."""
    try:
        return generated()
    except NotCompiledError as reason:
        go_on_without(reason)
        return []


def requirements() -> list[str]:
    """Return what the build itself takes, for whoever asks: pip does, before it builds."""
    try:
        check_that_it_can_be_compiled()
    except NotCompiledError:
        return []
    return [MYPY]


def go_on_without(reason: object) -> None:
    """Say that the build is plain Python, and why; end it if that is not what was asked for."""
    if is_set("PADDOCK_COMPILE") and not is_set("PADDOCK_PURE"):
        raise SystemExit(f"paddock: PADDOCK_COMPILE=1 is set, but it is not compiled: {reason}")
    sys.stderr.write(f"paddock: built as plain Python: {reason}\n")


def remove_what_was_built() -> None:
    """Remove modules of earlier builds: one that is no longer compiled would hide its source."""
    for folder in Path("build").glob("lib*"):
        shutil.rmtree(folder)


def main() -> None:
    """Answer what is asked about the package, or build it."""
    if {"egg_info", "dist_info", "sdist"} & set(sys.argv):
        setup(setup_requires=requirements() if "egg_info" in sys.argv else [])
        return
    remove_what_was_built()
    if found := extensions():
        try:
            # Always anew: an object file does not tell with which options it was compiled. One of
            # them is as much work as all the others together.
            options = {"force": True, "parallel": os.cpu_count() or 1}
            setup(ext_modules=found, options={"build_ext": options})
        except SystemExit:
            go_on_without("the C compiler failed, and has said why")
            remove_what_was_built()
        else:
            return
    setup()


if __name__ == "__main__":
    main()
