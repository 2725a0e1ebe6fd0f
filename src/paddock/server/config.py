"""The settings of a server, and how a `zoo.cfg` is read into them.

`ServerConfig` holds settings that make sense together; it refuses to be made otherwise. A `zoo.cfg`
is a Java properties file; every key that counts here is one row of the table `KEYS`, any other gets
a warning. A value that cannot be used raises `ConfigError`, whose message is one line:

    zoo.cfg:3: tickTime = 'two': expected milliseconds, 1 or more
"""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from paddock.errors import PaddockError
from paddock.server.properties import Property, read_properties

DEFAULT_PORT: Final = 2181
INT32_MAX: Final = 2**31 - 1
# Upstream purges nothing if fewer are to be kept, so it raises a smaller number to this one.
PURGE_RETAIN_COUNT_MIN: Final = 3
# Upstream resets a smaller snapCount to this one.
SNAPSHOT_EVERY_MIN: Final = 2
# A session timeout that was not given and follows from the tick; the number is upstream's.
FROM_TICK: Final = -1

# Some fields of a ServerConfig by their names, ready to be passed to it.
Settings: TypeAlias = dict[str, Any]


class ConfigError(PaddockError):
    """A setting cannot be used. The message is one line that says which one and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything that a single server needs to know before it starts.

    Defaults are upstream's, except where a comment says why not.
    """

    # Upstream listens on every interface unless told otherwise; we do that only when asked to.
    host: str = "127.0.0.1"
    # 0 lets the system choose.
    port: int = DEFAULT_PORT
    # None keeps everything in memory: nothing survives the process.
    data_directory: Path | None = None
    tick_time_ms: int = 2000
    # Invariant once made: 0 < min_session_timeout_ms <= max_session_timeout_ms. The defaults are 2
    # and 20 ticks.
    min_session_timeout_ms: int = FROM_TICK
    max_session_timeout_ms: int = FROM_TICK
    # 0 is no limit.
    max_connections_per_address: int = 60
    # Entries of the log between two snapshots.
    snapshot_every: int = 100_000
    # How many snapshots a purge leaves, with the log that they need.
    purge_retain_count: int = PURGE_RETAIN_COUNT_MIN
    # 0 never purges. Any other number purges whenever a snapshot has been taken: unlike upstream,
    # where nothing is purged unless asked for, a disk does not fill up by default.
    purge_interval_hours: int = 1
    # TTL nodes. Off upstream, where old servers of an ensemble might not know them; a single server
    # has no such neighbours, so here they work at once.
    extended_types_enabled: bool = True
    # The longest request that is read; a longer one closes its connection.
    max_frame_bytes: int = 0xFFFFF
    # The four-letter words that are answered; "*" stands for all of them. `srvr` always is.
    four_letter_words: frozenset[str] = frozenset({"srvr"})
    # `user:digest` of the one who may do everything; None if there is nobody.
    super_digest: str | None = field(default=None, repr=False)
    container_check_interval_ms: int = 60_000

    def __post_init__(self) -> None:
        if self.min_session_timeout_ms == FROM_TICK:
            object.__setattr__(self, "min_session_timeout_ms", 2 * self.tick_time_ms)
        if self.max_session_timeout_ms == FROM_TICK:
            object.__setattr__(self, "max_session_timeout_ms", 20 * self.tick_time_ms)
        if self.min_session_timeout_ms > self.max_session_timeout_ms:
            raise ConfigError(
                f"the smallest session timeout, {self.min_session_timeout_ms} ms, "
                f"is larger than the largest, {self.max_session_timeout_ms} ms"
            )

    def answers_word(self, word: str) -> bool:
        """Tell whether this four-letter word may be answered."""
        return word == "srvr" or word in self.four_letter_words or "*" in self.four_letter_words


def parse_zoo_cfg(path: Path) -> tuple[Settings, list[str]]:
    """Read a `zoo.cfg`: return the settings it gives, and one line for each thing to warn of.

    Raises `ConfigError` if the file cannot be read or one of its values cannot be used. Of a key
    that is given twice the last one counts, as in every properties file.
    """
    try:
        # Bytes that are no UTF-8 can only be part of a file name, which they survive this way.
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    settings: Settings = {}
    warnings: list[str] = []
    # Where each field was set, for errors that concern two of them.
    origins: dict[str, Property] = {}
    for entry in read_properties(text):
        key = _KEYS_BY_NAME.get(entry.key.removeprefix("zookeeper."))
        if key is None:
            warnings.append(f"{path}:{entry.line}: {_why_unused(entry.key)}")
            continue
        try:
            value = key.parse(entry.value)
        except ValueError:
            shown = "(not shown)" if key.secret else repr(entry.value)
            raise ConfigError(
                f"{path}:{entry.line}: {entry.key} = {shown}: expected {key.expected}"
            ) from None
        if key.minimum is not None and value < key.minimum:
            warnings.append(
                f"{path}:{entry.line}: {entry.key} = {value} is too small, {key.minimum} is used"
            )
            value = key.minimum
        settings[key.field] = value
        origins[key.field] = entry
    _check_session_timeouts(path, settings, origins)
    return settings, warnings


