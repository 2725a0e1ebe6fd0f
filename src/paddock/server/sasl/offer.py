"""Which mechanisms a server offers, by its settings.

A server offers DIGEST-MD5 if it knows users, and GSSAPI if it has a key of Kerberos. Mechanisms are
asked in order whether they accept a client's first token, and DIGEST-MD5 accepts every one, so it
comes last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.sasl.conversation import Offer
from paddock.server.sasl.digest_md5 import DigestMd5
from paddock.server.sasl.jaas import LoginModule, read_section
from paddock.server.sasl.kerberos import MODULE as KERBEROS_MODULE
from paddock.server.sasl.kerberos import Kerberos, ServerKey, key_of, own_realm
from paddock.server.sasl.local_names import LocalNames
from paddock.server.sasl.mechanism import Mechanism
from paddock.server.sasl.users import Users, is_exposed

logger: Final = logging.getLogger(__name__)

# How many steps may block at the same time.
_THREADS: Final = 4


def make_offer(config: ServerConfig, random_bytes: Callable[[int], bytes]) -> Offer | None:
    """Return what is offered by the settings; None if there is no SASL. Raises ConfigError."""
    if not config.offers_sasl():
        return None
    modules: list[LoginModule] = []
    if config.jaas_file is not None:
        modules = read_section(config.jaas_file, config.jaas_section)
    mechanisms = _mechanisms(config, modules, random_bytes)
    if not mechanisms:
        raise ConfigError(
            f"{config.jaas_file}: the section {config.jaas_section!r} has no user of SASL: expected"
            ' a DigestLoginModule with options such as user_bob="…", or a Krb5LoginModule'
        )
    executor = None
    if any(mechanism.blocks for mechanism in mechanisms):
        executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="paddock-sasl")
    # A JAAS file that names a keytab has no secrets of its own.
    has_users = any(module.name != KERBEROS_MODULE for module in modules)
    for path in (config.jaas_file if has_users else None, config.sasl_users_file):
        _warn_of_exposed(path, "the secrets of users")
    return Offer(
        tuple(mechanisms),
        config.sasl_super_users,
        config.allow_failed_sasl and not config.requires_sasl(),
        executor,
    )


def _mechanisms(
    config: ServerConfig, modules: list[LoginModule], random_bytes: Callable[[int], bytes]
) -> list[Mechanism]:
    mechanisms: list[Mechanism] = []
    kerberos = _kerberos(config, modules)
    if kerberos is not None:
        mechanisms.append(kerberos)
    users = Users()
    if config.jaas_file is not None:
        users.read_modules(config.jaas_file, modules)
    if config.sasl_users_file is not None:
        users.read_file(config.sasl_users_file)
    if len(users):
        mechanisms.append(DigestMd5(users, random_bytes))
    return mechanisms


def _kerberos(config: ServerConfig, modules: list[LoginModule]) -> Kerberos | None:
    keys = [key_of(module) for module in modules if module.name == KERBEROS_MODULE]
    if config.has_kerberos_key():
        keys.append(ServerKey(config.kerberos_keytab, config.kerberos_principal))
    if not keys:
        return None
    if len(keys) > 1:
        raise ConfigError("Kerberos has two keys: expected that of a JAAS file, or a keytab")
    credentials = keys[0].load()
    _warn_of_exposed(keys[0].keytab, "the key of this server")
    names = LocalNames(
        config.kerberos_rules,
        own_realm=own_realm(),
        has_host=not config.kerberos_removes_host,
        has_realm=not config.kerberos_removes_realm,
    )
    return Kerberos(credentials, names)


def _warn_of_exposed(path: Path | None, what: str) -> None:
    if path is not None and is_exposed(path):
        logger.warning("%s holds %s, and everybody here can read it", path, what)
