"""Arguments, checked before anything is sent.

An invalid one raises InvalidArgumentError, which names it. Valid ones pass with as little work as
possible: every request comes through here.
"""

from __future__ import annotations

import math
import re
from inspect import CO_COROUTINE, iscoroutinefunction
from types import CodeType
from typing import Final, TypeGuard

from paddock.errors import InvalidArgumentError
from paddock.protocol import paths
from paddock.protocol.acl import ACL, ALL, Identity

# The service has five bytes for the milliseconds.
_TTL_SECONDS_MAX: Final = (2**40 - 1) / 1000
_INT32_MAX: Final = 2**31 - 1
# Long enough to be unique, and without characters that need care in a name.
_MARK: Final = re.compile("[0-9A-Za-z]{16,64}")


# Nodes.


def checked_path(path: object) -> bytes:
    if not isinstance(path, str):
        raise InvalidArgumentError(f"path: expected text, not {type(path).__name__}")
    encoded = path.encode("utf-8", "surrogatepass")
    if not paths.is_valid(encoded):
        raise InvalidArgumentError(f"path: {path!r} {_why_no_path(path)}")
    return encoded


def _why_no_path(path: str) -> str:
    if not path.startswith("/"):
        return "does not begin with a slash"
    if path.endswith("/"):
        return "ends with a slash"
    parts = path.split("/")[1:]
    if "" in parts:
        return "has two slashes in a row"
    if "." in parts or ".." in parts:
        return "has a part . or .., and there is nothing they could stand for"
    return "has a null character" if "\0" in path else "has a character that no path may have"


def checked_data(data: object) -> bytes | None:
    if data is not None and not isinstance(data, bytes):
        hint = ": encode it" if isinstance(data, str) else ""
        raise InvalidArgumentError(f"data: expected bytes, not {type(data).__name__}{hint}")
    return data


def checked_bytes(name: str, value: object) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidArgumentError(f"{name}: expected bytes, not {type(value).__name__}")
    return value


def checked_version(version: object, largest: int = _INT32_MAX) -> int:
    if not _is_int(version) or not -1 <= version <= largest:
        raise InvalidArgumentError(f"version: {version!r} is no version; -1 stands for any")
    return version


def checked_acl(acl: object) -> list[ACL]:
    if isinstance(acl, ACL):
        raise InvalidArgumentError(f"acl: expected a list of ACL, not a single one: [{acl!r}]")
    if not isinstance(acl, list | tuple):
        raise InvalidArgumentError(f"acl: expected a list of ACL, not {acl!r}")
    if not acl:
        raise InvalidArgumentError("acl: an empty list lets nobody in, and no server takes it")
    for entry in acl:
        if not isinstance(entry, ACL):
            raise InvalidArgumentError(f"acl: expected a list of ACL, not one with {entry!r}")
        permissions: object = entry.permissions
        if not _is_int(permissions) or not 0 <= permissions <= ALL:
            raise InvalidArgumentError(f"acl: {permissions!r} are no permissions")
        identity: object = entry.identity
        if not isinstance(identity, Identity):
            raise InvalidArgumentError(f"acl: expected an Identity, not {identity!r}")
        for name, text in (("scheme", identity.scheme), ("id", identity.id)):
            if not _is_text(text):
                raise InvalidArgumentError(f"acl: the {name} {text!r} is not text")
    return [*acl]


def check_node_kind(ephemeral: object, sequential: object, container: object, ttl: object) -> None:
    """Check that there is such a kind of node."""
    check_flag("ephemeral", ephemeral)
    check_flag("sequential", sequential)
    check_flag("container", container)
    if bool(ephemeral) + bool(container) + (ttl is not None) > 1 or (container and sequential):
        raise InvalidArgumentError(
            "ephemeral, container, ttl: a node is one of them at most, and a container is not"
            " sequential"
        )


def milliseconds_of_ttl(ttl: object) -> int:
    if not is_number(ttl) or not 0.001 <= ttl <= _TTL_SECONDS_MAX:
        raise InvalidArgumentError(f"ttl: {ttl!r} is no number of seconds that a node may have")
    return round(ttl * 1000)


