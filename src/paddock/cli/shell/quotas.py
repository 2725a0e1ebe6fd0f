"""Commands about quotas, which are nodes below /zookeeper/quota that the servers look at.

A quota on `/app` is the node `/zookeeper/quota/app/zookeeper_limits`, with a text of limits as its
data; beside it the servers keep `zookeeper_stats`, what there is. No quota may stand above or below
another one. All this is done here, step by step, since the service has no request for it.
"""

import contextlib
import re
from typing import Final

from paddock.cli.shell.parsing import Flag, Given, as_int, as_long
from paddock.cli.shell.reading import visit
from paddock.cli.shell.shell import Shell
from paddock.cli.shell.texts import CommandError, check_path
from paddock.client.client import Client
from paddock.errors import NodeExistsError, NoNodeError

_ROOT: Final = "/zookeeper/quota"
_LIMITS: Final = "zookeeper_limits"
_STATS: Final = "zookeeper_stats"
_SEPARATORS: Final = re.compile("[,;]+")

_COUNT, _BYTES = "count", "bytes"
_COUNT_HARD, _BYTES_HARD = "countHardLimit", "byteHardLimit"
# By flag: the key of the limit, and what upstream says of the flag.
_FLAGS: Final = {
    "n": (_COUNT, "num soft quota"),
    "b": (_BYTES, "bytes soft quota"),
    "N": (_COUNT_HARD, "num hard quota"),
    "B": (_BYTES_HARD, "bytes hard quota"),
}
_NO_LIMIT: Final = -1


def limit_flags(*, take_value: bool) -> tuple[Flag, ...]:
    return tuple(Flag(name, says, take_value) for name, (_, says) in _FLAGS.items())


class Track(dict[str, int]):
    """Limits, or what there is, by key; one that is not there is no limit."""

    @classmethod
    def read(cls, data: bytes | None) -> "Track":
        track = cls()
        for pair in _SEPARATORS.split((data or b"").decode("utf-8", "replace")):
            key, _, rest = pair.partition("=")
            text = rest.partition("=")[0]
            number = as_long(text) if text else _NO_LIMIT
            if number is None:
                raise CommandError(f'For input string: "{text}"')
            if key:
                track[key] = number
        return track

    def limit(self, key: str) -> int:
        return self.get(key, _NO_LIMIT)

    def __str__(self) -> str:
        text = f"{_COUNT}={self.limit(_COUNT)},{_BYTES}={self.limit(_BYTES)}"
        others = sorted(self.keys() - {_COUNT, _BYTES})
        # The second equals sign has servers from before hard limits overlook what follows.
        return text + ("=" + "".join(f";{key}={self[key]}" for key in others) if others else "")


async def setquota(shell: Shell, given: Given) -> None:
    path = given.arguments[0]
    if path.startswith(_ROOT):
        shell.err(f"cannot set a quota under the path: {_ROOT}")
        return
    ((flag, text),) = given.flags.items()
    wanted = _limit(shell, flag, text or "")
    if wanted is None:
        return
    client = await shell.client(path)
    if await client.exists(path) is None:
        raise CommandError(f"{path} does not exist.")
    await _check_none_below(shell, client, path)
    await _check_none_above(client, path)
    await _make_ways(client, path)
    key = _FLAGS[flag][0]
    limits_path, stats_path = _limits(path), f"{_ROOT}{path}/{_STATS}"
    is_new = await client.exists(limits_path) is None
    if is_new:
        none = dict.fromkeys((_COUNT, _BYTES, _COUNT_HARD, _BYTES_HARD), _NO_LIMIT)
        await client.create(limits_path, str(Track({**none, key: wanted})).encode())
        await client.create(stats_path, str(Track({_COUNT: 0, _BYTES: 0})).encode())
    limits = Track.read((await client.get(limits_path)).data)
    limits[key] = wanted
    _warn(shell, limits, Track.read((await client.get(stats_path)).data))
    if not is_new:
        await client.set(limits_path, str(limits).encode())


