"""The options of commands that ask etcd itself: which log, and our credentials.

They are those of `paddock serve`, with the same variables.
"""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from paddock import __version__
from paddock.cli.arguments import PATH
from paddock.cli.output import CannotBeDone
from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.config.log_url import LogUrl
from paddock.server.config.settings import SETTINGS
from paddock.server.config.sources import Settings
from paddock.storage.data_directory import CACHE

if TYPE_CHECKING:
    from paddock.log.etcd.keys import Keys
    from paddock.log.etcd.store import Status, Store
    from paddock.storage.cluster.visitor import Caller

_T = TypeVar("_T")

_FIELDS: Final = (
    *("shared_log", "etcd_ca_file", "etcd_cert_file", "etcd_key_file", "etcd_user"),
    "etcd_password",
)
# How often, and for how long, etcd is asked before a command gives up. An election takes two
# seconds.
_ANSWER_ATTEMPTS: Final = 6
_ANSWER_SECONDS: Final = 10.0
_SETTINGS: Final = tuple(one for one in SETTINGS if one.field in _FIELDS)


@dataclass(frozen=True, slots=True)
class SharedLogOptions:
    """Which log a command is about."""

    config: ServerConfig
    url: LogUrl

    @property
    def keys(self) -> Keys:
        from paddock.log.etcd.keys import Keys

        return Keys(self.url.name)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        """Talk to etcd within the scope. Raises LogError soon if it does not answer."""
        async with self._store(*self.url.endpoints) as store:
            await self._check_answers(store)
            yield store

    async def statuses(self) -> list[tuple[str, Status | None, str]]:
        """Ask each endpoint; return them with their status, or with why there is none."""
        return await asyncio.gather(*(self._status(one) for one in self.url.endpoints))

    def caller(self, command: str) -> Caller:
        """Return as whom a command visits the service."""
        from paddock.log.etcd.keys import BOOT_BYTES
        from paddock.storage.cluster.visitor import Caller

        version = f"{__version__} (paddock cluster {command})"
        return Caller(secrets.token_bytes(BOOT_BYTES), version)

    @asynccontextmanager
    async def _store(self, *endpoints: str) -> AsyncIterator[Store]:
        from paddock.server.cluster.connection import open_store

        store = open_store(
            self.config, LogUrl(endpoints, self.url.name, self.url.is_secure, self.url.compacts)
        )
        try:
            yield store
        finally:
            await store.close()

    async def _check_answers(self, store: Store) -> None:
        """Read a key: what comes later is repeated for a minute, and somebody waits for us."""
        from paddock.log.etcd.calls import Calls
        from paddock.log.interface import LogError

        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await Calls(rest=0, attempts_max=_ANSWER_ATTEMPTS).repeat(store.read, self.keys.id)
        except TimeoutError:
            hosts = ", ".join(self.url.endpoints)
            raise LogError(f"etcd at {hosts}: no answer within {_ANSWER_SECONDS:g} s") from None

    async def _status(self, endpoint: str) -> tuple[str, Status | None, str]:
        from paddock.log.interface import LogError

        async with self._store(endpoint) as store:
            try:
                return endpoint, await store.status(), ""
            except LogError as error:
                return endpoint, None, str(error).removeprefix(f"etcd at {endpoint}: ")


def shared_log_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """Add the options; the command receives them as `log`."""

    @functools.wraps(command)
    def wrapped(*arguments: object, **given: object) -> _T:
        options = {
            one.option: str(value)
            for one in _SETTINGS
            if one.option and (value := given.pop(one.name)) is not None
        }
        return command(*arguments, log=_read(options), **given)

    for one in reversed(_SETTINGS):
        if one.option:
            option = click.option(
                one.option,
                one.name,
                metavar=one.parser.metavar,
                help=f"{one.help}  [env var: {one.variable}]",
            )
            wrapped = option(wrapped)
    return wrapped


class DataOrLog(click.types.StringParamType):
    """A data folder, or the address of a log: for the type of an argument.

    Credentials for etcd come from the environment.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).startswith(("etcd://", "etcds://")):
            return _read({"--log": str(value)})
        return PATH.convert(value, param, ctx)


DATA_OR_LOG: Final = DataOrLog()


def check_is_no_cache(data: Path, instead: str = "name the log: etcd://…") -> None:
    """Raise CannotBeDone, with what to do instead, for the folder of a server that shares a log."""
    if (data / CACHE).is_dir():
        raise CannotBeDone(f"{data}: is the cache of a server that shares a log; {instead}")


def _read(options: dict[str, str]) -> SharedLogOptions:
    settings = Settings()
    variables = {one.variable for one in _SETTINGS}
    try:
        settings.read_environment(
            {name: value for name, value in os.environ.items() if name in variables}
        )
        settings.read_options(options)
        config = settings.config()
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if config.shared_log is None:
        raise click.UsageError(
            "which log? --log etcd://host:port,…/name, or the variable PADDOCK_LOG"
        )
    check_grpc()
    return SharedLogOptions(config, config.shared_log)


def check_grpc() -> None:
    """Raise CannotBeDone if etcd cannot be spoken with."""
    from importlib.util import find_spec

    if find_spec("grpc") is None:
        raise CannotBeDone("a log in etcd needs grpcio: run pip install 'paddock-zk[etcd]'")
