"""A client configuration: what is taken from it, and what is refused, with the key."""

import ssl
from pathlib import Path

import pytest

from paddock.cli.shell.configuration import with_configuration
from paddock.cli.shell.connection import Settings
from paddock.client.session.handshake import SaslCredentials
from paddock.server.config.config import ConfigError
from tests.support.certificates import Authority, name

AUTHORITY = Authority()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a trust store, a key store, one with a password, and one of Java's."""
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.pem())
    issued = AUTHORITY.issue(name("CN=alice"))
    issued.write(tmp_path / "alice.pem")
    issued.write(tmp_path / "locked.pem", b"secret")
    (tmp_path / "word").write_text("secret\n")
    (tmp_path / "java.jks").write_bytes(b"\xfe\xed\xfe\xed....")
    return tmp_path


def settings(folder: Path, *lines: str) -> Settings:
    file = folder / "client.cfg"
    file.write_text("\n".join(lines).replace("FOLDER", str(folder)))
    return with_configuration(Settings(), file)


def test_without_a_word_about_security_there_is_none(files: Path) -> None:
    found = settings(files, "jute.maxbuffer=0x400000", "zookeeper.client.secure=false")
    assert found.tls is None
    assert found.max_request_bytes == 0x400000
    assert found.session_timeout == 30.0


def test_stores_without_security_are_not_looked_at(files: Path) -> None:
    assert settings(files, "zookeeper.ssl.keyStore.location=/nowhere").tls is None


@pytest.mark.parametrize(
    "lines",
    [
        ("zookeeper.ssl.keyStore.location=FOLDER/alice.pem",),
        (
            "zookeeper.ssl.keyStore.location=FOLDER/locked.pem",
            "zookeeper.ssl.keyStore.password=secret",
        ),
        (
            "zookeeper.ssl.keyStore.location=FOLDER/locked.pem",
            "zookeeper.ssl.keyStore.passwordPath=FOLDER/word",
        ),
        ("zookeeper.ssl.ciphersuites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",),
        ("zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",),
        ("zookeeper.sasl.client=false", "zookeeper.ssl.ocsp=false", "zookeeper.ssl.crl=false"),
    ],
)
def test_what_is_asked_for_is_had(files: Path, lines: tuple[str, ...]) -> None:
    trusted = "zookeeper.ssl.trustStore.location=FOLDER/ca.pem"
    context = settings(files, "zookeeper.client.secure=true", trusted, *lines).tls
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    # Nobody else is trusted.
    assert context.cert_store_stats()["x509_ca"] == 1


def test_names_of_hosts_and_versions_can_be_chosen(files: Path) -> None:
    context = settings(
        files,
        "zookeeper.client.secure=true",
        "zookeeper.ssl.hostnameVerification=false",
        "zookeeper.ssl.enabledProtocols=TLSv1.2, TLSv1.3",
        "zookeeper.ssl.protocol=TLSv1.3",
    ).tls
    assert context is not None
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("zookeeper.ssl.trustStore.location=FOLDER/java.jks", "java.jks.*only PEM can be read"),
        ("zookeeper.ssl.keyStore.location=FOLDER/java.jks", "java.jks.*only PEM can be read"),
        ("zookeeper.ssl.keyStore.location=FOLDER/none.pem", "none.pem.*cannot be read"),
        ("zookeeper.ssl.keyStore.location=FOLDER/locked.pem", "locked.pem.*no password"),
        ("zookeeper.ssl.ocsp=true", "zookeeper.ssl.ocsp cannot be used"),
        ("zookeeper.ssl.crl=true", "zookeeper.ssl.crl cannot be used"),
        ("zookeeper.ssl.trustStore.locaton=x", "trustStore.locaton cannot be used: there is no"),
        ("zookeeper.ssl.protocol=SSLv3", "zookeeper.ssl.protocol cannot be used: 'SSLv3'"),
        ("zookeeper.ssl.ciphersuites=nonsense", "ciphersuites"),
        (
            "zookeeper.sasl.clientconfig=Me",
            "zookeeper.sasl.clientconfig cannot be used: .*--sasl-u",
        ),
        ("zookeeper.server.principal=x", "zookeeper.server.principal cannot be used: .*--kerberos"),
        ("zookeeper.request.timeout=5", "zookeeper.request.timeout cannot be used"),
        ("jute.maxbuffer=many", "jute.maxbuffer cannot be used: 'many'"),
        ("jute.maxbuffer=-1", "jute.maxbuffer cannot be used"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_line(files: Path, line: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refusal:
        settings(files, "zookeeper.client.secure=true", line)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("zookeeper.client.secrue=true", "zookeeper.client.secrue cannot be used: there is no"),
        ("zookeeper.client.secure=maybe", "zookeeper.client.secure.*'maybe' is neither true nor"),
        ("zookeeper.ssl.crl=yes", "zookeeper.ssl.crl cannot be used: 'yes' is neither true nor"),
        ("zookeeper.sasl.client=true", "zookeeper.sasl.client cannot be used: it needs --sasl-u"),
        ("zookeeper.sasl.client=yes", "zookeeper.sasl.client cannot be used: 'yes' is neither"),
        ("Dear colleagues, this is a letter", "Dear cannot be used: there is no such key"),
    ],
)
def test_a_mistake_does_not_connect_in_plain(files: Path, line: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        settings(files, line)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.cfg: cannot be read"):
        with_configuration(Settings(), tmp_path / "none.cfg")


def test_sasl_may_be_asked_for_if_an_option_says_how(files: Path) -> None:
    file = files / "client.cfg"
    file.write_text("zookeeper.sasl.client=true")
    by_sasl = Settings(sasl=SaslCredentials("alice", "secret"))
    assert with_configuration(by_sasl, file).sasl == by_sasl.sasl
