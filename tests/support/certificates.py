"""Certificates for tests: an authority of our own, and what it issues, as PEM files.

They have the extensions that RFC 5280 asks for: Python looks for them from 3.13 on.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY: Final = datetime.timedelta(days=1)
PEM: Final = serialization.Encoding.PEM

_FOR_AUTHORITIES: Final = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)
_KEYWORDS: Final = {
    "CN": NameOID.COMMON_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "C": NameOID.COUNTRY_NAME,
    "DC": NameOID.DOMAIN_COMPONENT,
    "UID": NameOID.USER_ID,
    "E": NameOID.EMAIL_ADDRESS,
}


def name(*attributes: str) -> x509.Name:
    """Make a name of `keyword=value`, in the order in which the certificate has them."""
    pairs = [one.split("=", 1) for one in attributes]
    return x509.Name([x509.NameAttribute(_KEYWORDS[keyword], value) for keyword, value in pairs])


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    #: The certificates above it that are not known everywhere.
    above: tuple[x509.Certificate, ...] = ()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def certificate_pem(self) -> bytes:
        return b"".join(one.public_bytes(PEM) for one in (self.certificate, *self.above))

    def key_pem(self, password: bytes | None = None) -> bytes:
        return self.key.private_bytes(
            PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password)
            if password is not None
            else serialization.NoEncryption(),
        )

    def write(self, path: Path, password: bytes | None = None) -> Path:
        """Write certificate and key into one file."""
        path.write_bytes(self.certificate_pem() + self.key_pem(password))
        return path


class Authority:
    """A certificate authority."""

    def __init__(self, title: str = "Test CA", issuer: Authority | None = None) -> None:
        self._issuer = issuer
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = name("O=Paddock", f"CN={title}")
        above = subject if issuer is None else issuer.certificate.subject
        builder = _builder(subject, above, self.key, valid=(-DAY, 365 * DAY)).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False
        )
        builder = builder.add_extension(_FOR_AUTHORITIES, critical=True)
        if issuer is not None:
            builder = builder.add_extension(issuer.key_identifier(), critical=False)
        self.certificate: x509.Certificate = builder.sign((issuer or self).key, hashes.SHA256())

    def key_identifier(self) -> x509.AuthorityKeyIdentifier:
        """Return what names this authority in what it issues."""
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())

    def issue(
        self,
        subject: x509.Name,
        *,
        hosts: Sequence[str] = ("localhost", "127.0.0.1"),
        valid: tuple[datetime.timedelta, datetime.timedelta] = (-DAY, 30 * DAY),
        for_servers_only: bool = False,
        padding: int = 0,
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self.certificate.subject, key, valid).add_extension(
            self.key_identifier(), critical=False
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(one) for one in hosts]), critical=False
            )
        uses = [ExtendedKeyUsageOID.SERVER_AUTH]
        if not for_servers_only:
            uses.append(ExtendedKeyUsageOID.CLIENT_AUTH)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        if padding:
            builder = builder.add_extension(
                x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), bytes(padding)),
                critical=False,
            )
        above = () if self._issuer is None else (self.certificate,)
        return Issued(builder.sign(self.key, hashes.SHA256()), key, above)

    def pem(self) -> bytes:
        return self.certificate.public_bytes(PEM)

    def revoked(self, *issued: Issued) -> bytes:
        """Return a certificate revocation list, in PEM."""
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateRevocationListBuilder(
            self.certificate.subject, now - DAY, now + 30 * DAY
        )
        for one in issued:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder(one.certificate.serial_number, now - DAY).build()
            )
        return builder.sign(self.key, hashes.SHA256()).public_bytes(PEM)


def client_context(
    trusted: bytes, folder: Path, issued: Issued | None = None, *, version: str = ""
) -> ssl.SSLContext:
    """Return the TLS context of a client that verifies the address, not a name."""
    context = ssl.create_default_context(cadata=trusted.decode())
    if issued is not None:
        context.load_cert_chain(issued.write(folder / f"client-{issued.certificate.serial_number}"))
    if version:
        wanted = ssl.TLSVersion[version]
        context.minimum_version = context.maximum_version = wanted
    return context


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    valid: tuple[datetime.timedelta, datetime.timedelta],
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
