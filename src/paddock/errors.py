"""Every error of Paddock, and the result codes of ZooKeeper's protocol behind them.

An error answers the question "what should I do now?", so the classes are grouped by the answer:

* `RequestError`: refused, nothing has changed.
* `ConnectionLostError`: the outcome is unknown; retry only what is idempotent.
* `SessionExpiredError`: the session and its ephemeral nodes are gone.
* `AuthenticationError`: the credentials were not accepted.
* `ProtocolError`: one side did not keep to the protocol.
* `UsageError`: a call where, or when, none can be made.
* `RecipeError`: something that is built on the service cannot go on.

Every code on the wire has exactly one class; `error_from_code` finds it. An unknown
code becomes a plain `RequestError`, so a newer server cannot break an older client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

OK: Final = 0
SYSTEM_ERROR: Final = -1
RUNTIME_INCONSISTENCY: Final = -2
DATA_INCONSISTENCY: Final = -3
CONNECTION_LOSS: Final = -4
MARSHALLING_ERROR: Final = -5
UNIMPLEMENTED: Final = -6
OPERATION_TIMEOUT: Final = -7
BAD_ARGUMENTS: Final = -8
UNKNOWN_SESSION: Final = -12
NEW_CONFIG_NO_QUORUM: Final = -13
RECONFIG_IN_PROGRESS: Final = -14
API_ERROR: Final = -100
NO_NODE: Final = -101
NO_AUTH: Final = -102
BAD_VERSION: Final = -103
NO_CHILDREN_FOR_EPHEMERALS: Final = -108
NODE_EXISTS: Final = -110
NOT_EMPTY: Final = -111
SESSION_EXPIRED: Final = -112
INVALID_CALLBACK: Final = -113
INVALID_ACL: Final = -114
AUTH_FAILED: Final = -115
SESSION_MOVED: Final = -118
NOT_READ_ONLY: Final = -119
EPHEMERAL_ON_LOCAL_SESSION: Final = -120
NO_WATCHER: Final = -121
REQUEST_TIMEOUT: Final = -122
RECONFIG_DISABLED: Final = -123
SESSION_CLOSED_REQUIRE_SASL: Final = -124
QUOTA_EXCEEDED: Final = -125
THROTTLED: Final = -127


class PaddockError(Exception):
    """The root of everything that Paddock raises on purpose.

    `session_may_be_over` says whether the session is the reason: it has expired, or nothing was
    answered for so long that it may have. `run_in_sessions` goes on with a new one then.
    """

    session_may_be_over: bool = False


class ServiceError(PaddockError):
    """A reply of the service with an error code: operation, path, code and reason.

    The reason is the meaning of the code, unless more is known. A hint names what helps.
    `may_be_applied` is False if a write surely has no effect, now or later: it was refused or never
    sent, or the terms of an exact session say so. It may be repeated then, whatever it is.
    """

    # That of the class, or an unknown one of its own.
    code: int = API_ERROR
    may_be_applied: bool = False
    meaning: ClassVar[str] = "the service refused the request"

    def __init__(
        self,
        operation: str = "request",
        path: str | None = None,
        reason: str | None = None,
        *,
        hint: str | None = None,
    ) -> None:
        self.operation = operation
        self.path = path
        self.reason = self.meaning if reason is None else reason
        self.hint = hint
        subject = operation if path is None else f"{operation} {path}"
        super().__init__(f"{subject}: {self.reason}" + ("" if hint is None else f"; {hint}"))

    def __reduce__(self) -> tuple[Any, ...]:
        # What it was made of is not in its text, so it is not made again from that.
        return _remake, (type(self), self.args), self.__dict__


# The class of each code.
_CLASSES: Final[dict[int, type[ServiceError]]] = {}
_Kind = TypeVar("_Kind", bound=ServiceError)


def _code(number: int, meaning: str) -> Callable[[type[_Kind]], type[_Kind]]:
    """Make a class the error of a code, and say what the code means."""

    def mark(kind: type[_Kind]) -> type[_Kind]:
        kind.code = number
        kind.meaning = meaning
        _CLASSES[number] = kind
        return kind

    return mark


class RequestError(ServiceError):
    """The service refused the request, and nothing has changed."""


# The bare API error is the one code that means nothing more than "refused".
_CLASSES[API_ERROR] = RequestError


class UnknownCodeError(RequestError):
    """A refusal with a code that this version does not know."""

    def __init__(self, number: int, operation: str = "request", path: str | None = None) -> None:
        self.code = self.number = number
        super().__init__(operation, path)
        self.args = (f"{self.args[0]} (code {number})",)


@_code(CONNECTION_LOSS, "the connection was lost and the outcome is unknown")
class ConnectionLostError(ServiceError):
    """The connection was lost: the outcome is unknown, retry only what is idempotent.

    In an exact session this means that the session may be over, or that the service has another
    history than before; a lost connection alone leaves nothing unknown there. If it was not even
    sent, `may_be_applied` is False, and the message says so.
    """

    may_be_applied = True


class NotAppliedError(ConnectionLostError):
    """The write was not applied, and is not sent again: ten connections were lost with it.

    Only in an exact session. As a rule the request is the reason: it is too large for the servers.
    """

    meaning = "it had no effect: connection after connection was lost with it"
    may_be_applied = False


class ReplyLostError(ConnectionLostError):
    """The write was applied, and its reply is lost: it must not be repeated.

    Only in an exact session, for a reply that was too large to be kept.
    """

    meaning = "the write was applied, and its reply was lost with the connection"


@_code(SESSION_EXPIRED, "the session has expired")
class SessionExpiredError(ServiceError):
    """The session is over, and its ephemeral nodes are gone: it has expired, or was closed.

    A write that was in flight may have been applied before that, as `may_be_applied` says.
    """

    may_be_applied = True
    session_may_be_over = True


@_code(AUTH_FAILED, "the credentials were not accepted")
class AuthenticationError(ServiceError):
    """The credentials were not accepted."""

    may_be_applied = True


class ProtocolError(PaddockError):
    """One side did not keep to the protocol."""


class LocalProtocolError(ProtocolError):
    """We were about to send something that the protocol does not allow."""


class InvalidArgumentError(LocalProtocolError, ValueError):
    """An argument cannot be used; the message names it. Nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that the protocol does not allow."""


class UsageError(PaddockError, RuntimeError):
    """A call cannot be made from where it was made, or not yet; the message says how it can."""


class RecipeError(PaddockError):
    """A recipe cannot do, or go on with, what was asked of it."""


class LockStateError(RecipeError):
    """It cannot be taken by who has it, or be released by who does not; nothing has changed."""


class MixedLayoutsError(RecipeError):
    """Others at the same path do not see us: they name their nodes in another way.

    Nothing is held. The message says which layout they have: ask for the same, or use another path.
    """


class GrantLostError(RecipeError):
    """What was held is held no more, or may not be: others may hold it by now.

    The session has expired, or nothing was heard from the service for so long that it may have; or
    its node was deleted. Work under it may have to be done again, by the next holder.
    """


class RecipeClosedError(RecipeError):
    """It was closed, and stays so: make another one."""


class ChannelClosedError(RecipeError):
    """A channel takes no more entries, since a checkpoint has come; nothing was appended.

    Append to the newest channel of the room.
    """


class InvalidValueError(RecipeError):
    """A node holds a value that the recipe cannot use; the message says why. Correct it there."""


@_code(SYSTEM_ERROR, "the server could not carry it out")
class SystemFailureError(RequestError):
    """The server failed, for instance on a full disk; its log says why. Try later."""


@_code(RUNTIME_INCONSISTENCY, "not tried, because an earlier operation of the transaction failed")
class RuntimeInconsistencyError(RequestError):
    """Found in the results of a transaction, for what stands behind the operation that failed."""


@_code(DATA_INCONSISTENCY, "the server found its data inconsistent")
class DataInconsistencyError(RequestError):
    """A code that upstream reserves; look at the server that sends it."""


@_code(MARSHALLING_ERROR, "the server could not decode the request")
class MarshallingError(RequestError):
    """Client and server do not agree on the protocol: one of them is too old, or has a bug."""


@_code(UNIMPLEMENTED, "the server does not offer this operation")
class UnimplementedError(RequestError):
    """The server is older than the operation, or has it switched off. Do without it."""


@_code(OPERATION_TIMEOUT, "the operation timed out on the server")
class OperationTimeoutError(RequestError):
    """A code of upstream's own clients; no server of theirs or ours sends it."""


