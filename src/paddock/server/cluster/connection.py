"""The connection to etcd that the configuration asks for.

A server that starts waits a minute for an etcd that does not answer: machines that boot together
need that. It says so soon. What does not pass by itself (a refusal, a file that is missing) ends
the start at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from paddock.log.etcd.calls import FINAL_ERRORS, Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import Store, StoreError
from paddock.server.config.config import ServerConfig
from paddock.server.config.log_url import LogUrl

P = ParamSpec("P")
T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

# How long etcd is waited for, after how much of that it is said, and the pause between two
# questions, in seconds.
ANSWER_SECONDS: Final = 60.0
_SOON: Final = 1.0
_PAUSE: Final = 0.5


def open_store(config: ServerConfig, url: LogUrl) -> Store:
    """Return a client of etcd; it connects at its first call. Raises LogError without grpcio."""
    from paddock.log.etcd.etcd_store import EtcdStore
    from paddock.log.etcd.options import EtcdOptions

    return EtcdStore(
        EtcdOptions(
            endpoints=url.endpoints,
            is_secure=url.is_secure,
            ca_file=config.etcd_ca_file,
            certificate_file=config.etcd_cert_file,
            key_file=config.etcd_key_file,
            user=config.etcd_user,
            password=config.etcd_password,
        ),
        Keys(url.name),
    )


class StartCalls(Calls):
    """The first calls of a server."""

    def __init__(self, url: LogUrl) -> None:
        super().__init__(rest=0)
        self._hosts = ", ".join(url.endpoints)

    async def _repeat(
        self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[T, float]:
        now = asyncio.get_running_loop().time
        until = now() + ANSWER_SECONDS
        reason = f"etcd at {self._hosts}: nothing yet"

        def tell() -> None:
            logger.warning(
                "etcd does not answer, and is asked again for %.0f s: %s", until - now(), reason
            )

        telling = asyncio.get_running_loop().call_later(_SOON, tell)
        try:
            while True:
                begun = now()
                try:
                    return await call(*args, **kwargs), now() - begun
                except FINAL_ERRORS:
                    raise
                except StoreError as error:
                    if now() >= until:
                        raise
                    reason = str(error)
                await asyncio.sleep(_PAUSE)
        finally:
            telling.cancel()
