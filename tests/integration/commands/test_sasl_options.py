"""Every command that connects authenticates by SASL, where nobody else is served."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock import SaslCredentials
from paddock.server.config.config import ServerConfig
from paddock.sync import connect
from paddock.testing import ServerThread
from tests.support.command import COMMAND, DEADLINE_S, ended_here, refusal_here, success_here
from tests.support.judges import skipped_where_missing
from tests.support.kerberos import REALM, Kdc, KerberosPaddock
from tests.support.sasl import ALICE, BOB, JAAS
from tests.support.terminal import CONTROL_C, ENTER, terminal


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that serves users of SASL only."""
    jaas = tmp_path_factory.mktemp("users") / "jaas.conf"
    jaas.write_text(JAAS)
    jaas.chmod(0o600)
    with ServerThread(config=ServerConfig(port=0, jaas_file=jaas, require_sasl=True)) as server:
        yield server.hosts


@pytest.fixture
def alice(hosts: str, tmp_path: Path) -> list[str | Path]:
    """The options that make a command hers."""
    password = tmp_path / "password"
    password.write_text(f"{ALICE[1]}\n")
    return ["--server", hosts, "--sasl-user", "alice", "--sasl-password-file", password]


@pytest.fixture
def _alice(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that make every command hers."""
    monkeypatch.setenv("PADDOCK_SERVER", hosts)
    monkeypatch.setenv("PADDOCK_SASL_USER", ALICE[0])
    monkeypatch.setenv("PADDOCK_SASL_PASSWORD", ALICE[1])


def test_nodes_are_those_of_the_user(hosts: str, alice: list[str | Path]) -> None:
    success_here("create", "/hers", "v1", "--acl", "auth::cdrwa", *alice)
    assert success_here("get", "/hers", *alice) == "v1"
    assert success_here("acl", "get", "/hers", *alice) == "sasl:alice:cdrwa\n"
    assert "requires SASL" in refusal_here("get", "/hers", "--server", hosts, status=1)
    success_here("delete", "/hers", *alice)


@pytest.mark.usefixtures("_alice")
def test_variables_serve_every_command(hosts: str, tmp_path: Path) -> None:
    success_here("create", "/all/a", "v1", "--parents", "--acl", "sasl:alice:cdrwa")
    assert success_here("ls", "/all") == "a\n"
    assert success_here("find", "/all", "--data", "v1") == "/all/a\n"
    assert "2 nodes" in success_here("tree", "/all")
    assert "version" in success_here("stat", "/all/a")
    success_here("set", "/all/a", "v2")
    watched = success_here("watch", "/all/a", "--initial", "--count", "1", "--json")
    assert json.loads(watched)["data"] == "v2"
    file = tmp_path / "all.jsonl"
    success_here("export", "/all", file)
    assert success_here("import", file, "/copy") == "/copy: 2 created\n"
    assert success_here("get", "/copy/a") == "v2"
    assert success_here("lock", "/line", "--", "true") == ""
    assert "standalone" in success_here("status")
    bench = ["bench", "--seconds", "0.05", "--clients", "2", "--ops", "get"]
    assert success_here(*bench) != ""
    said = success_here("shell", "whoami")
    assert "sasl: alice" in said
    with connect(hosts, sasl=SaslCredentials(*ALICE)) as client:
        for path in ("/all", "/copy", "/line"):
            client.delete_tree(path)


@pytest.mark.usefixtures("_alice")
def test_what_another_service_has_is_read_with_credentials_for_it(
    hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServerThread() as other:
        monkeypatch.setenv("PADDOCK_FROM_SASL_PASSWORD", BOB[1])
        with connect(hosts, sasl=SaslCredentials(*ALICE)) as client:
            client.create("/source", b"v1")
        source = ["/source", "/target", "--from", hosts, "--from-sasl-user", BOB[0]]
        monkeypatch.delenv("PADDOCK_SASL_USER")
        assert "1 created" in success_here("import", *source, "--server", other.hosts)
        assert success_here("get", "/target", "--server", other.hosts) == "v1"
        needs = refusal_here("import", "x", "/y", "--from-sasl-user", "bob", status=2)
        assert "needs --from" in needs


@pytest.mark.parametrize(
    ("user", "password"), [("alice", "a guess"), ("carol", ALICE[1])], ids=["password", "user"]
)
def test_who_is_refused_is_told_so_in_one_line(
    hosts: str, monkeypatch: pytest.MonkeyPatch, user: str, password: str
) -> None:
    monkeypatch.setenv("PADDOCK_SASL_PASSWORD", password)
    options = ["--server", hosts, "--sasl-user", user]
    says = f"connect: SASL as '{user}': the server did not accept user and password"
    for command in (["get", "/"], ["lock", "/line", "--", "true"], ["bench"]):
        assert refusal_here(command[0], *options, *command[1:], status=1) == says
    shell = ended_here("shell", *options, "ls", "/")
    assert (shell.status, shell.errors) == (1, f"paddock: {says}\n")


def test_a_server_without_sasl_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_SASL_PASSWORD", "secret")
    with ServerThread() as server:
        line = refusal_here("ls", "--server", server.hosts, "--sasl-user", "alice", status=1)
    assert "the server does not offer SASL" in line


def test_the_scheme_is_no_way_around_the_options(hosts: str) -> None:
    line = refusal_here("ls", "--server", hosts, "--auth", "sasl:alice:secret", status=2)
    assert line == "Invalid value for --auth: SASL has options of its own: --sasl-user"


def test_a_command_that_opens_no_session_asks_for_no_password(hosts: str, tmp_path: Path) -> None:
    assert "standalone" in success_here("status", "--server", hosts, "--sasl-user", "alice")
    # Of a moment of the past nobody is asked.
    past = ["--at", "1h", "--data", str(tmp_path), "--sasl-user", "alice"]
    assert "password" not in refusal_here("get", "/", *past, status=1)


def test_paths_are_completed_with_these_credentials(hosts: str, alice: list[str | Path]) -> None:
    success_here("create", "/found", *alice)

    def completed(**variables: str) -> bytes:
        words = {"COMP_WORDS": "paddock get /fo", "COMP_CWORD": "2", "PADDOCK_SERVER": hosts}
        words |= {"_PADDOCK_COMPLETE": "bash_complete", "PADDOCK_COMPLETION_SECONDS": "60"}
        environment = {**os.environ, **words, **variables}
        result = subprocess.run(COMMAND, capture_output=True, timeout=DEADLINE_S, env=environment)
        assert result.stderr == b""
        return result.stdout

    assert b"/found" in completed(PADDOCK_SASL_USER="alice", PADDOCK_SASL_PASSWORD=ALICE[1])
    # Nobody is asked for a password in the middle of a line.
    assert completed(PADDOCK_SASL_USER="alice") == b"\n"
    success_here("delete", "/found", *alice)


def test_on_a_terminal_the_password_is_asked_for_and_not_shown(hosts: str) -> None:
    asks = f"Password of bob at {hosts}:"
    command = [*COMMAND, "ls", "/zookeeper", "--server", hosts, "--sasl-user", "bob"]
    with terminal(command) as screen:
        screen.wait_for(asks)
        screen.type(BOB[1] + ENTER)
        assert screen.wait_for_end() == 0
        assert screen.lines[:3] == [asks, "config", "quota"]
        assert BOB[1].encode() not in screen.written
    with terminal([*COMMAND, "shell", "-server", hosts, "--sasl-user", "bob"]) as screen:
        screen.wait_for(asks)
        screen.type(CONTROL_C)
        assert screen.wait_for_end() == 130


@pytest.mark.judge
def test_kerberos_by_tickets_and_by_a_keytab(monkeypatch: pytest.MonkeyPatch) -> None:
    with skipped_where_missing(), Kdc() as kdc, KerberosPaddock(kdc) as server:
        options = ["--server", server.hosts, "--kerberos"]
        for name, value in kdc.environment().items():
            monkeypatch.setenv(name, value)
        assert "there is no ticket: run kinit" in refusal_here("get", "/", *options, status=1)
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.kinit('alice')}")
        success_here("create", "/hers", "v1", "--acl", "auth::cdrwa", *options)
        assert success_here("acl", "get", "/hers", *options) == f"sasl:alice@{REALM}:cdrwa\n"
        said = success_here("shell", "-server", server.hosts, "--kerberos", "get", "/hers")
        assert said.endswith("v1\n")
        # The host as it is named here, of another service than the one that the keytab is for.
        other = refusal_here("ls", *options, "--kerberos-server", "other/_HOST", status=1)
        assert "the KDC does not know the server as 'other/127.0.0.1'" in other
        # Without a ticket, by a file of ours and by one that the library has been told of.
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.folder}/none")
        keytab = kdc.keytab("bob")
        by_file = ["--kerberos-keytab", str(keytab), "--kerberos-user", "bob"]
        assert "sasl: bob@" in success_here("shell", "-server", server.hosts, *by_file, "whoami")
        monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{keytab}")
        assert success_here("ls", *options) == "hers\nzookeeper\n"
