"""Where Apache ZooKeeper is not like Paddock, or not like itself from run to run: one row for each.

The generator asks the table before it produces something, and the normaliser before it compares
something: what a row names is left out of a run in which a server of one of its releases takes
part, and nothing else is. Most rows are differences of tests/conformance/differences.py, where they
are seen one by one; the others are about what Apache answers differently from run to run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tests.support.paddock_cluster import PaddockCluster
from tests.support.release import Release
from tests.support.server import Server

#: One before and one behind most of what 3.9 changed.
V3_8: Final = Release(3, 8, 0)
V3_9: Final = Release(3, 9, 5)
#: And one behind all of it.
V3_9_6: Final = Release(3, 9, 6)


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is left out, why, and with which releases of Apache ZooKeeper."""

    name: str
    reason: str
    since: tuple[int, ...] = ()
    #: The first one that is without it again.
    until: tuple[int, ...] | None = None

    def is_for(self, release: Release) -> bool:
        """Tell whether it is left out with this release."""
        return release >= self.since and (self.until is None or release < self.until)


class Rules:
    """What may be produced and compared between some servers."""

    def __init__(self, releases: Iterable[Release] = (V3_8, V3_9, V3_9_6)) -> None:
        self.releases = frozenset(releases)

    @classmethod
    def between(cls, *servers: Server | PaddockCluster) -> Rules:
        """Return the rules for a run with these servers; without an Apache all of them hold."""
        releases = [server.release for server in servers if isinstance(server, Server)]
        known = [release for release in releases if release is not None]
        return cls(known) if known else cls()

    def allow(self, rule: Rule) -> bool:
        """Tell whether what a rule names is the same on all servers of the run."""
        return not any(rule.is_for(release) for release in self.releases)


# Watches.

SEVERAL_WATCH_MODES: Final = Rule(
    "watches of several modes on one path",
    "3.8.0 keeps one mode for a session and a path, so that each new watch changes the one before",
    until=(3, 9),
)
WATCH_KINDS_OF_39: Final = Rule(
    "removeWatches and checkWatches of kinds 4 and 5", "3.8.0 does not know them", until=(3, 9)
)
CHECK_WATCHES: Final = Rule(
    "checkWatches", "3.8.0 also finds the watches of other sessions", until=(3, 9)
)
EVENT_ZXIDS: Final = Rule("the zxid of an event", "3.8.0 always sends -1", until=(3, 9))
EXISTS_WITHOUT_READ: Final = Rule(
    "exists of a node that cannot be read",
    "3.8.0 shows it; 3.9.2 closed that leak",
    until=(3, 9, 2),
)
MISSED_EVENTS_WITHOUT_READ: Final = Rule(
    "events that setWatches fires at once, of nodes that cannot be read",
    "until 3.9.6 Apache does not ask for READ then, and does for all others",
    until=(3, 9, 6),
)

# Requests.

CREATE2_IN_A_MULTI: Final = Rule(
    "create2 in a multi", "3.8.0 answers it like create, without a Stat", until=(3, 9)
)
CONTAINER_FLAGS_IN_A_MULTI: Final = Rule(
    "createContainer in a multi with flags of something else",
    "3.9 makes a container of it all the same",
    since=(3, 9),
)
MULTI_WITH_BAD_FLAGS: Final = Rule(
    "a create in a multi with flags or an ACL that mean nothing",
    "3.9 refuses the whole multi as undecodable",
    since=(3, 9),
)
DELETE_CONTAINER: Final = Rule(
    "deleteContainer", "3.8.0 misreads the path and always answers BadArguments", until=(3, 9)
)
DELETE_CONTAINER_BY_CLIENTS: Final = Rule(
    "deleteContainer from a client", "3.9.6 hangs up on it", since=(3, 9, 6)
)
DELETE_CONTAINER_WITHOUT_DELETE: Final = Rule(
    "deleteContainer without DELETE on the parent", "Apache does not ask for it"
)
LONE_CHECK: Final = Rule(
    "a check outside a multi", "since 3.9.3 its opcode is unknown, and it hangs up", since=(3, 9, 3)
)
LONE_CHECK_THAT_SUCCEEDS: Final = Rule(
    "a check outside a multi that succeeds", "3.8.0 never answers it"
)
CUT_WRITES: Final = Rule(
    "a write whose body is cut", "3.9 takes no zxid for it, but for a multi", since=(3, 9)
)
IPV6_ACLS: Final = Rule(
    "an ACL that names an IPv6 address", "until 3.9.4 it knows IPv4 only", until=(3, 9, 4)
)
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