async def listquota(shell: Shell, given: Given) -> None:
    path = given.arguments[0]
    shell.err(f"absolute path is {_limits(path)}")
    client = await shell.client(_limits(path))
    try:
        limits = Track.read((await client.get(_limits(path))).data)
        stats = Track.read((await client.get(f"{_ROOT}{path}/{_STATS}")).data)
    except NoNodeError:
        shell.err(f"quota for {path} does not exist.")
        return
    shell.out(f"Output quota for {path} {limits}")
    shell.out(f"Output stat for {path} {stats}")


async def delquota(shell: Shell, given: Given) -> None:
    path = given.arguments[0]
    client = await shell.client(_limits(path))
    if await client.exists(_limits(path)) is None:
        shell.out(f"Quota does not exist for {path}")
        return
    try:
        limits = Track.read((await client.get(_limits(path))).data)
        if given.flags:
            limits.update({_FLAGS[flag][0]: _NO_LIMIT for flag in given.flags})
            await client.set(_limits(path), str(limits).encode())
        else:
            await _remove(client, f"{_ROOT}{path}")
    except NoNodeError:
        shell.err(f"quota for {path} does not exist.")


def _limits(path: str) -> str:
    return f"{_ROOT}{path}/{_LIMITS}"


def _limit(shell: Shell, flag: str, text: str) -> int | None:
    """Parse a limit; print why it is none, and return None."""
    counts = flag in "nN"
    number = as_int(text) if counts else as_long(text)
    if number is None:
        shell.err("NumberFormatException happens when parsing the option value")
    elif counts and number <= 0:
        shell.err("the num quota must be greater than zero")
    elif number < 0:
        shell.err("the bytes quota must be greater than or equal to zero")
    else:
        return number
    return None


async def _check_none_below(shell: Shell, client: Client, path: str) -> None:
    check_path(f"{_ROOT}{path}")
    # There may be nothing at all.
    with contextlib.suppress(NoNodeError):
        async for one in visit(shell, f"{_ROOT}{path}"):
            try:
                names = await client.children(one)
            except NoNodeError:
                continue
            if _LIMITS in names and one != f"{_ROOT}{path}":
                child = one.removeprefix(_ROOT)
                raise CommandError(f"{path} has a child {child} which has a quota")


async def _check_none_above(client: Client, path: str) -> None:
    above = _ROOT
    for part in path.split("/")[1:-1]:
        above += f"/{part}"
        try:
            names = await client.children(above)
        except NoNodeError:
            return
        if _LIMITS in names:
            raise CommandError(f"{path} has a parent {above.removeprefix(_ROOT)} which has a quota")


async def _make_ways(client: Client, path: str) -> None:
    """Make the nodes down to where the quota is to be."""
    way = ""
    # The first two are missing in a service whose chroot is not the root.
    for part in f"{_ROOT}{path}".split("/")[1:]:
        way += f"/{part}"
        # Another may create it now.
        with contextlib.suppress(NodeExistsError):
            if await client.exists(way) is None:
                await client.create(way, None)


async def _remove(client: Client, path: str) -> None:
    """Delete a quota, and the empty nodes above it."""
    for name in await client.children(path):
        await client.delete(f"{path}/{name}")
    while path != _ROOT and not await client.children(path):
        await client.delete(path)
        path = path.rpartition("/")[0]


def _warn(shell: Shell, limits: Track, stats: Track) -> None:
    """Print a warning if a limit is exceeded already."""
    for what, keys in (("count", (_COUNT, _COUNT_HARD)), ("bytes", (_BYTES, _BYTES_HARD))):
        there_are = stats.limit(what)
        if any(_NO_LIMIT < limits.limit(key) < there_are for key in keys):
            shell.out(
                f"[Warning]: the {what} quota you create is less than the existing {what}:"
                f"{there_are}"
            )
