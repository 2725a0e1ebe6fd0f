"""Three PostgreSQL servers that Patroni keeps, on this machine, with Paddock to agree by.

Their configuration is that of the page, with ports and folders of their own. A node is Patroni and
its PostgreSQL. It is killed as a machine that loses power, and paused as one that is suspended: all
its processes. It reaches Paddock by a proxy of its own, so it can be cut off from it. PostgreSQL
refuses to run as root, so nodes run as its own user then, in the way that the page says.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

import yaml

from paddock.testing import FaultProxy
from tests.applications.environment import (
    DEADLINE_S,
    PAGE,
    block,
    installed,
    variables,
    wait_for,
    wait_until,
)
from tests.support.documents import Page
from tests.support.server import ServerMissingError, free_ports

NAMES: Final = ("a", "b", "c")
_STOP_DEADLINE_S: Final = 60.0
_QUERY_DEADLINE_S: Final = 30.0
_USER: Final = "postgres"


class QueryError(Exception):
    """PostgreSQL refused a query, or cannot be asked, or does not vouch for the answer."""


def postgresql() -> Path:
    """Return the folder with PostgreSQL's programs, those of the newest version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=_version)
    if not found or not found[-1].with_name("psql").exists():
        raise ServerMissingError("PostgreSQL is missing (Debian: apt-get install postgresql)")
    return found[-1].parent


def _version(program: Path) -> float:
    return float(program.parts[-3])


def change_of_user(page: Page) -> list[str]:
    """Return the words that run a command as PostgreSQL's user: those of the page, or none."""
    if os.geteuid() != 0:
        return []
    words = shlex.split(block(page, "As root"))
    return words[: words.index("patroni")]


def a_python(prefix: list[str]) -> str:
    """Return a Python that PostgreSQL's user may run: ours, or the machine's."""
    for python in (str(Path(sys.base_prefix, "bin", "python3")), "/usr/bin/python3"):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            # By way of a shell: setpriv itself still has root's right to enter any folder.
            command = [*prefix, "sh", "-c", '"$0" -c "import ensurepip, venv"', python]
            subprocess.run(command, check=True, capture_output=True, timeout=60, cwd="/")
            return python
    raise ServerMissingError(f"there is no Python with venv that the user {_USER} may run")


