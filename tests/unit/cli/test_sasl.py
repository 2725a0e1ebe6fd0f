"""The options of SASL: which credentials they stand for, and what is said of bad ones."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from paddock.cli.past.remote import _arguments
from paddock.cli.sasl import Sasl, SaslOptions, sasl_options
from paddock.client.session.handshake import SaslCredentials
from paddock.client.session.kerberos import KerberosCredentials
from paddock.server.config.sources import Settings

ALICE = SaslCredentials("alice", "her secret")


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kerberos can be had, whether it is installed here or not."""
    monkeypatch.setitem(sys.modules, "gssapi", ModuleType("gssapi"))


@pytest.fixture
def password(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text("her secret\n")
    return file


def options(*arguments: str | Path) -> tuple[SaslOptions, SaslOptions]:
    """Return what a command is given for a service, and for another one."""

    @click.command()
    @sasl_options()
    @sasl_options("from-")
    def command(sasl: SaslOptions, from_sasl: SaslOptions) -> tuple[SaslOptions, SaslOptions]:
        return sasl, from_sasl

    result: Any = command.main([*map(str, arguments)], standalone_mode=False)
    return result  # type: ignore[no-any-return]


def given(*arguments: str | Path) -> Sasl | None:
    return options(*arguments)[0].credentials("one:2181", asks=False)


def refusal(*arguments: str | Path) -> tuple[str, int]:
    with pytest.raises(click.ClickException) as caught:
        given(*arguments)
    return caught.value.format_message(), caught.value.exit_code


def test_without_options_nobody_is_meant() -> None:
    assert given() is None


def test_a_password_comes_from_a_file_or_a_variable(
    monkeypatch: pytest.MonkeyPatch, password: Path
) -> None:
    assert given("--sasl-user", "alice", "--sasl-password-file", password) == ALICE
    monkeypatch.setenv("PADDOCK_SASL_PASSWORD", " another ")
    assert given("--sasl-user", "alice") == SaslCredentials("alice", " another ")
    assert given("--sasl-user", "alice", "--sasl-password-file", password) == ALICE
    monkeypatch.setenv("PADDOCK_SASL_USER", "alice")
    monkeypatch.setenv("PADDOCK_SASL_PASSWORD_FILE", str(password))
    assert given() == ALICE


def test_a_line_may_end_as_on_windows(password: Path) -> None:
    password.write_bytes("päss\r\n".encode())
    found = given("--sasl-user", "alice", "--sasl-password-file", password)
    assert found == SaslCredentials("alice", "päss")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "there is no password in it"),
        (b"\r\n", "there is no password in it"),
        (b"one\ntwo\n", "expected one line, the password"),
        (b"x" * 5000, "expected one line, the password"),
        (b"\xff\xfe", "the password is not UTF-8"),
    ],
    ids=["empty", "only an end", "lines", "long", "bytes"],
)
def test_a_file_without_a_password_is_named(password: Path, content: bytes, says: str) -> None:
    password.write_bytes(content)
    line, status = refusal("--sasl-user", "alice", "--sasl-password-file", password)
    assert (line, status) == (f"{password}: {says}", 1)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "none"
    line, status = refusal("--sasl-user", "alice", "--sasl-password-file", file)
    assert (line, status) == (f"{file}: No such file or directory", 1)


def test_without_a_password_and_without_somebody_to_ask_it_says_where_to_put_it() -> None:
    line, status = refusal("--sasl-user", "alice")
    assert line == (
        "no password for 'alice': --sasl-password-file names a file with it, or"
        " PADDOCK_SASL_PASSWORD has it"
    )
    assert status == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--sasl-user", "alice", "--kerberos"], "--sasl-user and --kerberos: which is meant?"),
        (["--sasl-user", "alice", "--kerberos-user", "alice"], "which is meant?"),
        (["--sasl-password-file", "x"], "--sasl-password-file needs --sasl-user"),
        (["--kerberos-server", ""], "server: expected text that is not empty"),
        (["--kerberos-server", "/_HOST"], "service: expected text that is not empty"),
        (["--kerberos-user", ""], "principal: expected text that is not empty"),
    ],
)
def test_what_contradicts_itself_is_one_line(arguments: list[str], says: str) -> None:
    line, status = refusal(*arguments)
    assert says in line
    assert status == 2


