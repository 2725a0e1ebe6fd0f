"""Key store and trust store: the PEM files of TLS.

A key store holds the server's certificate, its chain, and its key; a trust store holds the
authorities that sign clients' certificates. Java's own store types are recognised by their content,
whatever their names, and refused with the commands that convert them. Every problem is a
ConfigError of one line that names the file.
"""

from __future__ import annotations

import shlex
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from paddock.server.config.config import ConfigError
from paddock.server.tls.x509 import Certificate, CertificateError, read_certificate

KEY_STORE: Final = "key store"
TRUST_STORE: Final = "trust store"

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_TRUSTED: Final = b"-----BEGIN TRUSTED CERTIFICATE-----"
_LIST: Final = b"-----BEGIN X509 CRL-----"
_SUFFIXES: Final = {".jks": "JKS", ".p12": "PKCS12", ".pfx": "PKCS12", ".bcfks": "BCFKS"}
_BYTES_MAX: Final = 16 << 20


def read_store(path: Path, said: str, purpose: str) -> bytes:
    """Read a store, which must be PEM. Raises ConfigError."""
    content = read_file(path, purpose)
    kind = _kind(content, path, said)
    if kind != "PEM":
        raise ConfigError(
            f"{path}: the {purpose} is of type {kind}, and only PEM can be read; "
            f"convert it: {_conversion(path, kind, purpose)}"
        )
    if _CERTIFICATE not in content and _TRUSTED not in content:
        raise ConfigError(f"{path}: the {purpose} holds no certificate in PEM")
    return content


def read_file(path: Path, purpose: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: the {purpose} cannot be read: {error.strerror}") from None
    if len(content) > _BYTES_MAX:
        raise ConfigError(f"{path}: the {purpose} is larger than {_BYTES_MAX} bytes")
    return content


def load_key_store(
    context: ssl.SSLContext, path: Path, content: bytes, password: str | None
) -> None:
    """Load the server's certificate and key into a context."""
    if b"PRIVATE KEY-----" not in content:
        raise ConfigError(f"{path}: the key store holds no private key; put it into the same file")
    is_encrypted = b"ENCRYPTED" in content
    if is_encrypted and password is None:
        raise ConfigError(
            f"{path}: the key is encrypted, and there is no password: "
            "--tls-key-store-password-path, ssl.keyStore.passwordPath"
        )
    try:
        # Always given: otherwise OpenSSL would ask on the terminal.
        context.load_cert_chain(path, password=lambda: password or "")
    except ssl.SSLError as error:
        reason = (error.reason or "").lower().replace("_", " ")
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = "the key does not belong to the first certificate"
        elif is_encrypted and "no start line" not in reason:
            # The layer that detects a wrong password differs from key to key.
            reason = f"the key cannot be decrypted, the password may be wrong ({reason})"
        raise ConfigError(f"{path}: the key store cannot be used: {reason or error}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: the key store cannot be used: {error}") from None


def load_trust_store(
    context: ssl.SSLContext, path: Path, content: bytes, *, with_lists: bool
) -> None:
    """Load the authorities that sign clients' certificates into a context.

    As in Java, an authority need not be a root. With revocation lists, the issuer of a certificate
    must have one there, and the certificate must not be on it.
    """
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if with_lists:
        if _LIST not in content:
            raise ConfigError(
                f"{path}: ssl.crl needs the lists of revoked certificates in the trust store, and "
                f"it holds none; append them: openssl crl -in LIST >> {shlex.quote(str(path))}"
            )
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        raise ConfigError(f"{path}: the trust store cannot be used: {reason}") from None
    except OSError as error:
        raise ConfigError(f"{path}: the trust store cannot be used: {error}") from None


def own_certificate(content: bytes) -> Certificate | None:
    """Return the first certificate of a key store that OpenSSL has accepted."""
    begin = content.find(_CERTIFICATE)
    end = content.find(b"-----END CERTIFICATE-----", begin)
    if begin < 0 or end < 0:
        return None
    text = content[begin:end].decode("ascii", "replace") + "-----END CERTIFICATE-----\n"
    try:
        return read_certificate(ssl.PEM_cert_to_DER_cert(text))
    except (CertificateError, ValueError):
        return None


def why_not_valid(certificate: Certificate, now_ms: int) -> str | None:
    """Return why a certificate is not valid now; None if it is."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    if now > certificate.not_after:
        return f"it expired on {certificate.not_after:%Y-%m-%d %H:%M:%S} UTC"
    if now < certificate.not_before:
        return f"it is not valid before {certificate.not_before:%Y-%m-%d %H:%M:%S} UTC"
    return None


def _kind(content: bytes, path: Path, said: str) -> str:
    if content.startswith((b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")):
        return "JKS"
    if b"-----BEGIN " in content:
        return "PEM"
    if content[:1] == b"\x30" and b"\x02\x01\x03" in content[2:8]:
        # A sequence that begins with 3, the version of PKCS #12.
        return "PKCS12"
    return said or _SUFFIXES.get(path.suffix.lower(), "PEM")


def _conversion(path: Path, kind: str, purpose: str) -> str:
    """Return the commands that convert a store to PEM."""
    pem = shlex.quote(str(path.with_suffix(".pem")))
    name = shlex.quote(str(path))
    source = f"-srcstoretype {kind} " if kind == "BCFKS" else ""
    if purpose == TRUST_STORE:
        store = f" -storetype {kind}" if kind == "BCFKS" else ""
        return f"keytool -list -rfc -keystore {name}{store} > {pem}"
    if kind == "PKCS12":
        return f"openssl pkcs12 -in {name} -nodes -out {pem}"
    between = shlex.quote(str(path.with_suffix(".p12")))
    return (
        f"keytool -importkeystore -srckeystore {name} {source}-destkeystore {between} "
        f"-deststoretype PKCS12 && openssl pkcs12 -in {between} -nodes -out {pem}"
    )
