"""Where Apache ZooKeeper is not like Paddock, or not like itself from run to run: one row for each.

The generator asks the table before it produces something, and the normaliser before it compares
something: what a row names is left out of a run in which a server of one of its versions takes
part, and nothing else is. Most rows are differences of tests/conformance/differences.py, where they
are seen one by one; the others are about what Apache answers differently from run to run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tests.support.paddock_cluster import PaddockCluster
from tests.support.server import Server

APACHE_38: Final = "apache"
APACHE_39: Final = "apache-3.9"
BOTH: Final = frozenset({APACHE_38, APACHE_39})


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is left out, why, and with which versions of Apache ZooKeeper."""

    name: str
    reason: str
    versions: frozenset[str] = BOTH


class Rules:
    """What may be produced and compared between some servers."""

    def __init__(self, versions: Iterable[str] = BOTH) -> None:
        self.versions = frozenset(versions)

    @classmethod
    def between(cls, *servers: Server | PaddockCluster) -> Rules:
        """Return the rules for a run with these servers."""
        return cls({server.name for server in servers} & BOTH or BOTH)

    def allow(self, rule: Rule) -> bool:
        """Tell whether what a rule names is the same on all servers of the run."""
        return not rule.versions & self.versions


_ONLY_38: Final = frozenset({APACHE_38})
_ONLY_39: Final = frozenset({APACHE_39})

# Watches.

SEVERAL_WATCH_MODES: Final = Rule(
    "watches of several modes on one path",
    "3.8.0 keeps one mode for a session and a path, so that each new watch changes the one before",
    _ONLY_38,
)
WATCH_KINDS_OF_39: Final = Rule(
    "removeWatches and checkWatches of kinds 4 and 5", "3.8.0 does not know them", _ONLY_38
)
CHECK_WATCHES: Final = Rule(
    "checkWatches", "3.8.0 also finds the watches of other sessions", _ONLY_38
)
EVENT_ZXIDS: Final = Rule("the zxid of an event", "3.8.0 always sends -1", _ONLY_38)
EXISTS_WITHOUT_READ: Final = Rule(
    "exists of a node that cannot be read", "3.8.0 shows it; 3.9.2 closed that leak", _ONLY_38
)
MISSED_EVENTS_WITHOUT_READ: Final = Rule(
    "events that setWatches fires at once, of nodes that cannot be read",
    "Apache does not ask for READ then, and does for all others",
)

# Requests.

CREATE2_IN_A_MULTI: Final = Rule(
    "create2 in a multi", "3.8.0 answers it like create, without a Stat", _ONLY_38
)
CONTAINER_FLAGS_IN_A_MULTI: Final = Rule(
    "createContainer in a multi with flags of something else",
    "3.9.5 makes a container of it all the same",
    _ONLY_39,
)
MULTI_WITH_BAD_FLAGS: Final = Rule(
    "a create in a multi with flags or an ACL that mean nothing",
    "3.9.5 refuses the whole multi as undecodable",
    _ONLY_39,
)
DELETE_CONTAINER: Final = Rule(
    "deleteContainer", "3.8.0 misreads the path and always answers BadArguments", _ONLY_38
)
DELETE_CONTAINER_WITHOUT_DELETE: Final = Rule(
    "deleteContainer without DELETE on the parent", "3.9.5 does not ask for it"
)
LONE_CHECK: Final = Rule(
    "a check outside a multi", "to 3.9.5 its opcode is unknown, and it hangs up", _ONLY_39
)
LONE_CHECK_THAT_SUCCEEDS: Final = Rule(
    "a check outside a multi that succeeds", "3.8.0 never answers it"
)
CUT_WRITES: Final = Rule(
    "a write whose body is cut", "3.9.5 takes no zxid for it, but for a multi", _ONLY_39
)
IPV6_ACLS: Final = Rule("an ACL that names an IPv6 address", "3.8.0 knows IPv4 only", _ONLY_38)
TTL_BELOW_ZERO: Final = Rule(
    "createTTL with a negative TTL", "Apache dies of it, and dies again at each start"
)

# What Apache answers differently from one run to the next.

OUT_OF_TURN: Final = Rule(
    "a ping, an auth or a token of SASL behind other requests",
    "one server answers them before the requests that were sent before, as it happens",
)
UNDECODABLE_BEHIND_OTHERS: Final = Rule(
    "a request that cannot be decoded, behind others",
    "Apache's zxid in the reply is that of what has been applied, which may be any before",
)
WRITES_BEHIND_AN_ACL: Final = Rule(
    "a write behind a setACL that is under way", "Apache may judge it by the old list"
)
WRITES_TOGETHER_BELOW_A_QUOTA: Final = Rule(
    "writes below a quota, pipelined or in one multi",
    "Apache judges each by counts that do not have those under way",
)
ORDER_OF_ONE_SESSIONS_END: Final = Rule(
    "the order of the events when the ephemeral nodes of a session go",
    "in Apache it is that of a hash table",
)
