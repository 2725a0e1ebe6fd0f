"""Which service a command asks, and as whom: from options, from the environment, over TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.server.config.config import ServerConfig
from paddock.sync import Client
from paddock.testing import ServerThread
from tests.support.certificates import Authority, name
from tests.support.command import ended_here, refusal_here, success_here
from tests.support.server import Service


def test_the_environment_says_where_unless_an_option_does(
    service: Service, client: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create(f"{path}/a")
    monkeypatch.setenv("PADDOCK_SERVER", f"{service.hosts}{path}")
    assert success_here("ls") == "a\n"
    assert success_here("ls", "--server", f"{service.hosts}{path}/a") == ""


@pytest.mark.parametrize("command", ["ls", "get", "stat", "tree"])
def test_a_chroot_that_is_not_there_is_named(service: Service, command: str) -> None:
    line = refusal_here(command, "/", "--server", f"{service.hosts}/nope", status=1)
    assert line == "/: no such node; paths are below the chroot /nope of --server"


def test_several_identities_count_and_the_environment_may_have_them(
    service: Service, client: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = "digest:alice:a:b", "digest:bob:secret of his"
    for who in (alice, bob):
        node = f"{path}/{who.split(':')[1]}"
        success_here(
            *(
                "create",
                node,
                "mine",
                "--server",
                service.hosts,
                "--auth",
                who,
                "--acl",
                "auth::cdrwa",
            )
        )
    both = ["--server", service.hosts, "--auth", alice, "--auth", bob]
    assert success_here("get", f"{path}/alice", *both) == "mine"
    assert success_here("get", f"{path}/bob", *both) == "mine"
    monkeypatch.setenv("PADDOCK_AUTH", f"{alice}\n{bob}\n")
    assert success_here("get", f"{path}/alice", "--server", service.hosts) == "mine"
    assert success_here("get", f"{path}/bob", "--server", service.hosts) == "mine"


def test_credentials_that_are_refused_are_one_line_without_them(service: Service) -> None:
    line = refusal_here("ls", "--server", service.hosts, "--auth", "nothing:secret", status=1)
    assert line == "add_auth: the credentials of the scheme 'nothing' were not accepted"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--server", ""], "an empty host"),
        (["--server", "one:two"], "'one:two' is no host:port"),
        (["--server", "http://one"], "expected host:port, not a URL"),
        (["--server", "one/../two"], "is no valid path"),
        (["--auth", "digest"], "'digest' is not SCHEME:CREDENTIALS"),
        (["--auth", ":secret"], "is not SCHEME:CREDENTIALS"),
        (["--timeout", "0"], "Invalid value for '--timeout'"),
        (["--timeout", "1e9"], "is not a number from 0.001 to 2147483"),
        (["--tls-key", "key.pem"], "needs --tls-cert as well"),
    ],
)
def test_what_is_given_wrongly_is_one_line(arguments: list[str], says: str) -> None:
    assert says in refusal_here("ls", *arguments, status=2)


@pytest.mark.parametrize(
    ("variable", "text"), [("PADDOCK_SERVER", "bad:port"), ("PADDOCK_AUTH", "digest")]
)
def test_what_the_environment_says_wrongly_is_not_blamed_on_an_option(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)
    line = refusal_here("ls", status=2)
    assert line.startswith(f"Invalid value for {variable}: ")
    assert text in line
    option = "--server" if variable == "PADDOCK_SERVER" else "--auth"
    assert refusal_here("ls", option, text, status=2).startswith(f"Invalid value for {option}: ")


class Certificates:
    """Those of a server and of alice, in files, by one authority."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.ca = self._write(folder / "ca.pem", authority.pem())
        self.other_ca = self._write(folder / "other.pem", Authority().pem())
        self.no_pem = self._write(folder / "text", b"not a certificate\n")
        self.alice = str(authority.issue(name("CN=alice")).write(folder / "alice.pem"))
        self.server = str(authority.issue(name("CN=server")).write(folder / "server.pem"))
        self.none = str(folder / "none.pem")

    @staticmethod
    def _write(file: Path, content: bytes) -> str:
        file.write_bytes(content)
        return str(file)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secure(certificates: Certificates) -> Iterator[str]:
    """A server that asks for certificates."""
    config = ServerConfig(
        port=0,
        secure_port=0,
        tls_key_store=Path(certificates.server),
        tls_trust_store=Path(certificates.ca),
    )
    with ServerThread(config=config) as server:
        yield f"localhost:{server.secure_address[1]}"


def test_over_tls_we_are_known_by_our_certificate(certificates: Certificates, secure: str) -> None:
    options = ["--server", secure, "--tls-ca", certificates.ca, "--tls-cert", certificates.alice]
    assert success_here("ls", *options) == "zookeeper\n"
    success_here("create", "/hers", "--acl", "x509:CN=alice:cdrwa", *options)
    assert success_here("get", "/hers", *options) == ""
    assert "standalone" in success_here("status", *options)


def test_a_server_that_we_do_not_trust_is_one_line(certificates: Certificates, secure: str) -> None:
    for options in (["--tls"], ["--tls-ca", certificates.other_ca]):
        line = refusal_here("ls", "--server", secure, "--timeout", "1", *options, status=1)
        assert "certificate" in line
        said = ended_here("status", "--server", secure, *options)
        assert said.status == 1
        assert "its certificate is not accepted" in said.output


def test_a_file_that_cannot_be_used_is_named(certificates: Certificates, secure: str) -> None:
    ca, none, text = certificates.ca, certificates.none, certificates.no_pem
    alice, server = certificates.alice, certificates.server
    for options, says in (
        (["--tls-ca", none], f"{none}: No such file or directory"),
        (["--tls-cert", none], f"{none}: No such file or directory"),
        (["--tls-ca", text], f"{text}: holds no certificate in PEM"),
        (["--tls-cert", text], f"{text}: no certificate and the key to it, in PEM"),
        (
            ["--tls-cert", alice, "--tls-key", server],
            f"{alice}, {server}: no certificate and the key to it, in PEM",
        ),
    ):
        assert refusal_here("ls", "--server", secure, "--tls-ca", ca, *options, status=1) == says