def _check_session_timeouts(path: Path, settings: Settings, origins: dict[str, Property]) -> None:
    try:
        ServerConfig(**settings)
    except ConfigError as error:
        culprits = [
            origins[name]
            for name in ("min_session_timeout_ms", "max_session_timeout_ms", "tick_time_ms")
            if name in origins
        ]
        last = max(culprits, key=lambda entry: entry.line)
        raise ConfigError(f"{path}:{last.line}: {last.key} = {last.value!r}: {error}") from None


def _why_unused(key: str) -> str:
    unused = f"key {key!r} is not used by this server"
    if key.startswith(("server.", "group.", "weight.")):
        return f"{unused}: it runs alone, ensembles are not run here"
    return unused


# The parsers of values. Each raises ValueError for what it cannot read.


def _decimal(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(text)
    return _within(int(text), -INT32_MAX - 1)


def _within(number: int, low: int, high: int = INT32_MAX) -> int:
    if not low <= number <= high:
        raise ValueError(number)
    return number


def _at_least(low: int, high: int = INT32_MAX) -> Callable[[str], int]:
    return lambda text: _within(_decimal(text), low, high)


def _at_least_zero_else_zero(text: str) -> int:
    """Upstream takes anything below for 0 too."""
    return max(0, _decimal(text))


def _timeout_ms(text: str) -> int:
    number = _decimal(text)
    return FROM_TICK if number == FROM_TICK else _within(number, 1)


def _decoded_integer(text: str) -> int:
    """Read a number as Java's `Integer.decode`: `0x…` and `#…` are hexadecimal, `0…` is octal."""
    match = re.fullmatch(r"\+?(?:(?:0[xX]|#)([0-9a-fA-F]+)|0([0-7]+)|([0-9]+))", text)
    if match is None:
        raise ValueError(text)
    hexadecimal, octal, decimal = match.groups()
    if hexadecimal is not None:
        return _within(int(hexadecimal, 16), 1)
    return _within(int(octal, 8) if octal is not None else int(decimal), 1)


def _boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError(text)


def _text(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def _folder(text: str) -> Path:
    return Path(_text(text))


def _words(text: str) -> frozenset[str]:
    words = frozenset(word.strip() for word in text.split(",")) - {""}
    if any(word != "*" and not re.fullmatch(r"[a-z]{4}", word) for word in words):
        raise ValueError(text)
    return words


def _super_digest(text: str) -> str:
    user, _, digest = text.partition(":")
    try:
        size = len(base64.b64decode(digest, validate=True))
    except binascii.Error:
        raise ValueError(text) from None
    if not user or size != 20:
        raise ValueError(text)
    return text


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a `zoo.cfg`: what it sets, how its value is read, what it says if it cannot be."""

    name: str
    field: str
    parse: Callable[[str], Any]
    expected: str
    # A smaller number is raised to this one, with a warning.
    minimum: int | None = None
    # What was written may be a password in the wrong place: an error does not repeat it.
    secret: bool = False


KEYS: Final = (
    Key("dataDir", "data_directory", _folder, "a folder"),
    Key("clientPort", "port", _at_least(0, 65535), "a port, 0 to 65535"),
    Key("clientPortAddress", "host", _text, "a name or an address"),
    Key("tickTime", "tick_time_ms", _at_least(1), "milliseconds, 1 or more"),
    Key(
        "minSessionTimeout",
        "min_session_timeout_ms",
        _timeout_ms,
        "milliseconds, 1 or more, or -1 for 2 ticks",
    ),
    Key(
        "maxSessionTimeout",
        "max_session_timeout_ms",
        _timeout_ms,
        "milliseconds, 1 or more, or -1 for 20 ticks",
    ),
    Key(
        "maxClientCnxns",
        "max_connections_per_address",
        _at_least_zero_else_zero,
        "a number of connections, 0 for no limit",
    ),
    Key(
        "snapCount",
        "snapshot_every",
        _decimal,
        "a number of entries, 2 or more",
        minimum=SNAPSHOT_EVERY_MIN,
    ),
    Key(
        "autopurge.snapRetainCount",
        "purge_retain_count",
        _decimal,
        "a number of snapshots, 3 or more",
        minimum=PURGE_RETAIN_COUNT_MIN,
    ),
    Key(
        "autopurge.purgeInterval",
        "purge_interval_hours",
        _at_least_zero_else_zero,
        "hours, 0 for never",
    ),
    Key("extendedTypesEnabled", "extended_types_enabled", _boolean, "true or false"),
    Key(
        "jute.maxbuffer",
        "max_frame_bytes",
        _decoded_integer,
        "a number of bytes, 1 or more, decimal or as 0x…",
    ),
    Key(
        "4lw.commands.whitelist",
        "four_letter_words",
        _words,
        "four-letter words with commas between them, or *",
    ),
    Key(
        "DigestAuthenticationProvider.superDigest",
        "super_digest",
        _super_digest,
        "user:digest, where digest is the SHA-1 of user:password in base 64",
        secret=True,
    ),
    Key(
        "znode.container.checkIntervalMs",
        "container_check_interval_ms",
        _at_least(1),
        "milliseconds, 1 or more",
    ),
)

_KEYS_BY_NAME: Final = {key.name: key for key in KEYS}
