"""`paddock shell` in a script: what it adds to upstream's, and how it fails.

What it has in common with upstream's is in tests/conformance/test_shell_transcripts.py, the shell
on a terminal in a module of its own.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from pathlib import Path

import pytest

import paddock
from paddock.server.config.config import ServerConfig
from paddock.sync import Client
from paddock.testing import ServerThread
from tests.support.certificates import Authority, name
from tests.support.command import COMMAND, DEADLINE_S, refusal
from tests.support.command import paddock as run_paddock
from tests.support.paddock_server import PaddockServer
from tests.support.server import Service, free_port
from tests.support.shells import Conversation, paddock_shell

READ, ADMIN = paddock.Permission.READ, paddock.Permission.ADMIN
GREETING = "Connecting to {}\n\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null\n"


def run(service: Service, *lines: str | bytes) -> tuple[int, bytes, bytes]:
    """Run lines; give the status, and what was printed behind the greeting."""
    raw = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    ended = run_paddock("shell", "-server", service.hosts, input=raw)
    greeting = GREETING.format(service.hosts).encode()
    assert ended.stdout.startswith(greeting)
    return ended.returncode, ended.stdout.removeprefix(greeting), ended.stderr


@pytest.mark.everywhere
def test_data_are_shown_and_given_as_base64_and_as_bytes(
    service: Service, client: Client, path: str
) -> None:
    data = bytes(range(20))
    text = base64.b64encode(data).decode()
    status, output, errors = run(service, f"set -b {path} {text}", f"get -b {path}")
    assert (status, output.decode(), errors) == (0, f"{text}\n", b"")
    assert client.get(path).data == data
    _, output, _ = run(service, f"get -x {path}", f"get -b -x {path}")
    table = (
        "         +-------------------------------------------------+\n"
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n"
        "+--------+-------------------------------------------------+----------------+\n"
        "|00000000| 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f |................|\n"
        "|00000010| 10 11 12 13                                     |....            |\n"
        "+--------+-------------------------------------------------+----------------+\n"
    )
    assert output.decode() == table * 2
    status, output, errors = run(service, f"set -b {path} not-base64!")
    assert (status, output) == (1, b"")
    assert errors.startswith(b"data is not in base64: ")
    assert client.get(path).data == data


def test_bytes_that_are_no_text_go_in_as_they_are(
    service: Service, client: Client, path: str
) -> None:
    status, _, _ = run(service, b"set " + path.encode() + b" a\xff\xfe")
    assert status == 0
    assert client.get(path).data == b"a\xff\xfe"


def test_a_node_without_data_is_told_from_one_with_empty_data(
    service: Service, client: Client, path: str
) -> None:
    client.create(f"{path}/none", None)
    client.create(f"{path}/empty", b"")
    assert client.get(f"{path}/none").is_null
    assert not client.get(f"{path}/empty").is_null
    assert client.get(f"{path}/none").data == b""
    _, output, _ = run(service, f"get {path}/none", f"get {path}/empty")
    assert output == b"null\n\n"


def test_what_ends_upstreams_shell_is_one_line_and_the_shell_goes_on(service: Service) -> None:
    no_option = "org.apache.commons.cli.UnrecognizedOptionException: Unrecognized option:"
    said = {
        '"': "No command entered",
        "delete -v x /zookeeper": 'For input string: "x"',
        "set -v 99999999999 /zookeeper x": 'For input string: "99999999999"',
        "redo x": 'For input string: "x"',
        "addWatch relative": "Path must start with / character",
        "connect 127.0.0.1:x": "hosts '127.0.0.1:x': '127.0.0.1:x' is no host:port",
        "ls -=5": f"{no_option} -=5",
    }
    status, output, errors = run(service, *said, "ls /zookeeper/quota", "redo x")
    assert (status, output) == (1, b"[]\n")
    lines = [line for line in errors.decode().splitlines() if not line.startswith(("\t", "Zoo"))]
    assert lines == [*said.values(), said["redo x"]]


def test_deleteall_goes_in_batches_each_as_a_whole_or_not_at_all(
    service: Service, client: Client, path: str
) -> None:
    # Apache's shell says the same, but not always: it may look before it has taken note.
    client.create(f"{path}/shut")
    client.create(f"{path}/shut/below")
    client.set_acl(f"{path}/shut", [paddock.world_acl(READ | ADMIN)])
    status, output, errors = run(service, f"deleteall -b 1 {path}", f"deleteall {path}")
    assert (status, output) == (0, b"")
    assert errors == b"Failed to delete some node(s) in the subtree!\n" * 2
    assert client.exists(f"{path}/shut/below") is not None
    client.set_acl(f"{path}/shut", paddock.OPEN_ACL)
    client.create(f"{path}/more")
    assert run(service, f"deleteall -b 2 {path}/shut", f"deleteall -b 0 {path}/more") == (
        0,
        b"",
        b"",
    )
    assert client.children(path) == []


def test_the_session_ends_with_the_shell(service: Service, client: Client, path: str) -> None:
    status, output, errors = run(service, f"create -e {path}/mine")
    assert (status, output, errors.decode()) == (0, b"", f"Created {path}/mine\n")
    assert client.exists(f"{path}/mine") is None


def test_the_status_is_that_of_the_last_command(service: Service) -> None:
    assert run(service, "ls /zookeeper", "get /nothing")[0] == 1
    assert run(service, "get /nothing", "ls /zookeeper")[0] == 0
    assert run(service, "nonsense", "quit")[0] == 1


def test_lines_may_end_as_windows_has_them(service: Service, path: str) -> None:
    status, output, _ = run(service, f"ls {path}\r")
    assert (status, output) == (0, b"[]\n")


def test_a_command_may_have_flags_and_the_service_be_in_the_environment(
    service: Service, path: str
) -> None:
    ended = subprocess.run(
        [*COMMAND, "shell", "ls", "-R", path],
        env={**os.environ, "PADDOCK_SERVER": service.hosts},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert ended.stdout.decode() == f"{GREETING.format(service.hosts)}{path}\n"


def test_two_hyphens_do_as_well(service: Service, path: str) -> None:
    ended = run_paddock("shell", "--server", service.hosts, "--timeout", "20000", "ls", path)
    assert ended.stdout.decode() == f"{GREETING.format(service.hosts)}[]\n"


def test_events_come_while_nobody_writes(service: Service, client: Client, path: str) -> None:
    with Conversation(paddock_shell("-server", service.hosts)) as talk:
        talk.say(f"get -w {path}")
        talk.hear("path:null\n\n")
        client.set(path, b"x")
        talk.hear(f"WatchedEvent state:SyncConnected type:NodeDataChanged path:{path}\n")
        assert talk.end() == 0


def test_a_command_waits_for_a_server_that_comes_back() -> None:
    with (
        PaddockServer() as server,
        Conversation(paddock_shell("-server", server.hosts)) as talk,
    ):
        talk.hear("state:SyncConnected type:None path:null\n")
        server.stop()
        talk.hear("state:Disconnected type:None path:null\n")
        talk.say("ls /zookeeper")
        server.start()
        talk.hear("state:SyncConnected type:None path:null\n")
        assert talk.hear("]\n") == "[config, quota]\n"
        assert talk.end() == 0


def test_ctrl_c_ends_a_script_that_waits(service: Service, client: Client, path: str) -> None:
    with Conversation(paddock_shell("-server", service.hosts)) as talk:
        talk.say(f"create -e {path}/mine")
        talk.hear(f"Created {path}/mine\n")
        os.kill(talk.pid, signal.SIGINT)
        assert talk.wait() == 130
    assert client.exists(f"{path}/mine") is None


def test_a_reader_who_goes_away_ends_it(service: Service, path: str) -> None:
    read, write = os.pipe()
    with subprocess.Popen(
        paddock_shell("-server", service.hosts, "ls", path),
        stdin=subprocess.DEVNULL,
        stdout=write,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(read)
        os.close(write)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, errors) == (128 + signal.SIGPIPE, b"")


def test_a_service_that_is_not_there_is_one_line() -> None:
    hosts = f"127.0.0.1:{free_port()}"
    ended = run_paddock("shell", "-timeout", "1000", "-server", hosts, input=b"ls /\nls /\n")
    assert (ended.returncode, ended.stdout.decode()) == (1, f"Connecting to {hosts}\n")
    assert ended.stderr.decode() == (
        f"paddock: connect: no server gave us a session within 1 s: {hosts}: Connection refused\n"
    )


def test_a_service_that_is_not_there_any_more_is_not_connected(service: Service) -> None:
    away = f"127.0.0.1:{free_port()}"
    ended = run_paddock(
        *("shell", "-timeout", "2000", "-server", service.hosts),
        input=f"connect {away}\nls /\nls /\n".encode(),
    )
    assert ended.stderr == b"KeeperErrorCode = ConnectionLoss\n"
    assert ended.stdout.endswith(b"state:Closed type:None path:null\nNot connected\n")
    assert ended.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-server", "a b:x"), "Invalid value for -server: hosts 'a b:x': 'a b:x' is no host:port"),
        (("-server",), "Option '-server' requires an argument."),
        (("-timeout", "soon"), "Invalid value for '-timeout'"),
        (("-client-configuration", "/nowhere"), "/nowhere: cannot be read"),
    ],
)
def test_what_is_given_wrongly_is_one_line_and_status_2(
    arguments: tuple[str, ...], says: str
) -> None:
    assert says in refusal("shell", *arguments, status=2)


def test_a_configuration_secures_the_connection(tmp_path: Path) -> None:
    authority = Authority()
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem())
    alice = authority.issue(name("CN=alice")).write(tmp_path / "alice.pem")
    server_store = authority.issue(name("CN=server")).write(tmp_path / "server.pem")
    file = tmp_path / "client.cfg"
    file.write_text(
        "zookeeper.client.secure=true\n"
        "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty\n"
        f"zookeeper.ssl.trustStore.location={trusted}\n"
        f"zookeeper.ssl.keyStore.location={alice}\n"
    )
    config = ServerConfig(
        port=0, secure_port=0, tls_key_store=server_store, tls_trust_store=trusted
    )
    with ServerThread(config=config) as server:
        hosts = f"localhost:{server.secure_address[1]}"
        ended = run_paddock("shell", "-client-configuration", file, "-server", hosts, "whoami")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"x509: CN=alice\n" in ended.stdout


def test_exit_is_quit(service: Service) -> None:
    status, out, err = run(service, "exit", "ls /")
    assert (status, err) == (0, b"")
    assert b"zookeeper" not in out
