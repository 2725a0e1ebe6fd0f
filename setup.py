"""Build Paddock: compile the hot modules with mypyc, or build plain Python where that is meant.

With them go those that are written in C, on Linux, which is what they are for.

- PADDOCK_PURE=1 asks for plain Python. So do an editable install and another Python than CPython.
- Where no C compiler or no headers of Python are installed, the package is plain Python, and one
  line says why. With PADDOCK_COMPILE=1 that is an error.
- Otherwise it is compiled. If mypyc or the C compiler fails, the build fails: nobody gets plain
  Python without knowing it.

Either all listed modules are compiled or none; `paddock --version` tells which. The package
contains the sources in both cases.

The lists of modules and all other metadata are in pyproject.toml.
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
from typing import NoReturn

from setuptools import Extension, setup
from setuptools.errors import CCompilerError, ExecError, PlatformError

# isort: split
# Behind setuptools, which brings them where Python itself no longer does.
from distutils.ccompiler import new_compiler
from distutils.sysconfig import customize_compiler

# Where mypyc writes the C code.
GENERATED = "build/mypyc"
# Additional options on Linux. Hidden visibility lets compiled functions call each other directly.
# The page size aligns the shared library to a huge page (2 MiB), so that its hot code is not split
# across two of them: that placement decides up to a third of the speed
# (docs/explanation/speed.md). The option pads a file to 2 MiB, so only the one library with the
# code gets it, and not the small modules that load it. Without norelro its data would be padded,
# too, and that of the small modules to a page, which has 64 KiB on some machines. The small modules
# need no symbols, and no pages of their own for code and for data.
COMPILER_OPTIONS = ["-fvisibility=hidden", "-fno-semantic-interposition", "-fno-plt"]
LIBRARY_LINKER_OPTIONS = ["-Wl,-z,max-page-size=0x200000", "-Wl,-z,norelro"]
MODULE_LINKER_OPTIONS = ["-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-Wl,-s"]
# How mypyc ends the name of that library.
LIBRARY_SUFFIX = "__mypyc"
COMPILER_FAILURES = (CCompilerError, ExecError, PlatformError)
PROBE = "#include <Python.h>\nint probe(void) { return Py_IsInitialized(); }\n"


SETTINGS = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))


class NotCompiledError(Exception):
    """The build is plain Python; the message says why."""


def compiled_sources() -> list[str]:
    """Return the files that `tool.paddock.compiled` names, `__init__.py` left out."""
    found = {
        str(path)
        for pattern in SETTINGS["tool"]["paddock"]["compiled"]
        for path in Path().glob(pattern)
        if path.name != "__init__.py"
    }
    return sorted(found)


def sources_in_c() -> list[str]:
    """Return the files that `tool.paddock.in-c` names."""
    return list(SETTINGS["tool"]["paddock"].get("in-c", []))


def module_of(source: str) -> str:
    """Return the dotted name of the module that a file below `src` becomes."""
    return ".".join(Path(source).with_suffix("").parts[1:])


def is_set(variable: str) -> bool:
    """Return whether an environment variable is 1."""
    return os.environ.get(variable) == "1"


def check_that_it_can_be_compiled() -> None:
    """Raise NotCompiledError if compilation is not wanted, or nothing to compile with is there."""
    if is_set("PADDOCK_PURE"):
        raise NotCompiledError("PADDOCK_PURE=1 asks for it")
    if {"editable_wheel", "develop"} & set(sys.argv):
        # Compiled modules in the source tree would hide every later edit of their source.
        raise NotCompiledError("an editable install runs the source as it is after each edit")
    if platform.python_implementation() != "CPython":
        raise NotCompiledError("what mypyc compiles runs on CPython only")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise NotCompiledError("Python's headers are not installed (Debian: python3-dev)")
    # As setuptools chooses it.
    command = os.environ.get("CC") or str(sysconfig.get_config_var("CC"))
    if shutil.which(command.split()[0]) is None:
        raise NotCompiledError(f"there is no C compiler {command!r} (Debian: gcc and libc6-dev)")


def compiles(compiling: Sequence[str] = (), linking: Sequence[str] = ()) -> bool:
    """Return whether a tiny module compiles and links with these options."""
    compiler = new_compiler()
    customize_compiler(compiler)
    with TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(PROBE, encoding="utf-8")
        try:
            # The object file of an absolute path is placed below `folder`.
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


def without_folders(runtime: Path) -> list[str]:
    """Return the options that keep folders of this machine out of what is compiled.

    Assertions in headers name the files that they are in. What is built twice must be the same.
    """
    folders = {str(runtime): "mypyc", sysconfig.get_path("include"): "include"}
    return [f"-ffile-prefix-map={folder}={name}" for folder, name in folders.items()]


def generated() -> list[Extension]:
    """Generate C code with mypyc; raise NotCompiledError if that is not meant."""
    check_that_it_can_be_compiled()
    if not compiles():
        fail("the C compiler does not compile the smallest module (Debian: gcc and libc6-dev)")
    try:
        from mypyc import build as mypyc
    except ImportError:
        fail("mypy is not in the environment that builds it")
    # The build environment may lack packages that are needed only at run time.
    flags = ["--follow-imports=silent", "--ignore-missing-imports"]
    try:
        found = mypyc.mypycify(
            [*flags, *compiled_sources()],
            opt_level=os.environ.get("PADDOCK_OPT_LEVEL", "3"),
            debug_level="0",
            target_dir=GENERATED,
            group_name="paddock",
        )
    except SystemExit as refusal:
        # A later mypy may report an error where ours reports none.
        fail(f"mypyc refuses it: {refusal}")
    if sys.platform == "linux":
        found += [Extension(module_of(source), [source]) for source in sources_in_c()]
    options = [*COMPILER_OPTIONS, *without_folders(Path(mypyc.__file__).parent)]
    takes_options = sys.platform == "linux" and compiles(
        options, LIBRARY_LINKER_OPTIONS + MODULE_LINKER_OPTIONS
    )
    for extension in found:
        # A later compiler may warn where ours does not.
        strict = extension.extra_compile_args
        extension.extra_compile_args = [option for option in strict if option != "-Werror"]
        if takes_options:
            extension.extra_compile_args += options
            is_library = extension.name.endswith(LIBRARY_SUFFIX)
            extension.extra_link_args += (
                LIBRARY_LINKER_OPTIONS if is_library else MODULE_LINKER_OPTIONS
            )
    return list(found)


def extensions() -> list[Extension]:
    """Return the extensions to compile: none for a pure build."""
    try:
        return generated()
    except NotCompiledError as reason:
        go_on_without(reason)
        return []


def requirements() -> list[str]:
    """Return what compilation needs; pip asks for it before it builds."""
    try:
        check_that_it_can_be_compiled()
    except NotCompiledError:
        return []
    return list(SETTINGS["dependency-groups"]["compile"])


def go_on_without(reason: object) -> None:
    """Report why the build is plain Python; exit if PADDOCK_COMPILE=1 forbids that."""
    if is_set("PADDOCK_COMPILE") and not is_set("PADDOCK_PURE"):
        raise SystemExit(f"paddock: PADDOCK_COMPILE=1 is set, but it is not compiled: {reason}")
    sys.stderr.write(f"paddock: built as plain Python: {reason}\n")


def fail(reason: str) -> NoReturn:
    """End a build that was to be compiled and cannot be."""
    remove_what_was_built()
    raise SystemExit(f"paddock: not built: {reason}; PADDOCK_PURE=1 builds plain Python")


def remove_what_was_built() -> None:
    """Remove earlier builds: a stale compiled module would shadow its source."""
    for folder in Path("build").glob("lib*"):
        shutil.rmtree(folder)


def main() -> None:
    """Print metadata or build the package, as the command line asks."""
    if {"egg_info", "dist_info", "sdist"} & set(sys.argv):
        setup(setup_requires=requirements() if "egg_info" in sys.argv else [])
        return
    remove_what_was_built()
    if found := extensions():
        try:
            # Always recompile: an object file does not record its compiler options.
            options = {"force": True, "parallel": os.cpu_count() or 1}
            setup(ext_modules=found, options={"build_ext": options})
        except SystemExit as failure:
            fail(f"{failure.code}")
        return
    setup()


if __name__ == "__main__":
    main()
