"""The lines of the audit log: who did what, with which result.

    session=0x1f  user=127.0.0.1,alice  ip=127.0.0.1  operation=create  znode=/a  … result=success

Clients choose paths and user names, so separators are escaped. In text, characters that do not
print, spaces, commas, equals signs and backslashes in a value are escaped by their code: a comma is
`\\x2c`. In JSON only commas and backslashes in the items of a list are escaped.

Fields, their order and operations are upstream's, with tabs between the fields: every request that
may change a node, the steps of a transaction that succeeded, the ephemerals deleted with a session,
the start and stop of the server. Differences: what upstream forgets (a TTL node, the type of a
sequential node in a transaction) is here; the entries of an ACL have commas between them; and a
digest, from which a password can be guessed, is shown as `x`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from librt.strings import read_i32_be

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.acl import format_acl, without_secrets
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.operations import BY_NUMBER, TABLE
from paddock.protocol.requests import CreateRequest, CreateTTLRequest, SetACLRequest
from paddock.server.admin.log_handler import escaped, iso_time
from paddock.state.access import NOBODY, Identities, user_name
from paddock.state.entry import EXPIRE, Entry
from paddock.state.machine import Outcome
from paddock.state.multi import read_steps
from paddock.state.operations import Change

SUCCESS: Final = "success"
FAILURE: Final = "failure"
INVOKED: Final = "invoked"

SERVER_START: Final = "serverStart"
SERVER_STOP: Final = "serverStop"
_EPHEMERAL_GONE: Final = "ephemeralZNodeDeletionOnSessionCloseOrExpire"
_OPERATIONS: Final = {row.number: row.audit for row in TABLE if row.audit is not None}
_ENDS: Final = frozenset({opcodes.CLOSE_SESSION, EXPIRE})
AUDITED: Final = frozenset({*_OPERATIONS, *_ENDS})
# By the flags of a create.
_TYPES: Final = (
    "persistent",
    "ephemeral",
    "persistent_sequential",
    "ephemeral_sequential",
    "container",
    "persistent_with_ttl",
    "persistent_sequential_with_ttl",
)
_LISTS: Final = frozenset({"user", "acl"})
# The characters that separate fields, names and values, and items; and the one that escapes.
_SEPARATORS: Final = {ord(one): f"\\x{ord(one):02x}" for one in " =,\\"}
_LIST_SEPARATORS: Final = {ord(one): _SEPARATORS[ord(one)] for one in ",\\"}


@dataclass(frozen=True, slots=True)
class Event:
    """One line. A field that is None is left out."""

    time_ms: int
    operation: str
    result: str
    session: int | None = None
    # Every name of the client.
    users: tuple[str, ...] = ()
    ip: str | None = None
    znode: str | None = None
    znode_type: str | None = None
    acl: tuple[str, ...] | None = None

    def fields(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield names and values in upstream's order; those in `_LISTS` may have several."""
        session = None if self.session is None else f"0x{self.session:x}"
        for name, value in (
            ("session", session),
            ("user", self.users or None),
            ("ip", self.ip),
            ("operation", self.operation),
            ("znode", self.znode),
            ("znode_type", self.znode_type),
            ("acl", self.acl),
            ("result", self.result),
        ):
            if value is not None:
                yield name, (value,) if isinstance(value, str) else value


def events_of(entry: Entry, outcome: Outcome, server_user: str) -> Iterator[Event]:
    """Yield the events of an entry; `server_user` is the user where no client acts."""
    if entry.operation in _ENDS:
        for change in outcome.changes:
            if change.kind == Change.DELETED:
                yield Event(
                    entry.time_ms,
                    _EPHEMERAL_GONE,
                    SUCCESS,
                    session=entry.session,
                    users=(server_user,),
                    znode=_shown(change.path),
                )
    elif entry.operation != opcodes.MULTI:
        yield _single(entry, outcome)
    elif _has_failed(outcome):
        yield _event(entry, _OPERATIONS[opcodes.MULTI], FAILURE)
    else:
        yield from _parts(entry, outcome)


