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

from typing import Any, ClassVar, Final

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
    """The root of everything that Paddock raises on purpose."""


class ServiceError(PaddockError):
    """A reply of the service with an error code: operation, path, code and reason.

    The reason is the meaning of the code, unless more is known. A hint names what helps.
    """

    # That of the class, or an unknown one of its own.
    code: int = API_ERROR
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


class RequestError(ServiceError):
    """The service refused the request, and nothing has changed."""


class UnknownCodeError(RequestError):
    """A refusal with a code that this version does not know."""

    def __init__(self, number: int, operation: str = "request", path: str | None = None) -> None:
        self.code = self.number = number
        super().__init__(operation, path)
        self.args = (f"{self.args[0]} (code {number})",)


class ConnectionLostError(ServiceError):
    """The connection was lost: the outcome is unknown, retry only what is idempotent.

    If it was not even sent, the message says so.
    """

    code = CONNECTION_LOSS
    meaning = "the connection was lost and the outcome is unknown"


class SessionExpiredError(ServiceError):
    """The session is over, and its ephemeral nodes are gone: it has expired, or was closed."""

    code = SESSION_EXPIRED
    meaning = "the session has expired"


class AuthenticationError(ServiceError):
    """The credentials were not accepted."""

    code = AUTH_FAILED
    meaning = "the credentials were not accepted"


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
    """What a node holds is nothing that the recipe can use; the message says why.

    Correct it there.
    """


class SystemFailureError(RequestError):
    """Nothing is wrong with the request: the server's log says what is, such as a full disk.

    Try later.
    """

    code = SYSTEM_ERROR
    meaning = "the server could not carry it out"


class RuntimeInconsistencyError(RequestError):
    """Found in the results of a transaction, for what stands behind the operation that failed."""

    code = RUNTIME_INCONSISTENCY
    meaning = "not tried, because an earlier operation of the transaction failed"


class DataInconsistencyError(RequestError):
    """A code that upstream reserves; look at the server that sends it."""

    code = DATA_INCONSISTENCY
    meaning = "the server found its data inconsistent"


class MarshallingError(RequestError):
    """Client and server do not agree on the protocol: one of them is too old, or has a bug."""

    code = MARSHALLING_ERROR
    meaning = "the server could not decode the request"


class UnimplementedError(RequestError):
    """The server is older than the operation, or has it switched off. Do without it."""

    code = UNIMPLEMENTED
    meaning = "the server does not offer this operation"


class OperationTimeoutError(RequestError):
    """A code of upstream's own clients; no server of theirs or ours sends it."""

    code = OPERATION_TIMEOUT
    meaning = "the operation timed out on the server"


class BadArgumentsError(RequestError):
    """Mend the request: the same one will always be refused."""

    code = BAD_ARGUMENTS
    meaning = "an argument is not valid"


class UnknownSessionError(RequestError):
    """Known to the servers of an ensemble alone; clients get `SessionExpiredError` instead."""

    code = UNKNOWN_SESSION
    meaning = "the server does not know this session"


class NewConfigNoQuorumError(RequestError):
    """Start more servers of the new configuration, and try again."""

    code = NEW_CONFIG_NO_QUORUM
    meaning = "no quorum of the new configuration is connected"


class ReconfigInProgressError(RequestError):
    """Try again when it is done."""

    code = RECONFIG_IN_PROGRESS
    meaning = "another reconfiguration is under way"


class NoNodeError(RequestError):
    """Create it, or its parents with `make_parents=True`, or take it as an answer."""

    code = NO_NODE
    meaning = "no such node"


class NoAuthError(RequestError):
    """Authenticate with `add_auth`, or have the ACL changed by a user with ADMIN."""

    code = NO_AUTH
    meaning = "the ACL does not permit it"


class BadVersionError(RequestError):
    """The node was changed meanwhile: read again, decide again, write again."""

    code = BAD_VERSION
    meaning = "the version does not match"


class NoChildrenForEphemeralsError(RequestError):
    """Create it below a persistent node."""

    code = NO_CHILDREN_FOR_EPHEMERALS
    meaning = "an ephemeral node cannot have children"


class NodeExistsError(RequestError):
    """Accept it, or create with `exist_ok=True`."""

    code = NODE_EXISTS
    meaning = "the node exists already"


class NotEmptyError(RequestError):
    """Delete the children first, or everything at once with `delete_tree`."""

    code = NOT_EMPTY
    meaning = "the node has children"


class InvalidCallbackError(RequestError):
    """A code of upstream's own clients; no server of theirs or ours sends it."""

    code = INVALID_CALLBACK
    meaning = "the callback is not valid"


class InvalidACLError(RequestError):
    """Mend the ACL: the server does not know a scheme, or an id is none, or it has no entry.

    The scheme `auth` stands for the creator of the node, so it needs an `add_auth` first.
    """

    code = INVALID_ACL
    meaning = "the ACL is not valid"


class SessionMovedError(RequestError):
    """The request came by a connection that the session has left.

    Nothing to do: the client goes on with the new one.
    """

    code = SESSION_MOVED
    meaning = "the session has moved to another connection"


class NotReadOnlyError(RequestError):
    """Wait for `SessionState.CONNECTED`, and try again.

    A client with `read_only=True` goes on looking for a server that takes writes.
    """

    code = NOT_READ_ONLY
    meaning = "a read-only server cannot change anything"


class EphemeralOnLocalSessionError(RequestError):
    """Have it changed: the servers have local sessions that cannot become global ones."""

    code = EPHEMERAL_ON_LOCAL_SESSION
    meaning = "a local session cannot own ephemeral nodes"


class NoWatcherError(RequestError):
    """There is nothing to remove; as a rule it has fired already."""

    code = NO_WATCHER
    meaning = "there is no such watch"


class RequestTimeoutError(RequestError):
    """A code of upstream's own clients; no server of theirs or ours sends it."""

    code = REQUEST_TIMEOUT
    meaning = "the request timed out"


class ReconfigDisabledError(RequestError):
    """Start the servers with `reconfigEnabled=true`.

    A standalone server has nothing to reconfigure.
    """

    code = RECONFIG_DISABLED
    meaning = "reconfiguration is not enabled on this server"


class SessionClosedRequireSaslError(AuthenticationError):
    """Return `connect` the credentials that the server asks for."""

    code = SESSION_CLOSED_REQUIRE_SASL
    meaning = "the server requires SASL authentication"


class QuotaExceededError(RequestError):
    """Write less, or have the quota of a node above raised."""

    code = QUOTA_EXCEEDED
    meaning = "a quota would be exceeded"


class ThrottledError(RequestError):
    """Try again later, with fewer requests at a time."""

    code = THROTTLED
    meaning = "the server is too busy; try again later"


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


def _leaves(root: type[ServiceError]) -> list[type[ServiceError]]:
    return [root, *(leaf for child in root.__subclasses__() for leaf in _leaves(child))]


_CLASSES: Final[dict[int, type[ServiceError]]] = {
    leaf.code: leaf for leaf in _leaves(ServiceError) if "code" in vars(leaf)
}
# The bare API error is the one code that means nothing more than "refused".
_CLASSES[API_ERROR] = RequestError


def error_from_code(
    number: int, operation: str = "request", path: str | None = None
) -> ServiceError:
    """Return the error for a result code other than OK."""
    assert number != OK, "OK is not an error"
    found = _CLASSES.get(number)
    return UnknownCodeError(number, operation, path) if found is None else found(operation, path)
