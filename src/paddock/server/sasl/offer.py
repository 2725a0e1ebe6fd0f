"""Which mechanisms a server offers, by its settings.

A server offers DIGEST-MD5 if it knows users. Mechanisms are asked in order whether they accept a
client's first token, and DIGEST-MD5 accepts every one, so it comes last.
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
            ' a DigestLoginModule with options such as user_bob="…"'
        )
    executor = None
    if any(mechanism.blocks for mechanism in mechanisms):
        executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="paddock-sasl")
    for path in (config.jaas_file, config.sasl_users_file):
        _warn_of_exposed(path)
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
    users = Users()
    if config.jaas_file is not None:
        users.read_modules(config.jaas_file, modules)
    if config.sasl_users_file is not None:
        users.read_file(config.sasl_users_file)
    if len(users):
        mechanisms.append(DigestMd5(users, random_bytes))
    return mechanisms


def _warn_of_exposed(path: Path | None) -> None:
    if path is not None and is_exposed(path):
        logger.warning("%s holds the secrets of users, and everybody here can read it", path)