def text_line(event: Event) -> str:
    """Return an event as text, with tabs between its fields."""
    level = "ERROR" if event.result == FAILURE else "INFO"
    fields = "\t".join(
        f"{name}={','.join(escaped(one.translate(_SEPARATORS)) for one in values)}"
        for name, values in event.fields()
    )
    return f"{_local_time(event.time_ms)} {level} paddock.audit: {fields}\n"


# The entries of a batch have the same time.
@lru_cache(maxsize=16)
def _local_time(time_ms: int) -> str:
    moment = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S},{time_ms % 1000:03d}"


def json_line(event: Event) -> str:
    """Return an event as one JSON object."""
    values = {
        "time": iso_time(event.time_ms / 1000),
        "level": "error" if event.result == FAILURE else "info",
        "logger": "paddock.audit",
        **{
            name: ",".join(one.translate(_LIST_SEPARATORS) for one in values)
            if name in _LISTS
            else values[0]
            for name, values in event.fields()
        },
    }
    return json.dumps(values) + "\n"


def _single(entry: Entry, outcome: Outcome) -> Event:
    path: bytes | None = None
    znode_type: str | None = None
    acl: tuple[str, ...] | None = None
    # A request that cannot be decoded was refused, and names no node.
    with contextlib.suppress(DecodeError):
        path, znode_type, acl = _read(entry.operation, entry.body)
    if outcome.changes:
        # With the number of a sequential node.
        path = outcome.changes[0].path
    result = SUCCESS if outcome.error == OK else FAILURE
    return _event(entry, _OPERATIONS[entry.operation], result, path, znode_type, acl)


def _parts(entry: Entry, outcome: Outcome) -> Iterator[Event]:
    changes = iter(outcome.changes)
    for step in read_steps(entry.body):
        if step.operation == opcodes.CHECK:
            continue
        znode_type = None
        if isinstance(step.request, CreateRequest | CreateTTLRequest):
            znode_type = _type(step.operation, step.request.flags)
        operation = _OPERATIONS[step.operation]
        yield _event(entry, operation, SUCCESS, next(changes).path, znode_type)


def _read(operation: int, body: bytes) -> tuple[bytes | None, str | None, tuple[str, ...] | None]:
    """Return the path of a request, and its node type or its ACL if it has one."""
    record = BY_NUMBER[operation].request
    request = None if record is None else record.read(Reader(body))
    match request:
        case CreateRequest() | CreateTTLRequest():
            return request.path, _type(operation, request.flags), None
        case SetACLRequest():
            acls = tuple(acl for acl in request.acls or () if acl is not None)
            return request.path, None, tuple(map(format_acl, without_secrets(acls)))
    return getattr(request, "path", None), None, None


def _event(
    entry: Entry,
    operation: str,
    result: str,
    path: bytes | None = None,
    znode_type: str | None = None,
    acl: tuple[str, ...] | None = None,
) -> Event:
    identities = NOBODY if entry.identities is None else entry.identities
    return Event(
        entry.time_ms,
        operation,
        result,
        session=entry.session,
        users=users_of(identities),
        ip=next((one.id for one in identities.entries if one.scheme == "ip"), None),
        znode=None if path is None else _shown(path),
        znode_type=znode_type,
        acl=acl,
    )


def _has_failed(outcome: Outcome) -> bool:
    """Return whether a transaction failed: then its reply is a list of errors."""
    body = outcome.body
    return outcome.error != OK or (read_i32_be(body, 0) == opcodes.ERROR and body[4] == 0)


def _type(operation: int, flags: int) -> str | None:
    if operation == opcodes.CREATE_CONTAINER:
        return "container"
    return _TYPES[flags] if 0 <= flags < len(_TYPES) else None


def users_of(identities: Identities) -> tuple[str, ...]:
    """Return the names of a client."""
    return tuple(name for name in map(user_name, identities.entries) if name.strip())


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