class Node:
    """Patroni and its PostgreSQL."""

    def __init__(
        self,
        command: list[str],
        configuration: dict[str, Any],
        folder: Path,
        way_to_paddock: FaultProxy,
    ) -> None:
        self.name: str = configuration["name"]
        self.way_to_paddock = way_to_paddock
        self.port = int(configuration["postgresql"]["listen"].rpartition(":")[2])
        self._rest_port = int(configuration["restapi"]["listen"].rpartition(":")[2])
        self._password: str = configuration["postgresql"]["authentication"]["superuser"]["password"]
        self._data = Path(configuration["postgresql"]["data_dir"])
        # Not the one in PATH, which is a script that starts this one.
        self._psql = str(Path(configuration["postgresql"]["bin_dir"], "psql"))
        self._command = command
        self._folder = folder
        self.log = folder / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Patroni, which starts PostgreSQL."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=variables(Path(self._command[-2]).parent),
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill all its processes."""
        doomed = self._signal(signal.SIGKILL)
        process, self._process = self._process, None
        if process is not None:
            process.wait(_STOP_DEADLINE_S)
        wait_until(lambda: not any(map(_runs, doomed)), f"PostgreSQL of {self.name} has ended")

    def pause(self) -> None:
        """Stop all its processes in the middle of what they do, until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop both cleanly, or kill what does not stop."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_DEADLINE_S)
        self.kill()

    def status(self) -> dict[str, Any]:
        """Return what Patroni says of its node; nothing if it does not answer."""
        return self._ask("GET", "/patroni")

    def may_be_succeeded(self) -> bool:
        """Return whether Patroni has written down a node that is in step, and may lead next."""
        members = self._ask("GET", "/cluster").get("members", [])
        return any(one.get("role") == "sync_standby" for one in members)

    def configure(self, settings: dict[str, Any]) -> None:
        """Change the settings of all nodes."""
        assert self._ask("PATCH", "/config", json.dumps(settings)), "the settings are refused"

    def query(self, statement: str) -> str:
        """Return what PostgreSQL answers."""
        return self.ask(f"host=127.0.0.1 port={self.port}", statement)

    def ask(self, address: str, statement: str) -> str:
        """Return what is answered at an address of libpq.

        A warning is a refusal: with one, PostgreSQL confirms what only the primary has.
        """
        connection = f"{address} user=postgres dbname=postgres connect_timeout=3"
        try:
            done = subprocess.run(
                [self._psql, "-X", "-q", "-A", "-t", "-c", statement, connection],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_QUERY_DEADLINE_S,
                env={**os.environ, "PGPASSWORD": self._password},
            )
        except subprocess.TimeoutExpired as failure:
            raise QueryError(f"{statement}: no answer") from failure
        if done.returncode or "WARNING" in done.stderr:
            raise QueryError(f"{statement}: {done.stderr.strip()}")
        return done.stdout.strip()

    def is_primary(self) -> bool:
        """Return whether PostgreSQL takes writes here, as it says itself."""
        return self._is_in_recovery() == "f"

    def is_read_only(self) -> bool:
        """Return whether PostgreSQL runs here and takes no writes, as it says itself."""
        return self._is_in_recovery() == "t"

    def control(self, *words: str) -> str:
        """Return what `patronictl` says with this node's configuration."""
        *prefix, patroni, file = self._command
        command = [*prefix, str(Path(patroni).with_name("patronictl")), "-c", file, *words]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_S,
            cwd=self._folder,
            env=variables(Path(patroni).parent),
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def _is_in_recovery(self) -> str | None:
        try:
            return self.query("select pg_is_in_recovery()")
        except QueryError:
            return None

    def _ask(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        connection = HTTPConnection("127.0.0.1", self._rest_port, timeout=10)
        try:
            connection.request(method, path, body)
            answer = json.loads(connection.getresponse().read())
        except (OSError, HTTPException, ValueError):
            return {}
        finally:
            connection.close()
        return answer if isinstance(answer, dict) else {}

    def _signal(self, number: int) -> list[int]:
        """Send a signal to Patroni and to every process of PostgreSQL; return the latter."""
        if self._process is not None:
            self._process.send_signal(number)
        postmaster = self._postmaster()
        if postmaster is None:
            return []
        # The first one comes first: it starts the others.
        _send(postmaster, number)
        children = _children(postmaster)
        for child in children:
            _send(child, number)
        return [postmaster, *children]

    def _postmaster(self) -> int | None:
        """Return the id of PostgreSQL's first process, if it runs."""
        try:
            process = int((self._data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        # The file outlives a process that was killed, and its number may be given away again.
        return process if _runs(process) and _serves(process, self._data) else None


def _send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _stat(process: int) -> tuple[str, int] | None:
    """Return the state of a process and the id of its parent; nothing if it is gone."""
    try:
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return state, int(parent)


def _runs(process: int) -> bool:
    """Return whether a process runs; one that nobody has waited for does not."""
    found = _stat(process)
    return found is not None and found[0] != "Z"


def _children(process: int) -> list[int]:
    every = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [one for one in every if (found := _stat(one)) is not None and found[1] == process]


def _serves(process: int, data: Path) -> bool:
    try:
        return str(data).encode() in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


class Cluster:
    """Three nodes."""

    def __init__(self, ways_to_paddock: Sequence[FaultProxy], folder: Path) -> None:
        page = Page(PAGE)
        example = yaml.safe_load(block(page, "a.yml"))
        programs = postgresql()
        prefix = change_of_user(page)
        patroni = installed("patroni", a_python(prefix)) / "patroni"
        command = [*prefix, "sh", "-c", '"$0" --version', str(patroni)]
        check = subprocess.run(command, capture_output=True, timeout=60, cwd="/")
        if check.returncode:
            raise ServerMissingError(f"the user {_USER} may not run {patroni}")
        ports = free_ports(2 * len(NAMES))
        self.scope: str = example["scope"]
        self.retry_timeout_s: int = example["bootstrap"]["dcs"]["retry_timeout"]
        self.nodes: list[Node] = []
        for name, way in zip(NAMES, ways_to_paddock, strict=True):
            mine = copy.deepcopy(example)
            mine["name"] = name
            mine["zookeeper"]["hosts"] = way.hosts
            for part in (mine["restapi"], mine["postgresql"]):
                part["listen"] = part["connect_address"] = f"127.0.0.1:{ports.pop()}"
            mine["postgresql"]["bin_dir"] = str(programs)
            mine["postgresql"]["data_dir"] = str(folder / f"data-{name}")
            mine["postgresql"]["pgpass"] = str(folder / f"pgpass-{name}")
            mine["postgresql"]["parameters"]["unix_socket_directories"] = str(folder)
            file = folder / f"{name}.yml"
            file.write_text(yaml.safe_dump(mine))
            self.nodes.append(Node([*prefix, str(patroni), str(file)], mine, folder, way))
        if prefix:
            user = pwd.getpwnam(_USER)
            for path in (folder, *folder.iterdir()):
                os.chown(path, user.pw_uid, user.pw_gid)

    @property
    def writable(self) -> str:
        """The address by which libpq finds the primary."""
        hosts = ",".join("127.0.0.1" for _ in self.nodes)
        ports = ",".join(str(node.port) for node in self.nodes)
        return f"host={hosts} port={ports} target_session_attrs=read-write"

    def primaries(self) -> list[Node]:
        return [node for node in self.nodes if node.is_primary()]

    def leader(self) -> Node:
        """Wait until all is well: one primary, and two that stream from it, one of them in step.

        Patroni has to know that, too: it promotes nobody else, however long the primary is away.
        """
        return wait_for(self._leader, "there are one primary and two replicas", self.story)

    def successor(self, before: Node) -> Node:
        """Wait until another node is primary."""

        def found() -> Node | None:
            return next((one for one in self.nodes if one is not before and one.is_primary()), None)

        return wait_for(found, f"another than {before.name} is primary", self.story)

    def _leader(self) -> Node | None:
        primaries = self.primaries()
        if len(primaries) != 1 or primaries[0].status().get("role") != "primary":
            return None
        streams = "select count(*) filter (where sync_state = 'sync'), count(*)"
        try:
            found = primaries[0].query(
                f"{streams} from pg_stat_replication where state = 'streaming'"
            )
        except QueryError:
            return None
        in_step, streaming = map(int, found.split("|"))
        if not in_step or streaming < len(self.nodes) - 1:
            return None
        return primaries[0] if primaries[0].may_be_succeeded() else None

    def story(self) -> str:
        """Return the ends of the logs, for a test that fails."""
        tails = [
            f"--- {node.name}\n{node.log.read_text(errors='replace')[-2000:]}"
            for node in self.nodes
            if node.log.exists()
        ]
        return "\n".join(tails)


@contextlib.contextmanager
def running(paddock: tuple[str, int]) -> Iterator[Cluster]:
    """Run a cluster from its first start to its end, and remove its folder."""
    folder = Path(tempfile.mkdtemp(prefix="paddock-test-patroni-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        ways = [stack.enter_context(FaultProxy(paddock, seen_max=0)) for _ in NAMES]
        cluster = Cluster(ways, folder)
        for node in cluster.nodes:
            stack.callback(node.stop)
            node.start()
        cluster.leader()
        yield cluster
