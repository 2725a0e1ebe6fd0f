"""The state machine: applies the entries of the log, one after another.

`apply` is total for what is deterministic: it answers every entry, takes back everything that a
refused one had begun, and does the same each time. What depends on the machine (`MACHINE_ERRORS`)
is raised: the entry is durable and may succeed elsewhere or later, so this state must not be used
any more. A write takes a zxid whether it succeeds or not, as upstream; what the server decides on
its own (attaching a connection, a condition that no longer holds) takes none.

Servers that share a log share a state with a roster. There, each batch names its proposer first
(`begin_batch`), and what a proposer has written that is no member is answered SESSION_MOVED and
has no effect, unless it is its JOIN.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, mypyc_attr

from paddock.errors import (
    MARSHALLING_ERROR,
    OK,
    RECONFIG_DISABLED,
    RUNTIME_INCONSISTENCY,
    SESSION_EXPIRED,
    SESSION_MOVED,
    SYSTEM_ERROR,
    UNIMPLEMENTED,
)
from paddock.protocol import opcodes
from paddock.protocol.acl import read_acls
from paddock.protocol.jute import DecodeError, Reader, write_buffer
from paddock.protocol.operations import name_of
from paddock.protocol.requests import (
    CreateTTLRequest,
    PathRequest,
    ReconfigRequest,
    SetACLRequest,
    VersionRequest,
)
from paddock.state import multi
from paddock.state.entry import (
    ATTACH,
    BALLOT,
    CLOCK,
    DEPOSE,
    EPOCH,
    EXPIRE,
    EXPIRED_BY_ANYBODY,
    FORGET,
    JOIN,
    LEAVE,
    NEVER_EXACT,
    RAISE_RULES,
    REAP,
    SYNC,
    Entry,
    Refused,
)
from paddock.state.kept_replies import KeptReplies
from paddock.state.membership import Membership, config_data
from paddock.state.node import Node
from paddock.state.operations import NO_TTL, Change, Operations
from paddock.state.quota import Fault, Notice
from paddock.state.roster import Roster, RosterChange
from paddock.state.sessions import ATTACHED, ENDED, OPENED, Session, SessionChange, Sessions
from paddock.state.tree import Tree

PASSWORD_BYTES: Final = 16
# Ends the body of an entry that opens an exact session.
_IS_EXACT: Final = 1
# The body of ATTACH under former rules: a timeout.
_ATTACH_BYTES_BEFORE: Final = 4

# A digest is written as a positive number of 64 bits.
_DIGEST_MASK: Final = (1 << 63) - 1

MACHINE_ERRORS: Final = (MemoryError, RecursionError, OSError)
"""What does not come from an entry but from where it is applied."""

_DECISIONS: Final[dict[int, str]] = {
    ATTACH: "attach",
    EXPIRE: "expire",
    REAP: "reap",
    JOIN: "join",
    LEAVE: "leave",
    DEPOSE: "depose",
    RAISE_RULES: "raise rules",
    EPOCH: "epoch",
    SYNC: "sync",
    FORGET: "forget",
    BALLOT: "ballot",
    CLOCK: "clock",
}


@mypyc_attr(acyclic=True)
class Outcome:
    """What came of an entry."""

    __slots__ = ("body", "changes", "error", "notice", "session", "zxid")

    def __init__(
        self,
        error: i32,
        zxid: i64,
        body: bytes,
        changes: list[Change],
        notice: Notice | None,
        session: SessionChange | None = None,
    ) -> None:
        self.error: i32 = error
        # The zxid of the reply's header: the last one of the state after this entry.
        self.zxid: i64 = zxid
        self.body = body
        self.changes = changes
        # What an operator should know of it.
        self.notice = notice
        # What became of a session, if anything did.
        self.session = session


class StateMachine:
    """The whole state of the service."""

    def __init__(self) -> None:
        self.tree = Tree.fresh()
        self.sessions = Sessions()
        # The last zxid that was taken. Of any size: compiled, a number of 64 bits would go on with
        # the lowest one after the highest.
        self.zxid = 0
        # The stamp of the last entry, below which no later one may be.
        self.time_ms: i64 = 0
        self._operations = Operations(self.tree)
        # Used again by one write after the other: to make both and to drop them is 3 % of a set.
        self._reader = Reader(b"")
        self._writer = BytesWriter()
        # What the entry that is being applied made of a session.
        self._session_change: SessionChange | None = None
        # The session whose write is being applied; None if it may not write, or has ended.
        self._writing: Session | None = None
        # The servers that share the log; None on a single server.
        self.roster: Roster | None = None
        self._membership: Membership | None = None
        # Who has proposed the batch that is being applied, and its join number; 0 if it has none.
        self._proposer = b""
        self._owner = 0

    def share(self, service: bytes) -> None:
        """Become the state of a service that several servers share: one without members yet."""
        self.adopt_roster(Roster(service))

    def adopt_roster(self, roster: Roster) -> None:
        """Take over a roster; the sessions are there already."""
        self.roster = roster
        self._membership = Membership(roster, self.sessions)
        self.sessions.adopt_digests()

    def unshare(self) -> None:
        """Become the state of a single server: without members, and nobody owns a session."""
        self.roster = None
        self._membership = None
        self._proposer = b""
        self._owner = 0
        self.sessions.give_up_digests()

    def begin_batch(self, boot: bytes) -> None:
        """Say who has proposed the entries that follow. Only where servers share a log."""
        assert self.roster is not None
        member = self.roster.members.get(boot)
        self._proposer = boot
        self._owner = 0 if member is None else member.number

    def take_roster_change(self) -> RosterChange | None:
        """Take the next thing that became of the roster; None if there is no other one.

        A JOIN that replaces a member makes two.
        """
        membership = self._membership
        return membership.changes.pop(0) if membership is not None and membership.changes else None

    def shared_digest(self) -> int:
        """Return the digest of a shared state: of its nodes, sessions and members.

        It is for use between two records of the log, when all that was released is applied.
        """
        assert self.roster is not None
        writer = BytesWriter()
        write_i64_be(writer, self.tree.digest())
        self.sessions.write_digest(writer)
        write_i64_be(writer, self.zxid)
        write_i64_be(writer, self.time_ms)
        self.roster.write_digest(writer)
        found = blake2b(writer.getvalue(), digest_size=8).digest()
        return int.from_bytes(found, "big") & _DIGEST_MASK

    def adopt(self, tree: Tree) -> None:
        """Take over a tree that came out of a snapshot."""
        self.tree = tree
        self._operations = Operations(tree)

    def digest(self) -> int:
        return self.tree.digest()

    def replay(self, entries: list[Entry]) -> None:
        """Carry out entries of which nobody asks what came of them."""
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> Outcome:
        """Carry out an entry, whatever it is."""
        operation = entry.operation
        if self.roster is not None:
            if self._owner == 0 and operation != JOIN:
                return Outcome(SESSION_MOVED, self.zxid, b"", [], None)
            if entry.time_ms < self.time_ms:
                # Each server has a clock of its own.
                entry.time_ms = self.time_ms
        if operation <= ATTACH and operation >= CLOCK:
            return self._decide(entry) if operation >= REAP else self._change_roster(entry)
        if entry.time_ms > self.time_ms:
            self.time_ms = entry.time_ms
        zxid = self.zxid + 1
        operations = self._operations
        operations.begin(entry, zxid)
        error: i32 = OK
        # What is kept of a refused transaction: which operation failed, and why.
        failed: i32 = -1
        failure: i32 = OK
        body = b""
        try:
            if operation == opcodes.MULTI:
                self._writing = self._check_session(entry)
                body, failed, failure = multi.run(
                    multi.read_steps(entry.body, entry.acl_entries_max()), operations
                )
                if failed >= 0:
                    # The transaction fails as a whole, but each operation has its own record. The
                    # header of its reply says OK.
                    operations.undo()
            else:
                body = self._run(operation, entry)
        except Refused as refusal:
            operations.undo()
            error = refusal.code
        except DecodeError:
            # It may hold a large body.
            self._reader.data = b""
            operations.undo()
            error = MARSHALLING_ERROR
            if operation == opcodes.RECONFIG:
                # Upstream decodes this one before it takes a zxid.
                zxid = self.zxid
        except MACHINE_ERRORS:
            raise
        except Exception as problem:
            operations.undo()
            error = SYSTEM_ERROR
            operations.notice = _fault(operation, problem)
        self.zxid = zxid
        writing = self._writing
        if writing is not None:
            self._writing = None
            if writing.kept is not None:
                digests = self.roster is not None
                self.sessions.keep(
                    writing, entry.xid, zxid, error or failure, failed, body, digests
                )
        return Outcome(
            error, zxid, body, operations.changes, operations.notice, self._take_session_change()
        )

    def _run(self, operation: i32, entry: Entry) -> bytes:
        operations = self._operations
        body = entry.body
        if operation == opcodes.CREATE_SESSION:
            return self._create_session(entry)
        self._writing = self._check_session(entry)
        # Sets and creates not by way of a request: to make one and to drop it is 2 % of a set.
        if operation == opcodes.SET_DATA:
            reader = self._reader_of(body)
            changed, data, version = reader.buffer(), reader.buffer(), reader.int32()
            reader.data = b""
            return self._told(None, operations.set_data(changed, data, version))
        if operation in (opcodes.CREATE, opcodes.CREATE2, opcodes.CREATE_CONTAINER):
            reader = self._reader_of(body)
            reader.acl_entries_max = entry.acl_entries_max()
            wanted, data, acls = reader.string(), reader.buffer(), read_acls(reader)
            flags = reader.int32()
            reader.data = b""
            path, node = operations.create(operation, wanted, data, acls, flags, NO_TTL)
            return self._told(path, None if operation == opcodes.CREATE else node)
        if operation == opcodes.CREATE_TTL:
            limited = CreateTTLRequest.read(Reader(body, 0, entry.acl_entries_max()))
            path, node = operations.create(
                operation, limited.path, limited.data, limited.acls, limited.flags, limited.ttl_ms
            )
            return self._told(path, node)
        if operation == opcodes.DELETE:
            gone = VersionRequest.read(Reader(body))
            operations.delete(gone.path, gone.version)
            return b""
        if operation == opcodes.DELETE_CONTAINER:
            operations.delete_container(PathRequest.read(Reader(body)).path)
            return b""
        if operation == opcodes.SET_ACL:
            access = SetACLRequest.read(Reader(body, 0, entry.acl_entries_max()))
            return operations.set_acl(access.path, access.acls, access.version).stat()
        if operation == opcodes.CHECK:
            expected = VersionRequest.read(Reader(body))
            return operations.check(expected.path, expected.version).stat()
        if operation == opcodes.CLOSE_SESSION:
            self._end_session(entry.session)
            return b""
        if operation == opcodes.RECONFIG:
            ReconfigRequest.read(Reader(body))
            raise Refused(RECONFIG_DISABLED)
        raise Refused(UNIMPLEMENTED)

    def _reader_of(self, body: bytes) -> Reader:
        """Return the reader, at the beginning of an entry's body."""
        reader = self._reader
        reader.data, reader.position, reader.end = body, 0, len(body)
        return reader

    def _told(self, path: bytes | None, node: Node | None) -> bytes:
        """Return the body of a reply: a path, if there is one, and a stat, if there is a node."""
        writer = self._writer
        writer.truncate(0)
        if path is not None:
            write_buffer(writer, path)
        if node is not None:
            node.write_stat(writer)
        return writer.getvalue()

    def _decide(self, entry: Entry) -> Outcome:
        """Carry out what the server decided on its own, if its condition still holds."""
        if entry.time_ms > self.time_ms:
            self.time_ms = entry.time_ms
        zxid = self.zxid + 1
        operations = self._operations
        operations.begin(entry, zxid)
        session = self.sessions.by_id.get(entry.session)
        error = OK
        done = False
        try:
            if entry.operation == ATTACH:
                if session is None:
                    error = SESSION_EXPIRED
                else:
                    error = self._attach(session, entry.body)
            elif entry.operation == EXPIRE:
                if session is None or session.generation != entry.generation:
                    error = SESSION_MOVED
                elif session.owner != self._owner and entry.rules > EXPIRED_BY_ANYBODY:
                    # Another member has inherited it, and gives it its whole timeout.
                    error = SESSION_MOVED
                else:
                    self._end_session(entry.session)
                    done = True
            else:
                reader = Reader(entry.body)
                done = operations.reap(reader.string(), reader.int64(), reader.int64())
        except MACHINE_ERRORS:
            raise
        except Exception as problem:
            operations.undo()
            error = SYSTEM_ERROR
            operations.notice = _fault(entry.operation, problem)
        if done:
            self.zxid = zxid
        return Outcome(
            error,
            self.zxid,
            b"",
            operations.changes,
            operations.notice,
            self._take_session_change(),
        )

    def _change_roster(self, entry: Entry) -> Outcome:
        """Carry out what servers that share a log agree on."""
        membership = self._membership
        if membership is None:
            return Outcome(UNIMPLEMENTED, self.zxid, b"", [], None)
        error = OK
        body = b""
        notice: Notice | None = None
        changes: list[Change] = []
        try:
            if entry.operation == SYNC:
                if entry.session:
                    self._check_session(entry)
                    # A client's is answered with its path.
                    reader = Reader(entry.body)
                    reader.skip()
                    body = entry.body[: reader.position]
                else:
                    body = entry.body
            else:
                error, body, self.zxid = membership.apply(entry, self._proposer, self.zxid)
                # It may have become a member, or be none any more.
                self.begin_batch(self._proposer)
                if membership.has_new_addresses:
                    changes = self._list_servers(entry, membership.roster.addresses)
        except Refused as refusal:
            error = refusal.code
        except DecodeError:
            error = MARSHALLING_ERROR
        except MACHINE_ERRORS:
            raise
        except Exception as problem:
            error = SYSTEM_ERROR
            notice = _fault(entry.operation, problem)
        if error == OK and entry.time_ms > self.time_ms:
            self.time_ms = entry.time_ms
        return Outcome(error, self.zxid, body, changes, notice)

    def _list_servers(self, entry: Entry, addresses: list[str]) -> list[Change]:
        """Write the addresses of all servers to their node, and return what has changed."""
        self.zxid += 1
        operations = self._operations
        operations.begin(entry, self.zxid)
        operations.set_config(config_data(addresses, self.zxid))
        return operations.changes

    def _take_session_change(self) -> SessionChange | None:
        change = self._session_change
        if change is not None:
            self._session_change = None
        return change

    def _attach(self, session: Session, body: bytes) -> int:
        """Attach a connection, unless it has another password or is ahead; return the error."""
        reader = Reader(body)
        timeout_ms = reader.int32()
        # Under former rules the proposer compared both, and did not write them down.
        if len(body) > _ATTACH_BYTES_BEFORE:
            password, last_zxid_seen = reader.string(), reader.int64()
            if last_zxid_seen > self.zxid:
                return RUNTIME_INCONSISTENCY
            if not session.admits(password):
                return SESSION_EXPIRED
        is_shared = self.roster is not None
        if is_shared:
            self.sessions.count_out(session)
        session.timeout_ms = timeout_ms
        session.generation += 1
        if is_shared:
            session.owner = self._owner
            self.sessions.count_in(session)
        self._session_change = session.changed(ATTACHED)
        return OK

    def _check_session(self, entry: Entry) -> Session:
        session = self.sessions.find(entry.session)
        if session is None:
            raise Refused(SESSION_EXPIRED)
        if session.generation != entry.generation:
            raise Refused(SESSION_MOVED)
        return session

    def _create_session(self, entry: Entry) -> bytes:
        reader = Reader(entry.body)
        timeout_ms = reader.int32()
        # Under former rules, which no shared log has, the proposer gave the id.
        id = entry.session if self.roster is None else 0
        id = id or self.sessions.next_id(self.time_ms)
        session = self.sessions.open(id, reader.string(), timeout_ms)
        if entry.rules > NEVER_EXACT and reader.position < len(entry.body):
            session.kept = KeptReplies()
        if self.roster is not None:
            session.owner = self._owner
            self.sessions.count_in(session)
        self._session_change = session.changed(OPENED)
        return b""

    def _end_session(self, session: i64) -> None:
        self._operations.delete_ephemerals(session)
        ended = self.sessions.end(session)
        self._writing = None
        if self.roster is not None:
            self.sessions.count_out(ended)
        self._session_change = ended.changed(ENDED)


