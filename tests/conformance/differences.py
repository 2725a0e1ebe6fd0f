"""Where Paddock differs from Apache ZooKeeper on purpose, each with its reason.

A row tells what 3.8.0 does, what Paddock does, and what Apache ZooKeeper does since which later
release. Where it says nothing of those, they do what 3.8.0 does; it is seen, not assumed: the suite
runs on the releases that `tests/support/release.py` names.

Nothing else in the suite asks which server it talks to. A test takes its expected value from here:

    assert client.call(request).err == CREATE_TTL_WITHOUT_TTL.on(server)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Generic, TypeVar

from tests.support.records import Code
from tests.support.release import Release
from tests.support.server import Service

T = TypeVar("T")


class _Like(Enum):
    """Whom a release behaves like, in place of a value of its own."""

    PADDOCK = auto()


#: For differences that are gone.
AS_PADDOCK: Final = _Like.PADDOCK


@dataclass(frozen=True, slots=True)
class Difference(Generic[T]):
    """One difference: what it is about, why, and what to expect of whom."""

    name: str
    reason: str
    #: What 3.8.0 does.
    apache: T
    paddock: T
    #: What later releases do, each until the next one that is named.
    since: Mapping[tuple[int, ...], T | _Like] = field(default_factory=dict)

    def on(self, server: Service) -> T:
        """Return the value to expect of this server."""
        return self.paddock if server.release is None else self.of(server.release)

    def of(self, release: Release) -> T:
        """Return the value to expect of this release of Apache ZooKeeper."""
        reached = [first for first in self.since if release >= first]
        found = self.since[max(reached)] if reached else self.apache
        return self.paddock if isinstance(found, _Like) else found


KERBEROS_AS_SOMEBODY_ELSE = Difference(
    "a user of Kerberos who asks to act as somebody else is let in, as itself",
    "it would be told that all is well, and act as another one than it believes; we refuse it",
    apache=True,
    paddock=False,
)

KERBEROS_OF_ANOTHER_REALM = Difference(
    "a user of a trusted realm for which no rule of auth_to_local fits chooses its own name",
    "it could be anybody, the superuser as well; here it keeps the name that it has proved",
    apache=True,
    paddock=False,
)

LONE_CHECK_IS_ANSWERED = Difference(
    "a check outside a multi that succeeds is answered",
    "3.8.0 fails to encode its own reply and the client waits for ever",
    apache=False,
    paddock=True,
)

LONE_CHECK_IS_KNOWN = Difference(
    "a check outside a multi is a request like any other",
    "since 3.9.3 Apache does not know its opcode, answers Unimplemented and hangs up",
    apache=True,
    since={(3, 9, 3): False},
    paddock=True,
)

UNDECODABLE_WRITE_TAKES_A_ZXID = Difference(
    "a write whose body cannot be decoded takes a zxid",
    "3.9 decodes a request before it takes one, but that of a multi; ours takes one for each",
    apache=True,
    since={(3, 9): False},
    paddock=True,
)

MULTI_BAD_FLAGS_FAIL_ALONE = Difference(
    "a create in a multi with flags or an ACL that mean nothing fails as a step",
    "3.9 refuses the whole multi as undecodable, and says not which step was wrong",
    apache=True,
    since={(3, 9): False},
    paddock=True,
)

TTL_BELOW_ZERO_IS_SAFE = Difference(
    "createTTL of a mode without a TTL and with a negative one is BadArguments",
    "Apache logs it, dies, and dies again at each start; it must never be sent to it",
    apache=False,
    paddock=True,
)

WRONG_PASSWORD_DISTURBS_OWNER = Difference(
    "a wrong password for a session closes its owner's connection",
    "anybody who can guess a session's id could disconnect its owner",
    apache=True,
    paddock=False,
)

DUMP_COUNTS_CONNECTIONS_OF_THE_PAST = Difference(
    "the number of connections in a dump may be larger than the list",
    "Apache counts a connection for ever that was closed just while it was served",
    apache=True,
    paddock=False,
)

CHECK_WATCHES_OF_OTHERS = Difference(
    "checkWatches finds a watch that only another session has",
    "3.8.0 looks whether anybody watches the path; 3.9 asks for the caller's own",
    apache=Code.OK,
    since={(3, 9): AS_PADDOCK},
    paddock=Code.NO_WATCHER,
)

DELETE_CONTAINER_IS_ANSWERED = Difference(
    "deleteContainer from a client is a request like any other",
    "3.9.6 hangs up on it, since Apache never asks for permissions; ours does",
    apache=True,
    since={(3, 9, 6): False},
    paddock=True,
)

DELETE_CONTAINER_WORKS = Difference(
    "deleteContainer from a client",
    "3.8.0 misreads the path and always answers BadArguments; we decode it as 3.9 does",
    apache=False,
    since={(3, 9): AS_PADDOCK},
    paddock=True,
)

DELETE_CONTAINER_NEEDS_DELETE = Difference(
    "deleteContainer from a client needs DELETE on the parent",
    "3.9 asks nobody: any client deletes any empty node",
    apache=False,
    paddock=True,
)

SET_WATCHES_SHOWS_THE_UNREADABLE = Difference(
    "events that setWatches fires at once reach a session without READ",
    "all other events are withheld without READ; these leaked until 3.9.6",
    apache=True,
    since={(3, 9, 6): AS_PADDOCK},
    paddock=False,
)

CREATE_SESSION_FROM_CLIENT = Difference(
    "opcode -10, which servers use among themselves, sent by a client",
    "Apache runs it and sends a second handshake reply; to us it is an unknown opcode",
    apache="handshake",
    paddock="unimplemented",
)

AHEAD_AND_UNKNOWN_IS_EXPIRED = Difference(
    "a client with a zxid from the future whose session is unknown is told Expired",
    "Apache closes without a word, so that the client tries for ever",
    apache=False,
    paddock=True,
)

PING_WAITS_ITS_TURN = Difference(
    "a ping is answered behind the requests sent before it",
    "ours answers pings at once: they ask whether the server lives, not how far it is",
    apache=True,
    paddock=False,
)

AUTH_WAITS_ITS_TURN = Difference(
    "an auth is answered behind the requests sent before it",
    "Apache answers it as soon as it is read, before or after them as it happens",
    apache=False,
    paddock=True,
)

TEXT_BEYOND_THE_BASIC_PLANE = Difference(
    "how a character outside the basic plane is echoed (no node may have one)",
    "Apache encodes each half of the surrogate pair by itself, which is not UTF-8",
    apache=b"\xed\xa0\xbd\xed\xb8\x80",
    paddock="\U0001f600".encode(),
)

IPV6_IN_ACLS = Difference(
    "an ACL may name an IPv6 address",
    "until 3.9.4 it knows IPv4 only, so that a client over IPv6 cannot be named at all",
    apache=Code.INVALID_ACL,
    since={(3, 9, 4): AS_PADDOCK},
    paddock=Code.OK,
)

TTL_NODES_BY_DEFAULT = Difference(
    "createTTL on a server whose settings say nothing about extended types",
    "Apache has them off for old servers of an ensemble; a single server has no neighbours",
    apache=Code.UNIMPLEMENTED,
    paddock=Code.OK,
)

MULTI_MAKES_CONTAINERS_OF_ANY_FLAGS = Difference(
    "createContainer in a multi makes a container whatever its flags are",
    "in a multi it is the flags that count, of every create; no client sends others with this one",
    apache=False,
    since={(3, 9): True},
    paddock=False,
)

MULTI_ERROR_HAS_BODY = Difference(
    "an undecodable multi may carry results after its MarshallingError",
    "an error reply has no body; no client reads one",
    apache=True,
    since={(3, 9): AS_PADDOCK},
    paddock=False,
)

MULTI_READ_ERROR_HAS_BODY = Difference(
    "an undecodable multiRead may carry results after its MarshallingError",
    "an error reply has no body; no client reads one",
    apache=True,
    paddock=False,
)

MULTI_NULL_PATH_HIDES_ITS_ZXID = Difference(
    "a multi with a null path takes a zxid without showing it in its reply",
    "every write shows the zxid it took",
    apache=True,
    since={(3, 9): AS_PADDOCK},
    paddock=False,
)

ADD_WATCH_ON_NULL_PATH = Difference(
    "addWatch on a null path",
    "Apache keeps a watch that can never fire, and then cannot close that connection any more",
    apache=Code.OK,
    paddock=Code.MARSHALLING_ERROR,
)

MNTR_HAS_MORE_ROWS = Difference(
    "mntr has rows about an ensemble, the JVM, caches and queues",
    "only what is true is said: there are no such things here, or nobody counts them",
    apache=True,
    paddock=False,
)

PERCENTILES_ARE_FRACTIONS = Difference(
    "the percentiles of latencies in mntr have fractions of a millisecond",
    "in whole milliseconds most of them would be 0",
    apache=False,
    paddock=True,
)

ENVI_NAMES_FOLDERS = Difference(
    "envi names the user, its home and the folders of the JVM",
    "anybody with a socket may ask",
    apache=True,
    paddock=False,
)

HASH_OF_NOW = Difference(
    "hash shows the digest of the present state",
    "Apache keeps one for every 128th zxid, and none unless digests are switched on",
    apache=False,
    paddock=True,
)

NO_OPERATION_YET = Difference(
    "what cons calls the last operation of a session that has just come back",
    "Apache's variable is not set; the word that it has for none is NA",
    apache="null",
    paddock="NA",
)

AUDIT_OF_A_TTL_NODE = Difference(
    "the creation of a TTL node outside a transaction is in the audit log",
    "an audit log that leaves something out is none",
    apache=0,
    since={(3, 9, 4): AS_PADDOCK},
    paddock=1,
)

AUDIT_OF_THE_TYPE_IN_A_MULTI = Difference(
    "a sequential node that a transaction creates has its type in the audit log",
    "Apache looks it up by the path without the number",
    apache="",
    paddock=" znode_type=persistent_sequential",
)

AUDIT_OF_AN_ACL = Difference(
    "in the audit log the entries of an ACL are told apart, and have no digests",
    "a password can be guessed from its digest, and audit logs are carried to other places",
    apache="world:anyone:cdrwadigest:bob:aGFzaA==:r",
    paddock="world:anyone:cdrwa,digest:bob:x:r",
)

AUDIT_LINES_CAN_BE_FORGED = Difference(
    "a path with a line end becomes two lines of the audit log",
    "the second one says what the client likes",
    apache=True,
    since={(3, 9, 6): AS_PADDOCK},
    paddock=False,
)

AUDIT_OF_WHAT_IS_NOT_UNDERSTOOD = Difference(
    "a request that cannot be understood is in the audit log",
    "somebody tried; 3.8.0 logs an exception of its own instead, 3.9 a type nobody asked for",
    apache=[],
    since={(3, 9): ["create znode_type=persistent result=failure"]},
    paddock=["create result=failure"],
)

_COMMANDS = [
    "configuration",
    "connection_stat_reset",
    "connections",
    "dirs",
    "dump",
    "environment",
    "get_trace_mask",
    "hash",
    "initial_configuration",
    "is_read_only",
    "last_snapshot",
    "leader",
    "monitor",
    "observer_connection_stat_reset",
    "observers",
    "ruok",
    "server_stats",
    "set_trace_mask",
    "stat_reset",
    "stats",
    "voting_view",
    "watch_summary",
    "watches",
    "watches_by_path",
    "zabstate",
]

ADMIN_COMMANDS = Difference(
    "the commands of the admin server",
    "there is no JVM with system properties, among which Apache shows the superuser's digest; and"
    " two commands of 3.9 are there",
    apache=sorted([*_COMMANDS, "system_properties"]),
    since={(3, 9): sorted([*_COMMANDS, "restore", "snapshot", "system_properties"])},
    paddock=sorted([*_COMMANDS, "past", "restore", "snapshot"]),
)

ADMIN_POST = Difference(
    "a POST of a command that only answers",
    "3.9 has commands that are sent, and fails at the others",
    apache=405,
    since={(3, 9): 500},
    paddock=405,
)

TLS_VERSION = Difference(
    "the version of TLS that a server speaks whose settings do not say",
    "Apache speaks one, ours the two that are safe",
    apache=["TLSv1_2"],
    since={(3, 9, 2): ["TLSv1_3"], (3, 9, 6): ["TLSv1_2"]},
    paddock=["TLSv1_2", "TLSv1_3"],
)

SERVER_STATS = Difference(
    "what else server_stats says",
    "only what is true is said: nobody counts these here",
    apache={
        "fsync_threshold_exceed_count",
        "client_response_stats",
        "auth_failed_count",
        "non_mtlsremote_conn_count",
        "non_mtlslocal_conn_count",
    },
    paddock=set[str](),
)

QUOTA_OF_A_TRANSACTION = Difference(
    "a multi whose steps together go over a hard limit",
    "Apache judges each step by the counts before the multi, so that a multi goes over any limit",
    apache=Code.OK,
    paddock=Code.QUOTA_EXCEEDED,
)

QUOTA_EXCHANGE = Difference(
    "a multi at a hard limit that deletes a node and creates another",
    "Apache does not count what an earlier step deleted; afterwards there is no more than before",
    apache=Code.QUOTA_EXCEEDED,
    paddock=Code.OK,
)

QUOTA_LIMITS_NONSENSE = Difference(
    "a write below a quota whose limits cannot be read",
    "Apache blames the client for it; ours limits nothing, and its log says so",
    apache=Code.MARSHALLING_ERROR,
    paddock=Code.OK,
)

QUOTA_DIGITS = Difference(
    "limits of a quota in digits other than 0 to 9",
    "which characters are digits depends on the version of Python, and servers must agree",
    apache=Code.QUOTA_EXCEEDED,
    paddock=Code.OK,
)

QUOTA_NODES_ARE_HARMLESS = Difference(
    "quota nodes in places and with texts that nobody expects",
    "Apache dies of them, and dies again at each start; they must never be sent to it",
    apache=False,
    paddock=True,
)

EXISTS_NEEDS_READ = Difference(
    "exists needs READ on a node that is there",
    "3.8.0 answers anybody; since 3.7.3, 3.8.4 and 3.9.2 it asks (ZOOKEEPER-2590)",
    apache=False,
    since={(3, 9, 2): AS_PADDOCK},
    paddock=True,
)

WATCH_MODES_ARE_INDEPENDENT = Difference(
    "watches of several modes of one session on one path stand beside each other",
    "3.8.0 keeps the last mode of a path; 3.9 keeps all (ZOOKEEPER-4466, -4471)",
    apache=False,
    since={(3, 9): AS_PADDOCK},
    paddock=True,
)

WATCHES_ARE_REMOVED_BY_MODE = Difference(
    "removeWatches and checkWatches know the kinds 4, persistent, and 5, recursive",
    "3.9 has them, and there the other kinds leave lasting watches alone (ZOOKEEPER-4472)",
    apache=Code.MARSHALLING_ERROR,
    since={(3, 9): AS_PADDOCK},
    paddock=Code.OK,
)

EVENTS_HAVE_A_ZXID = Difference(
    "the header of an event has the zxid of its change",
    "3.8.0 always sends -1; 3.9 says which change it was (ZOOKEEPER-4655)",
    apache=False,
    since={(3, 9): AS_PADDOCK},
    paddock=True,
)

CREATE2_IN_A_MULTI_HAS_A_STAT = Difference(
    "create2 in a multi is answered as a create2, with the stat",
    "3.8.0 answers it like a create; 3.9 sends what was asked for (ZOOKEEPER-4026)",
    apache=False,
    since={(3, 9): AS_PADDOCK},
    paddock=True,
)

CHECK_WATCHES_ON_NULL_PATH = Difference(
    "checkWatches on a null path",
    "3.8.0 stumbles over it; to 3.9 it is a path that nobody watches, as to removeWatches",
    apache=Code.MARSHALLING_ERROR,
    since={(3, 9): AS_PADDOCK},
    paddock=Code.NO_WATCHER,
)

UNKNOWN_SASL_USER_IS_REFUSED = Difference(
    "a user of SASL whom nobody knows, with the password of the one who came before",
    "to 3.8.0 the password is right, and the user is let in under any name; 3.9.3 has mended it",
    apache=Code.OK,
    since={(3, 9, 3): AS_PADDOCK},
    paddock=Code.AUTH_FAILED,
)
