"""Error messages of the shell: one line, in zkCli's words."""

from typing import Final

from paddock import errors
from paddock.errors import (
    BadArgumentsError,
    BadVersionError,
    InvalidACLError,
    NewConfigNoQuorumError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NotReadOnlyError,
    PaddockError,
    QuotaExceededError,
    ReconfigInProgressError,
    ServiceError,
)


class CommandError(Exception):
    """A command cannot be carried out; its text is the line for stderr."""


class UsageError(CommandError):
    """A command has the wrong arguments; the shell prints its usage."""


# What upstream says instead of naming the code, with the path behind it.
_SAYINGS: Final[dict[type[ServiceError], str]] = {
    NoNodeError: "Node does not exist: ",
    NoChildrenForEphemeralsError: "Ephemerals cannot have children: ",
    NodeExistsError: "Node already exists: ",
    NotEmptyError: "Node not empty: ",
    NotReadOnlyError: "Not a read-only call: ",
    InvalidACLError: "Acl is not valid : ",
    NoAuthError: "Insufficient permission : ",
    BadArgumentsError: "Arguments are not valid : ",
    BadVersionError: "version No is not valid : ",
    QuotaExceededError: "Quota has exceeded : ",
}
# Those of which upstream does not name the path.
_WHOLE_SAYINGS: Final[dict[type[ServiceError], str]] = {
    ReconfigInProgressError: (
        "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)"
    ),
    NewConfigNoQuorumError: (
        "No quorum of new config is connected and up-to-date with the leader of last commmitted"
        " config - try invoking reconfiguration after new servers are connected and synced"
    ),
}
# Names of codes that are not the name of our error without "Error".
_CODES: Final = {
    errors.SYSTEM_ERROR: "SystemError",
    errors.CONNECTION_LOSS: "ConnectionLoss",
    errors.MARSHALLING_ERROR: "MarshallingError",
    errors.API_ERROR: "APIError",
    errors.NOT_EMPTY: "Directory not empty",
    errors.SESSION_EXPIRED: "Session expired",
    errors.INVALID_CALLBACK: "Invalid callback",
    errors.AUTH_FAILED: "AuthFailed",
    errors.SESSION_MOVED: "Session moved",
    errors.NOT_READ_ONLY: "Not a read-only call",
    errors.EPHEMERAL_ON_LOCAL_SESSION: "Ephemeral node on local session",
    errors.NO_WATCHER: "No such watcher",
    errors.RECONFIG_DISABLED: "Reconfig is disabled",
    errors.SESSION_CLOSED_REQUIRE_SASL: "Session closed because client failed to authenticate",
    errors.QUOTA_EXCEEDED: "Quota has exceeded",
    errors.THROTTLED: "Op throttled due to high load",
}


def code_line(error: ServiceError) -> str:
    """Name the code of an error, and the path, as upstream's errors do by themselves."""
    name = type(error).__name__.removesuffix("Error")
    if error.code in _CODES or type(error).code != error.code:
        name = _CODES.get(error.code, f"Unknown error {error.code}")
    return f"KeeperErrorCode = {name}" + (f" for {error.path}" if error.path else "")


def line_about(error: PaddockError | CommandError) -> str:
    """Return the line about a failure, in the words of zkCli's commands."""
    if isinstance(error, CommandError):
        return str(error)
    if not isinstance(error, ServiceError):
        return " ".join(str(error).split())
    if type(error) in _WHOLE_SAYINGS:
        return _WHOLE_SAYINGS[type(error)]
    if type(error) in _SAYINGS:
        return f"{_SAYINGS[type(error)]}{error.path or ''}"
    return code_line(error)


def check_path(path: str, *, sequential: bool = False) -> None:
    """Refuse what is no path, in upstream's words; the client would in its own."""
    whole = path + "1" if sequential else path
    if not whole:
        raise CommandError("Path length must be > 0")
    if whole[0] != "/":
        raise CommandError("Path must start with / character")
    if whole == "/":
        return
    if whole[-1] == "/":
        raise CommandError("Path must not end with / character")
    reason = _why_no_path(whole)
    if reason is not None:
        raise CommandError(f'Invalid path string "{whole}" caused by {reason}')


def _why_no_path(path: str) -> str | None:
    for position, character in enumerate(path[1:], start=1):
        if character == "\0":
            return f"null character not allowed @{position}"
        if path[position - 1 : position + 1] == "//":
            return f"empty node name specified @{position}"
        if character == "." and path[position + 1 : position + 2] in ("", "/"):
            begins = path.rindex("/", 0, position)
            if path[begins + 1 : position + 1] in (".", ".."):
                return f"relative paths not allowed @{position}"
        if not _may_be_in_path(character):
            return f"invalid character @{position}"
    return None


def _may_be_in_path(character: str) -> bool:
    # Nothing outside of the basic plane, which upstream sees as two surrogates.
    code = ord(character)
    return 0x1F < code < 0x7F or 0x9F < code < 0xD800 or 0xF8FF < code < 0xFFF0
