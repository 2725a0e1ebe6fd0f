"""The TLS context of new connections, and the identities of clients by their certificates.

The files are read at the start, and again whenever they change: new connections use the new files,
open ones stay. If the new files cannot be used, an error is logged and the old ones stay in use.
Versions before TLS 1.2 are not supported.
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

# Seconds between two checks of the files.
_CHECK_INTERVAL: Final = 2.0

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"need": ssl.CERT_REQUIRED, "want": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}

# The identity of a file's content: time, inode and size; None if there is no file.
_Stamp = tuple[int, int, int] | None


class Credentials:
    """The context for new connections, kept up to date."""

    def __init__(self, config: ServerConfig, wall_clock_ms: Callable[[], int]) -> None:
        """Read the files. Raises ConfigError."""
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
        # Taken before the files are read, so that a change meanwhile is not missed.
        self._stamps = self._look()
        self.context = self._read()

    async def watch(self) -> None:
        """Reload changed files, until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            await self.refresh()

    async def refresh(self) -> None:
        """Read the files again if they have changed, outside the event loop: a disk may be slow."""
        context = await asyncio.get_running_loop().run_in_executor(None, self._read_if_changed)
        if context is not None:
            self.context = context

    def identities(self, connection: object) -> tuple[Identity, ...]:
        """Return the identities of a client by its verified certificate; none without one."""
        assert isinstance(connection, ssl.SSLObject | ssl.SSLSocket)
        encoded = connection.getpeercert(binary_form=True)
        if encoded is None:
            return ()
        try:
            subject = read_certificate(encoded).subject
        except CertificateError as error:
            logger.warning("a client's certificate was accepted and cannot be read: %s", error)
            return ()
        identity = Identity("x509", subject)
        if subject == self._config.x509_super_user:
            return Identity("super", subject), identity
        return (identity,)

    def _read_if_changed(self) -> ssl.SSLContext | None:
        stamps = self._look()
        if stamps == self._stamps:
            return None
        self._stamps = stamps
        try:
            context = self._read()
        except ConfigError as error:
            logger.error("the TLS files have changed and are not used: %s", error)
            return None
        logger.info("the TLS files have changed and are used for new connections")
        return context

    def _look(self) -> list[_Stamp]:
        return [_stamp(path) for path in self._files]

    def _read(self) -> ssl.SSLContext:
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        names = config.tls_protocols or ({config.tls_protocol} - {""}) or _VERSIONS
        versions = [_VERSIONS[name] for name in names]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        # Repeated renegotiation by a client would only cost CPU.
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        # Connections last, so session tickets are hardly ever used.
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
            # Without the line end, as upstream.
            password = read.decode("utf-8", "surrogateescape").rstrip("\r\n")
        pem_stores.load_key_store(context, path, content, password)
        certificate = pem_stores.own_certificate(content)
        reason = certificate and pem_stores.why_not_valid(certificate, self._wall_clock_ms())
        if reason:
            logger.warning("%s: clients will refuse our certificate: %s", path, reason)


def set_ciphers(context: ssl.SSLContext, names: str) -> None:
    """Choose cipher suites by Java's or OpenSSL's names, with commas between them."""
    listed = [name.strip() for name in names.split(",")]
    # Those of TLS 1.3 are few and all good, and cannot be chosen.
    known = [
        _openssl_name(name) for name in listed if "_WITH_" in name or not name.startswith("TLS_")
    ]
    if not known:
        return
    try:
        context.set_ciphers(":".join(known))
    except ssl.SSLError:
        raise ConfigError(
            f"ssl.ciphersuites = {names!r}: OpenSSL knows none of these cipher suites"
        ) from None


def _openssl_name(name: str) -> str:
    """Translate TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 to ECDHE-RSA-AES128-GCM-SHA256."""
    if not name.startswith("TLS_"):
        return name
    exchange, _, rest = name.removeprefix("TLS_").partition("_WITH_")
    cipher = rest.replace("AES_", "AES").replace("_CBC_", "_").replace("_", "-")
    if "CHACHA20" in cipher:
        cipher = cipher.removesuffix("-SHA256")
    # OpenSSL omits the plain RSA key exchange.
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"


def _stamp(path: Path) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
