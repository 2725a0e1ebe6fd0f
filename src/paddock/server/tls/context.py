"""TLS: what connections are secured with, and who their clients are by their certificates.

The files are read at the start, and again whenever they change: connections that come then use the
new ones, those that are there go on. A change that cannot be used is reported, and the old files
count until the next one. Versions before TLS 1.2 are not spoken.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from paddock.protocol.acl import Identity
from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.tls import pem_stores
from paddock.server.tls.x509 import CertificateError, read_certificate

logger: Final = logging.getLogger(__name__)

# How often the files are looked at, in seconds.
_LOOK_INTERVAL: Final = 2.0

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "need": ssl.CERT_REQUIRED,
    "want": ssl.CERT_OPTIONAL,
    "none": ssl.CERT_NONE,
}

# What changes if a file does: time, node and size, or nothing if it is not there.
_Mark = tuple[int, int, int] | None


class Credentials:
    """The context for new connections, kept up to date."""

    def __init__(self, config: ServerConfig, wall_clock_ms: Callable[[], int]) -> None:
        """Read everything for the first time; raises ConfigError."""
        self._config = config
        self._wall_clock_ms = wall_clock_ms
        self._files = [
            path
            for path in (
                config.tls_key_store,
                config.tls_key_store_password_path,
                config.tls_trust_store,
            )
            if path is not None
        ]
        # As they were before they were last read, so that a change meanwhile is not missed.
        self._marks = self._look()
        self.context = self._read()

    async def watch(self) -> None:
        """Keep up to date for ever."""
        while True:
            await asyncio.sleep(_LOOK_INTERVAL)
            await self.refresh()

    async def refresh(self) -> None:
        """Read the files again if they have changed; not in the loop, a disk may be slow."""
        context = await asyncio.get_running_loop().run_in_executor(None, self._read_if_changed)
        if context is not None:
            self.context = context

    def identities(self, connection: object) -> tuple[Identity, ...]:
        """Tell who a client is by its certificate, which has been checked; nobody without one."""
        assert isinstance(connection, ssl.SSLObject | ssl.SSLSocket)
        encoded = connection.getpeercert(binary_form=True)
        if encoded is None:
            return ()
        try:
            subject = read_certificate(encoded).subject
        except CertificateError as error:
            logger.warning("a client's certificate was taken and cannot be read: %s", error)
            return ()
        identity = Identity("x509", subject)
        if subject == self._config.x509_super_user:
            return Identity("super", subject), identity
        return (identity,)

    def _read_if_changed(self) -> ssl.SSLContext | None:
        marks = self._look()
        if marks == self._marks:
            return None
        self._marks = marks
        try:
            context = self._read()
        except ConfigError as error:
            logger.error("the TLS files have changed and are not used: %s", error)
            return None
        logger.info("the TLS files have changed and are used for new connections")
        return context

    def _look(self) -> list[_Mark]:
        return [_mark(path) for path in self._files]

    def _read(self) -> ssl.SSLContext:
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        versions = [_VERSIONS[name] for name in _protocols(config)]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        # A client that asks for new keys again and again would only cost us.
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        # Connections last, so that tickets for a quick return are hardly ever used.
        context.num_tickets = 0
        if config.tls_cipher_suites:
            set_ciphers(context, config.tls_cipher_suites)
        self._use_key_store(context)
        context.verify_mode = _CLIENT_AUTH[config.tls_client_auth]
        if context.verify_mode != ssl.CERT_NONE:
            path = config.tls_trust_store
            assert path is not None, "the configuration is checked"
            content = pem_stores.read_store(
                path, config.tls_trust_store_type, pem_stores.TRUST_STORE
            )
            pem_stores.load_trust_store(context, path, content, with_lists=config.tls_crl)
        return context

    def _use_key_store(self, context: ssl.SSLContext) -> None:
        config = self._config
        path = config.tls_key_store
        assert path is not None, "the configuration is checked"
        content = pem_stores.read_store(path, config.tls_key_store_type, pem_stores.KEY_STORE)
        password = config.tls_key_store_password
        if config.tls_key_store_password_path is not None:
            read = pem_stores.read_file(
                config.tls_key_store_password_path, "password of the key store"
            )
            # As upstream: the line without its end.
            password = read.decode("utf-8", "surrogateescape").rstrip("\r\n")
        pem_stores.load_key_store(context, path, content, password)
        certificate = pem_stores.own_certificate(content)
        reason = certificate and pem_stores.why_not_valid(certificate, self._wall_clock_ms())
        if reason:
            logger.warning("%s: clients will refuse our certificate: %s", path, reason)


def _protocols(config: ServerConfig) -> frozenset[str]:
    if config.tls_protocols:
        return config.tls_protocols
    return frozenset({config.tls_protocol} if config.tls_protocol else _VERSIONS)


def set_ciphers(context: ssl.SSLContext, names: str) -> None:
    """Choose cipher suites by Java's names or OpenSSL's, with commas between."""
    listed = [name.strip() for name in names.split(",")]
    # Those of TLS 1.3 are few and all good; they cannot be chosen.
    known = [_openssl_name(name) for name in listed if not _is_of_tls_1_3(name)]
    if not known:
        return
    try:
        context.set_ciphers(":".join(known))
    except ssl.SSLError:
        raise ConfigError(
            f"ssl.ciphersuites = {names!r}: OpenSSL knows none of these cipher suites"
        ) from None


def _is_of_tls_1_3(name: str) -> bool:
    return name.startswith("TLS_") and "_WITH_" not in name


def _openssl_name(name: str) -> str:
    """Translate TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 to ECDHE-RSA-AES128-GCM-SHA256."""
    if not name.startswith("TLS_"):
        return name
    exchange, _, rest = name.removeprefix("TLS_").partition("_WITH_")
    cipher = rest.replace("AES_", "AES").replace("_CBC_", "_").replace("_", "-")
    if "CHACHA20" in cipher:
        cipher = cipher.removesuffix("-SHA256")
    # The plain exchange of keys by RSA goes without saying.
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"


def _mark(path: Path) -> _Mark:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