def entry_name(operation: int) -> str:
    """Return the name of an operation in the log, of a client or of a server."""
    return _DECISIONS.get(operation) or name_of(operation)


def session_body(timeout_ms: int, password: bytes, is_exact: bool = False) -> bytes:
    """Return the body of an entry that opens a session."""
    writer = BytesWriter()
    write_i32_be(writer, timeout_ms)
    write_buffer(writer, password)
    if is_exact:
        # Former rules ignore it, and so do servers that know only those.
        writer.append(_IS_EXACT)
    return writer.getvalue()


def attach_body(timeout_ms: int, password: bytes, last_zxid_seen: int) -> bytes:
    """Return the body of an entry that attaches a connection to a session.

    It is refused if the client has seen a later zxid than that of the state.
    """
    return session_body(timeout_ms, password) + last_zxid_seen.to_bytes(8, "big", signed=True)


def reap_body(path: bytes, czxid: int, mzxid: int) -> bytes:
    """Return the body of an entry that deletes a container or TTL node that is over."""
    writer = BytesWriter()
    write_buffer(writer, path)
    write_i64_be(writer, czxid)
    write_i64_be(writer, mzxid)
    return writer.getvalue()


def _fault(operation: int, problem: Exception) -> Fault:
    name = entry_name(operation)
    return Fault(f"applying {name} failed and was undone: {problem!r}")
