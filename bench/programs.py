"""The programs in C beside this module, and how they are compiled."""

import subprocess
from pathlib import Path
from typing import Final

from bench.servers import BenchError, Server, free_port

HERE: Final = Path(__file__).parent
ZKLOAD: Final = HERE / "zkload"
LIMIT: Final = HERE / "limit"


def build() -> None:
    """Compile those that are older than their sources. Raises BenchError."""
    for program in (ZKLOAD, LIMIT):
        source = program.with_suffix(".c")
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            _compile(source, program)


def limit(folder: Path) -> Server:
    """Return the server that does the least that the work takes, with its log in `folder`."""
    folder.mkdir(parents=True)
    port = free_port()
    return Server("the limit", [str(LIMIT), str(port), str(folder / "log")], port, folder)


def _compile(source: Path, program: Path) -> None:
    try:
        subprocess.run(["gcc", "-O2", "-pthread", "-o", program, source], check=True)
    except FileNotFoundError:
        raise BenchError("gcc is not installed (Debian: apt-get install gcc)") from None
    except subprocess.CalledProcessError:
        raise BenchError(f"{source.name} does not compile") from None