def test_the_command_line_counts_more_than_the_environment(
    monkeypatch: pytest.MonkeyPatch, password: Path
) -> None:
    monkeypatch.setenv("PADDOCK_SASL_USER", "alice")
    monkeypatch.setenv("PADDOCK_SASL_PASSWORD_FILE", str(password))
    assert given("--kerberos") == KerberosCredentials()
    monkeypatch.setenv("PADDOCK_KERBEROS", "0")
    assert given() == ALICE
    monkeypatch.setenv("PADDOCK_KERBEROS", "1")
    assert given("--sasl-user", "alice") == ALICE
    assert "which is meant?" in refusal()[0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--kerberos"], KerberosCredentials()),
        (["--kerberos-user", "app/web1"], KerberosCredentials("app/web1")),
        (["--kerberos-keytab", "app.keytab"], KerberosCredentials(keytab=Path("app.keytab"))),
        (["--kerberos-server", "zk/one"], KerberosCredentials(server="zk/one")),
        (["--kerberos-server", "zk/_HOST"], KerberosCredentials(service="zk", canonicalize=False)),
    ],
)
def test_kerberos_is_meant_by_each_of_its_options(
    arguments: list[str], expected: KerberosCredentials
) -> None:
    assert given(*arguments) == expected


def test_kerberos_has_variables_that_no_server_takes_for_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PADDOCK_KERBEROS_USER", "alice@EXAMPLE.COM")
    monkeypatch.setenv("PADDOCK_KERBEROS_SERVER", "zk/_HOST")
    assert given() == KerberosCredentials("alice@EXAMPLE.COM", service="zk", canonicalize=False)
    # This one is a server's.
    monkeypatch.setenv("PADDOCK_KERBEROS_KEYTAB", "zookeeper.keytab")
    assert given() == KerberosCredentials("alice@EXAMPLE.COM", service="zk", canonicalize=False)


def test_a_server_passes_over_all_these_variables() -> None:
    @click.command()
    @sasl_options()
    def command(sasl: SaslOptions) -> None: ...

    variables = [one.envvar for one in command.params if isinstance(one.envvar, str)]
    assert len(variables) == 5
    passwords = ["PADDOCK_SASL_PASSWORD", "PADDOCK_FROM_SASL_PASSWORD"]
    settings = Settings()
    settings.read_environment(dict.fromkeys([*variables, *passwords, "PADDOCK_AUTH"], "1"))
    assert settings.warnings == []
    assert settings.config() == Settings().config()


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    line, status = refusal("--kerberos")
    assert "pip install 'paddock-zk[kerberos]'" in line
    assert status == 1


def test_another_service_has_options_of_its_own(
    monkeypatch: pytest.MonkeyPatch, password: Path
) -> None:
    monkeypatch.setenv("PADDOCK_SASL_USER", "alice")
    monkeypatch.setenv("PADDOCK_SASL_PASSWORD_FILE", str(password))
    own, other = options("--from-kerberos-user", "bob")
    assert own.credentials("one:2181") == ALICE
    assert other.credentials("two:2181") == KerberosCredentials("bob")
    _, other = options("--from-sasl-user", "bob")
    with pytest.raises(click.UsageError, match="PADDOCK_FROM_SASL_PASSWORD has it"):
        other.credentials("two:2181", asks=False)
    monkeypatch.setenv("PADDOCK_FROM_SASL_PASSWORD", "his")
    assert other.credentials("two:2181") == SaslCredentials("bob", "his")
    assert options()[1] == SaslOptions()


def test_a_server_that_is_asked_about_its_past_is_not_told() -> None:
    @click.command()
    @click.argument("path")
    @sasl_options()
    def command(sasl: SaslOptions, path: str) -> list[str]:
        return _arguments(click.get_current_context())

    words = ["--sasl-user", "alice", "--sasl-password-file", "secret"]
    kerberos = ["--kerberos", "--kerberos-user", "a", "--kerberos-keytab", "k"]
    for arguments in (words, [*kerberos, "--kerberos-server", "zk/one"]):
        assert command.main(["/a", *arguments], standalone_mode=False) == ["--", "/a"]