@_code(BAD_ARGUMENTS, "an argument is not valid")
class BadArgumentsError(RequestError):
    """Mend the request: the same one will always be refused."""


@_code(UNKNOWN_SESSION, "the server does not know this session")
class UnknownSessionError(RequestError):
    """Known to the servers of an ensemble alone; clients get `SessionExpiredError` instead."""


@_code(NEW_CONFIG_NO_QUORUM, "no quorum of the new configuration is connected")
class NewConfigNoQuorumError(RequestError):
    """Start more servers of the new configuration, and try again."""


@_code(RECONFIG_IN_PROGRESS, "another reconfiguration is under way")
class ReconfigInProgressError(RequestError):
    """Try again when it is done."""


class HistoryGoneError(RequestError):
    """The service does not have the changes behind a zxid any more, and names the oldest one.

    A feed can begin `since` that zxid, `oldest`. What has changed before it cannot be had one by
    one: read the present state, or ask for a longer history.
    """

    def __init__(self, path: str, since: int, oldest: int) -> None:
        self.since = since
        self.oldest = oldest
        super().__init__(
            "changes",
            path,
            f"the service has no changes since 0x{since:x} any more; the oldest zxid to begin at is"
            f" 0x{oldest:x}",
        )


@_code(NO_NODE, "no such node")
class NoNodeError(RequestError):
    """Create it, or its parents with `make_parents=True`, or take it as an answer."""


