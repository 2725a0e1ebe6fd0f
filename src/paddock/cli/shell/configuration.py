"""A client configuration: a file that says how the shell connects, as upstream's does.

It is a file of Java properties with ZooKeeper's client keys. A key that is unknown or not supported
is an error that names it, also where zkCli ignores it: a misspelt one would connect in plain.
"""

import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from paddock.cli.shell.connection import Settings
from paddock.server.config.config import ConfigError
from paddock.server.config.properties import read_property_file
from paddock.server.tls import pem_stores

_SECURE: Final = "zookeeper.client.secure"
_SASL: Final = "zookeeper.sasl.client"
_MAX_BYTES: Final = "jute.maxbuffer"
_SSL: Final = "zookeeper.ssl."
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
# The last two are for servers, but may stand in a file for both.
_TLS_KEYS: Final = (
    *("keyStore.location", "keyStore.password", "keyStore.passwordPath", "keyStore.type"),
    *("trustStore.location", "trustStore.password", "trustStore.passwordPath", "trustStore.type"),
    *("hostnameVerification", "protocol", "enabledProtocols", "ciphersuites", "crl"),
    *("clientAuth", "handshakeDetectionTimeoutMillis"),
)
_BOOLEANS: Final = {_SECURE, _SASL, f"{_SSL}hostnameVerification", f"{_SSL}crl"}
_OWN_OPTIONS: Final = "SASL is not configured here: --sasl-user and --kerberos are for it"
# What is asked for with other values than these cannot be had.
_FIXED: Final = {
    "zookeeper.ssl.ocsp": ("false", "whether certificates were revoked is not asked online"),
    "zookeeper.disableAutoWatchReset": ("false", "watches are always set again"),
    "zookeeper.request.timeout": ("0", "requests have no timeout of their own"),
}
# With Java, TLS needs the class of connections that has it.
_KNOWN: Final = {_SECURE, _SASL, _MAX_BYTES, "zookeeper.clientCnxnSocket", *_FIXED}
_KNOWN.update(_SSL + key for key in _TLS_KEYS)


def with_configuration(settings: Settings, file: Path) -> Settings:
    """Add to settings what a file says; raises ConfigError, which names the file or the key."""
    found = {entry.key: entry.value for entry in read_property_file(file)}
    for key, value in found.items():
        expected, reason = _FIXED.get(key, (value.lower(), ""))
        if value.lower() != expected:
            raise _cannot(file, key, reason)
        if key in _BOOLEANS and value.lower() not in ("true", "false"):
            raise _cannot(file, key, f"{value!r} is neither true nor false")
        if key not in _KNOWN:
            is_sasl = key.startswith(("zookeeper.sasl.", "zookeeper.server."))
            raise _cannot(file, key, _OWN_OPTIONS if is_sasl else "there is no such key")
    if found.get(_SASL, "").lower() == "true" and settings.sasl is None:
        raise _cannot(file, _SASL, "it needs --sasl-user or --kerberos as well")
    tls = _tls(file, found) if found.get(_SECURE, "").lower() == "true" else None
    largest = settings.max_request_bytes
    if _MAX_BYTES in found:
        try:
            largest = int(found[_MAX_BYTES], 0)
        except ValueError:
            largest = 0
        if largest <= 0:
            raise _cannot(file, _MAX_BYTES, f"{found[_MAX_BYTES]!r} is no number of bytes")
    return replace(settings, tls=tls, max_request_bytes=largest)


def _tls(file: Path, found: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()

    def of(key: str) -> str:
        return found.get(_SSL + key, "")

    trusted, key_store = of("trustStore.location"), of("keyStore.location")
    if trusted:
        # Only those: the system's are for who says nothing.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        content = pem_stores.read_store(
            Path(trusted), of("trustStore.type"), pem_stores.TRUST_STORE
        )
        with_lists = of("crl").lower() == "true"
        pem_stores.load_trust_store(context, Path(trusted), content, with_lists=with_lists)
    elif of("crl").lower() == "true":
        raise _cannot(file, f"{_SSL}crl", f"it needs {_SSL}trustStore.location")
    if key_store:
        content = pem_stores.read_store(Path(key_store), of("keyStore.type"), pem_stores.KEY_STORE)
        password = of("keyStore.password") or None
        if of("keyStore.passwordPath"):
            read = pem_stores.read_file(
                Path(of("keyStore.passwordPath")), "password of the key store"
            )
            password = read.decode("utf-8", "surrogateescape").rstrip("\r\n")
        pem_stores.load_key_store(context, Path(key_store), content, password)
    if of("hostnameVerification").lower() == "false":
        context.check_hostname = False
    key = "enabledProtocols" if of("enabledProtocols") else "protocol"
    names = [name.strip() for name in of(key).split(",")] if of(key) else []
    for name in names:
        if name not in _VERSIONS:
            raise _cannot(file, _SSL + key, f"{name!r} is none of {', '.join(_VERSIONS)}")
    if names:
        versions = [_VERSIONS[name] for name in names]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
    if of("ciphersuites"):
        from paddock.server.tls.context import set_ciphers

        set_ciphers(context, of("ciphersuites"))
    return context


def _cannot(file: Path, key: str, reason: str) -> ConfigError:
    return ConfigError(f"{file}: {key} cannot be used: {reason}")
