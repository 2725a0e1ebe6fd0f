"""What TLS is spoken with: files that can be used, those that cannot, those that change."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.tls.context import Credentials
from tests.support.certificates import DAY, Authority, name

AUTHORITY = Authority()
SERVER = AUTHORITY.issue(name("CN=server"))
NOW_MS = int(SERVER.certificate.not_valid_before_utc.timestamp() * 1000) + 3_600_000


@pytest.fixture
def key_store(tmp_path: Path) -> Path:
    return SERVER.write(tmp_path / "server.pem")


@pytest.fixture
def trust_store(tmp_path: Path) -> Path:
    path = tmp_path / "trust.pem"
    path.write_bytes(AUTHORITY.pem())
    return path


def credentials(key_store: Path, trust_store: Path, **settings: Any) -> Credentials:
    config = ServerConfig(
        secure_port=0, tls_key_store=key_store, tls_trust_store=trust_store, **settings
    )
    return Credentials(config, lambda: NOW_MS)


def error(key_store: Path, trust_store: Path, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        credentials(key_store, trust_store, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_versions_are_1_2_and_1_3(key_store: Path, trust_store: Path) -> None:
    context = credentials(key_store, trust_store).context
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.maximum_version == ssl.TLSVersion.TLSv1_3
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.options & ssl.OP_NO_RENEGOTIATION


@pytest.mark.parametrize(
    ("settings", "low", "high"),
    [
        ({"tls_protocol": "TLSv1.2"}, "TLSv1_2", "TLSv1_2"),
        ({"tls_protocols": frozenset({"TLSv1.3"})}, "TLSv1_3", "TLSv1_3"),
        (
            {"tls_protocol": "TLSv1.2", "tls_protocols": frozenset({"TLSv1.2", "TLSv1.3"})},
            "TLSv1_2",
            "TLSv1_3",
        ),
    ],
)
def test_a_list_of_versions_beats_a_single_one(
    key_store: Path, trust_store: Path, settings: dict[str, Any], low: str, high: str
) -> None:
    context = credentials(key_store, trust_store, **settings).context
    assert context.minimum_version == ssl.TLSVersion[low]
    assert context.maximum_version == ssl.TLSVersion[high]


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("TLS_AES_256_GCM_SHA384, ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_cipher_suites_have_java_and_openssl_names(
    key_store: Path, trust_store: Path, given: str, used: str
) -> None:
    context = credentials(key_store, trust_store, tls_cipher_suites=given).context
    names = [one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]
    assert names == [used]


def test_cipher_suites_that_nobody_knows_are_refused(key_store: Path, trust_store: Path) -> None:
    message = error(key_store, trust_store, tls_cipher_suites="TLS_NULL_WITH_NOTHING")
    assert message.startswith("ssl.ciphersuites = 'TLS_NULL_WITH_NOTHING': ")


def test_an_encrypted_key_needs_its_password(tmp_path: Path, trust_store: Path) -> None:
    store = SERVER.write(tmp_path / "encrypted.pem", b"secret")
    file = tmp_path / "password"
    file.write_text("secret\n")
    credentials(store, trust_store, tls_key_store_password="secret")
    credentials(store, trust_store, tls_key_store_password_path=file)
    # The file beats what is given beside it.
    credentials(
        store, trust_store, tls_key_store_password="wrong", tls_key_store_password_path=file
    )
    assert error(store, trust_store).startswith(
        f"{store}: the key is encrypted, and there is no password"
    )
    wrong = error(store, trust_store, tls_key_store_password="wrong")
    assert "the key cannot be decrypted, the password may be wrong" in wrong
    assert "secret" not in wrong
    missing = error(store, trust_store, tls_key_store_password_path=tmp_path / "nothing")
    assert "the password of the key store cannot be read: No such file" in missing


def test_a_key_of_another_certificate_is_refused(tmp_path: Path, trust_store: Path) -> None:
    store = tmp_path / "mixed.pem"
    other = AUTHORITY.issue(name("CN=other"))
    store.write_bytes(SERVER.certificate_pem() + other.key_pem())
    assert error(store, trust_store) == (
        f"{store}: the key store cannot be used: the key does not belong to the first certificate"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (SERVER.certificate_pem(), "the key store holds no private key"),
        (SERVER.key_pem(), "the key store holds no certificate in PEM"),
        (b"", "the key store holds no certificate in PEM"),
        (b"hello", "the key store holds no certificate in PEM"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + SERVER.key_pem(),
            "the key store cannot be used: ",
        ),
    ],
)
def test_a_key_store_without_what_it_needs_is_refused(
    tmp_path: Path, trust_store: Path, content: bytes, reason: str
) -> None:
    store = tmp_path / "store.pem"
    store.write_bytes(content)
    assert error(store, trust_store).startswith(f"{store}: {reason}")


def test_a_store_that_is_not_there_is_named(
    tmp_path: Path, key_store: Path, trust_store: Path
) -> None:
    nothing = tmp_path / "nothing.pem"
    reason = "cannot be read: No such file or directory"
    assert error(nothing, trust_store) == f"{nothing}: the key store {reason}"
    assert error(key_store, nothing) == f"{nothing}: the trust store {reason}"
    assert error(tmp_path, trust_store).endswith("cannot be read: Is a directory")


PKCS12 = bytes.fromhex("3082099f020103") + bytes(20)
JKS = bytes.fromhex("feedfeed00000002") + bytes(20)


@pytest.mark.parametrize(
    ("called", "content", "said", "kind"),
    [
        ("a.jks", JKS, "", "JKS"),
        ("a.pem", JKS, "PEM", "JKS"),
        ("a.p12", PKCS12, "", "PKCS12"),
        ("a.jks", PKCS12, "JKS", "PKCS12"),
        ("a.bcfks", b"\x30\x82\x01\x00\x30", "", "BCFKS"),
        ("a", b"\x30\x82\x01\x00\x30", "BCFKS", "BCFKS"),
        ("a.pfx", b"", "", "PKCS12"),
    ],
)
def test_a_store_of_another_kind_is_refused_with_its_conversion(
    tmp_path: Path, trust_store: Path, called: str, content: bytes, said: str, kind: str
) -> None:
    store = tmp_path / called
    store.write_bytes(content)
    message = error(store, trust_store, tls_key_store_type=said)
    assert message.startswith(
        f"{store}: the key store is of type {kind}, and only PEM can be read; convert it: "
    )
    assert message.endswith(f"-nodes -out {tmp_path}/a.pem")


def test_a_trust_store_of_java_is_refused_with_its_conversion(
    tmp_path: Path, key_store: Path
) -> None:
    store = tmp_path / "my trust.jks"
    store.write_bytes(JKS)
    assert error(key_store, store).endswith(
        f"convert it: keytool -list -rfc -keystore '{store}' > '{tmp_path}/my trust.pem'"
    )


def test_pem_counts_whatever_it_is_called(tmp_path: Path, trust_store: Path) -> None:
    credentials(SERVER.write(tmp_path / "a.jks"), trust_store, tls_key_store_type="JKS")


def test_lists_of_revoked_certificates_must_be_there(key_store: Path, trust_store: Path) -> None:
    assert error(key_store, trust_store, tls_crl=True).startswith(
        f"{trust_store}: ssl.crl needs the lists of revoked certificates in the trust store"
    )
    trust_store.write_bytes(AUTHORITY.pem() + AUTHORITY.revoked())
    context = credentials(key_store, trust_store, tls_crl=True).context
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF


@pytest.mark.parametrize(
    ("valid", "reason"),
    [((-9 * DAY, -3 * DAY), "it expired on "), ((9 * DAY, 19 * DAY), "it is not valid before ")],
)
def test_our_own_certificate_out_of_its_time_gets_a_warning(
    tmp_path: Path,
    trust_store: Path,
    caplog: pytest.LogCaptureFixture,
    valid: Any,
    reason: str,
) -> None:
    store = AUTHORITY.issue(name("CN=server"), valid=valid).write(tmp_path / "old.pem")
    credentials(store, trust_store)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"{store}: clients will refuse our certificate: {reason}")


def test_files_are_read_again_when_they_change(
    key_store: Path, trust_store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def run() -> None:
        ours = credentials(key_store, trust_store)
        first = ours.context
        await ours.refresh()
        assert ours.context is first
        AUTHORITY.issue(name("CN=new")).write(key_store)
        await ours.refresh()
        second = ours.context
        assert second is not first
        key_store.write_bytes(b"garbage")
        await ours.refresh()
        assert ours.context is second
        # One line for one bad file, however often it is looked at.
        await ours.refresh()
        assert ours.context is second
        key_store.unlink()
        await ours.refresh()
        assert ours.context is second
        SERVER.write(key_store)
        await ours.refresh()
        assert ours.context is not second

    asyncio.run(run())
    used = "the TLS files have changed and are used for new connections"
    unused = f"the TLS files have changed and are not used: {key_store}: the key store "
    assert [record.getMessage() for record in caplog.records] == [
        used,
        unused + "holds no certificate in PEM",
        unused + "cannot be read: No such file or directory",
        used,
    ]