def check_mark(mark: object, data: bytes | None, version: int) -> None:
    """Check that a mark can tell a write from all others."""
    if not isinstance(mark, bytes) or not mark:
        raise InvalidArgumentError(f"mark: expected some bytes, not {mark!r}")
    if data is None or mark not in data:
        raise InvalidArgumentError("mark: it is not in the data")
    if version < 0:
        raise InvalidArgumentError("mark: it needs a version, or a write could happen twice")


def check_protection(protected: object) -> None:
    """Check that it is a flag, or a mark that may stand in the name of a node."""
    if isinstance(protected, str) and not _MARK.fullmatch(protected):
        raise InvalidArgumentError(
            "protected: expected True, False or a mark of 16 to 64 letters and digits, as new_mark"
            f" gives, not {protected!r}"
        )
    if not isinstance(protected, bool | str):
        raise InvalidArgumentError(f"protected: expected True, False or a mark, not {protected!r}")


# Watches.


def check_watcher(name: str, watcher: object) -> None:
    """Check that it can be called with an event, and does something when it is."""
    if not callable(watcher):
        raise InvalidArgumentError(f"{name}: {watcher!r} cannot be called")
    if _is_coroutine_function(watcher):
        raise InvalidArgumentError(
            f"{name}: {watcher!r} is a coroutine function, and nobody would await it; use"
            " client.watch, or put events on a queue"
        )
    # Watchers are keys of dictionaries.
    try:
        hash(watcher)
    except TypeError:
        raise InvalidArgumentError(
            f"{name}: {watcher!r} has no hash, as any callback needs; return a method of it"
        ) from None


def _is_coroutine_function(callback: object) -> bool:
    code = getattr(getattr(callback, "__func__", callback), "__code__", None)
    if isinstance(code, CodeType):
        # A function or a method: no need to look behind anything, which is what costs time.
        return bool(code.co_flags & CO_COROUTINE)
    return iscoroutinefunction(callback)


# The session, and the rest.


def check_seconds(name: str, value: object) -> None:
    """Check that something is a time to wait: less than none is fine, and so is for ever."""
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
        raise InvalidArgumentError(f"{name}: {value!r} is no number of seconds")


def check_positive_seconds(name: str, value: object) -> None:
    """Check that something is a time that passes."""
    if not is_number(value) or value <= 0:
        raise InvalidArgumentError(f"{name}: {value!r} is no number of seconds above 0")


def check_credentials(scheme: object, credentials: object) -> None:
    # Neither of them is shown: they may be in the wrong place.
    if not isinstance(scheme, str) or not scheme:
        raise InvalidArgumentError(f"scheme: expected text, not {type(scheme).__name__}")
    if not _is_text(scheme):
        raise InvalidArgumentError("scheme: it has characters that cannot be sent")
    if credentials is not None and not isinstance(credentials, bytes):
        hint = ": encode it" if isinstance(credentials, str) else ""
        kind = type(credentials).__name__
        raise InvalidArgumentError(f"credentials: expected bytes, not {kind}{hint}")


def servers(name: str, value: object) -> str | None:
    """Return servers as a reconfiguration has them: text with commas."""
    if value is None or _is_text(value):
        return value
    if isinstance(value, list | tuple) and all(_is_text(one) for one in value):
        return ",".join(value)
    raise InvalidArgumentError(f"{name}: expected text or a list of text, not {value!r}")


def check_flag(name: str, flag: object) -> None:
    if not isinstance(flag, bool):
        raise InvalidArgumentError(f"{name}: expected True or False, not {flag!r}")


def check_count(name: str, count: object) -> None:
    if not _is_int(count) or count < 1:
        raise InvalidArgumentError(f"{name}: {count!r} is not 1 or more")


def check_not_negative(name: str, number: object) -> None:
    if not _is_int(number) or number < 0:
        raise InvalidArgumentError(f"{name}: {number!r} is not 0 or more")


def check_integer(name: str, number: object) -> None:
    if not _is_int(number):
        raise InvalidArgumentError(f"{name}: {number!r} is no whole number")


def _is_int(value: object) -> TypeGuard[int]:
    """Return whether it is a number; True and False are not meant when they are given for one."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: object) -> TypeGuard[str]:
    """Return whether it is text that can be sent; half a pair of surrogates cannot."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False