@_code(NO_AUTH, "the ACL does not permit it")
class NoAuthError(RequestError):
    """Authenticate with `add_auth`, or have the ACL changed by a user with ADMIN."""


@_code(BAD_VERSION, "the version does not match")
class BadVersionError(RequestError):
    """The node was changed meanwhile: read again, decide again, write again."""


@_code(NO_CHILDREN_FOR_EPHEMERALS, "an ephemeral node cannot have children")
class NoChildrenForEphemeralsError(RequestError):
    """Create it below a persistent node."""


@_code(NODE_EXISTS, "the node exists already")
class NodeExistsError(RequestError):
    """Accept it, or create with `exist_ok=True`."""


@_code(NOT_EMPTY, "the node has children")
class NotEmptyError(RequestError):
    """Delete the children first, or everything at once with `delete_tree`."""


@_code(INVALID_CALLBACK, "the callback is not valid")
class InvalidCallbackError(RequestError):
    """A code of upstream's own clients; no server of theirs or ours sends it."""


@_code(INVALID_ACL, "the ACL is not valid")
class InvalidACLError(RequestError):
    """Mend the ACL: the server does not know a scheme, or an id is none, or it has no entry.

    The scheme `auth` stands for the creator of the node, so it needs an `add_auth` first.
    """


@_code(SESSION_MOVED, "the session has moved to another connection")
class SessionMovedError(RequestError):
    """The session has left this connection. Nothing to do: the client goes on with the new one."""


@_code(NOT_READ_ONLY, "a read-only server cannot change anything")
class NotReadOnlyError(RequestError):
    """Wait for `SessionState.CONNECTED`, and try again.

    A client with `read_only=True` goes on looking for a server that takes writes.
    """


@_code(EPHEMERAL_ON_LOCAL_SESSION, "a local session cannot own ephemeral nodes")
class EphemeralOnLocalSessionError(RequestError):
    """Have it changed: the servers have local sessions that cannot become global ones."""


@_code(NO_WATCHER, "there is no such watch")
class NoWatcherError(RequestError):
    """There is nothing to remove; as a rule it has fired already."""


@_code(REQUEST_TIMEOUT, "the request timed out")
class RequestTimeoutError(RequestError):
    """A code of upstream's own clients; no server of theirs or ours sends it."""


@_code(RECONFIG_DISABLED, "reconfiguration is not enabled on this server")
class ReconfigDisabledError(RequestError):
    """Start the servers with `reconfigEnabled=true`.

    A standalone server has nothing to reconfigure.
    """


@_code(SESSION_CLOSED_REQUIRE_SASL, "the server requires SASL authentication")
class SessionClosedRequireSaslError(AuthenticationError):
    """Pass `connect` the credentials that the server asks for."""


@_code(QUOTA_EXCEEDED, "a quota would be exceeded")
class QuotaExceededError(RequestError):
    """Write less, or have the quota of a node above raised."""


@_code(THROTTLED, "the server is too busy; try again later")
class ThrottledError(RequestError):
    """Try again later, with fewer requests at a time."""


class TransactionFailedError(RequestError):
    """A transaction was refused, and nothing has changed.

    `results` has what became of each operation: of the one that failed, what was wrong with it; of
    those before it None, and of those after it that they were not tried. `cause` is what was wrong.
    """

    meaning = "the transaction was refused"

    def __init__(self, results: list[ServiceError | None]) -> None:
        self.results = results
        cause = next(
            (one for one in results if one is not None and one.code != RUNTIME_INCONSISTENCY), None
        )
        self.cause = cause
        super().__init__("transaction", None if cause is None else cause.path)
        if cause is not None:
            self.args = (f"transaction refused: {cause}",)


def _remake(kind: type[ServiceError], arguments: tuple[Any, ...]) -> ServiceError:
    """Make an error as it was, in a copy or in another process."""
    return kind.__new__(kind, *arguments)


def error_from_code(
    number: int, operation: str = "request", path: str | None = None
) -> ServiceError:
    """Return the error for a result code other than OK."""
    assert number != OK, "OK is not an error"
    found = _CLASSES.get(number)
    return UnknownCodeError(number, operation, path) if found is None else found(operation, path)
