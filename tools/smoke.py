"""Try an installed Paddock as its users do: `python tools/smoke.py FOLDER_OF_ITS_COMMAND`.

A server with a data folder, a node that is created and read, a restart that keeps it, the shell,
and a lock of a Python program. Everything runs in the environment whose `bin` is given, in an empty
folder, so that nothing of this repository can stand in for what was not installed.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

DEADLINE_S = 120
# How long a command looks for the server, on a machine that may have much else to do.
PATIENCE_S = 60
PROGRAM = """\
import sys
from paddock.sync import connect
from paddock.sync.recipes import Lock

with connect(sys.argv[1], session_timeout=float(sys.argv[2])) as client:
    with Lock(client, "/smoke/lock") as grant:
        print("token", grant.token)
"""


class Smoke:
    """One installed Paddock, and a folder to try it in."""

    def __init__(self, commands: Path, folder: Path) -> None:
        self._paddock = str(commands.absolute() / "paddock")
        self._python = str(commands.absolute() / "python")
        self._folder = folder
        self._log = folder / "server.log"
        # Nothing of the caller's: a PYTHONPATH would hide what is installed.
        self._variables = {"PATH": f"{commands.absolute()}:/usr/bin:/bin", "HOME": str(folder)}

    def run(self, *command: str, given: str = "") -> str:
        """Run a command that must succeed; return what it prints."""
        result = subprocess.run(
            command,
            cwd=self._folder,
            env=self._variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        if result.returncode:
            log = self._log.read_text() if self._log.exists() else ""
            told = f"{' '.join(command)}: status {result.returncode}"
            raise SystemExit(f"{told}\n{result.stderr}\nthe log of the server:\n{log}")
        return result.stdout.strip()

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Run a server with the data folder; its address."""
        command = [self._paddock, "serve", "--host", "127.0.0.1", "--port", "0", "--data", "data"]
        with self._log.open("wb") as stderr:
            server = subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._variables,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            found = re.search(r"listens on (127\.0\.0\.1:\d+)", line)
            if not found:
                raise SystemExit(f"the server said {line!r}\n{self._log.read_text()}")
            yield found[1]
        finally:
            server.terminate()
            status = server.wait(DEADLINE_S)
            server.stdout.close()
        if status:
            raise SystemExit(f"the server ended with status {status}\n{self._log.read_text()}")

    def version(self) -> str:
        """Return what the command says of its build."""
        return self.run(self._paddock, "--version")

    def try_everything(self) -> None:
        """Try it; SystemExit names what failed."""
        with self.serving() as server:
            there = ["--server", server, "--timeout", str(PATIENCE_S)]
            self.run(self._paddock, "create", *there, "/smoke", "kept")
        with self.serving() as server:
            there = ["--server", server, "--timeout", str(PATIENCE_S)]
            expect("kept", self.run(self._paddock, "get", *there, "/smoke"))
            shell = [self._paddock, "shell", "-server", server, "-timeout", f"{PATIENCE_S}000"]
            expect("kept", self.run(*shell, given="get /smoke\n").splitlines()[-1])
            said = self.run(self._python, "-c", PROGRAM, server, str(PATIENCE_S))
            expect("token", said.split()[0])


def expect(wanted: str, found: str) -> None:
    """Raise SystemExit if something else was printed."""
    if wanted != found:
        raise SystemExit(f"expected {wanted!r}, not {found!r}")


def smoke(commands: Path) -> str:
    """Try what is installed; return its version."""
    with TemporaryDirectory() as folder:
        tried = Smoke(commands, Path(folder))
        tried.try_everything()
        return tried.version()


if __name__ == "__main__":
    print(smoke(Path(sys.argv[1])))
