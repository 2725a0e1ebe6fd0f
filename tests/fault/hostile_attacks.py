"""Attacks that make something large first, and then use it.

Each names what its attacker makes large. Figures of what a server took that did all the work in one
step, or kept what it should not, are in the comments: what a case is there for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tests.fault.hostile import Case, Stage
from tests.fault.siege import encoded
from tests.support import requests as rq
from tests.support.records import Acl, Mode, Perm, Request
from tests.support.server import digest

#: As many identities as the limit on their bytes allows, with names as short as these.
IDENTITIES = 330
FRAME_BYTES = 0xFFFFF
MEGABYTE = bytes(1_000_000)
CONNECTIONS = 60


# Identities and ACLs.


def acl_product(stage: Stage) -> None:
    # 330 identities times 5,000 entries: 4.7 s and hundreds of megabytes, at each start again.
    one = stage.identified(IDENTITIES)
    acl = [Acl(number, "auth", "") for number in range(5_000 * stage.scale)]
    stage.ask([one], [rq.create(stage.path("product"), acl=acl)])


def many_auth_creates(stage: Stage) -> None:
    # The same by many small ACLs: each node keeps an ACL of 16 kB for 50 bytes that were sent.
    one = stage.identified(IDENTITIES)
    stage.ask([one], list(auth_creates(stage, 2_500 * stage.scale)))


def auth_creates_in_a_multi(stage: Stage) -> None:
    # 234 kB held the loop for 11 s and took 200 MB.
    one = stage.identified(IDENTITIES)
    stage.ask([one], [rq.multi(*auth_creates(stage, 4_000))] * stage.scale)


def auth_creates(stage: Stage, count: int) -> Iterator[Request]:
    for number in range(count):
        # Permissions are any number, and an ACL with another number is another ACL.
        acl = [Acl(Perm.ALL | number << 5, "auth", "")]
        yield rq.create(stage.path(f"auth{number}"), acl=acl)


def long_acls(stage: Stage) -> None:
    # One of 45,000 IPv6 addresses held the loop for 1.5 s, and for 0.6 s when it was first asked.
    (one,) = stage.join()
    for number in range(2 * stage.scale):
        acl = [Acl(1 << number % 5, "ip", f"::{address:x}") for address in range(40_000)]
        stage.ask([one], [rq.create(stage.path(number), acl=acl), rq.get_data(stage.path(number))])


def prepare_guarded(stage: Stage) -> None:
    """Create a node that the last of many identities alone may use."""
    acl = [Acl(Perm.ALL, "digest", digest(b"u%d:p" % (IDENTITIES - 1)))]
    stage.ask(stage.join(), [rq.create(stage.path("guarded"), acl=acl)])


def refused_reads(stage: Stage) -> None:
    # 10,000 of them, 230 kB, took 3.9 s in one step: each looks for each identity.
    one = stage.identified(IDENTITIES)
    stage.ask([one], [rq.get_data(stage.path("guarded"))] * 10_000 * stage.scale)


def guarded_multi_read(stage: Stage) -> None:
    # A frame of them took 16 s.
    one = stage.identified(IDENTITIES)
    reads = [rq.get_children(stage.path("guarded"))] * 25_000
    stage.ask([one], [rq.multi_read(*reads)] * stage.scale)


def guarded_checks_in_a_multi(stage: Stage) -> None:
    one = stage.identified(IDENTITIES)
    stage.ask([one], [rq.multi(*[rq.check(stage.path("guarded"))] * 20_000)] * stage.scale)


def watchers_with_identities(stage: Stage) -> None:
    # 60 watchers with 330 identities each, who may not see the node: 500 changes took 8 s.
    watchers = [stage.identified(IDENTITIES) for _ in range(CONNECTIONS - 1)]
    (one,) = stage.join()
    path = stage.path("hidden")
    for watcher in watchers:
        stage.ask([watcher], [rq.add_watch(path, 0)])
    stage.listen(*watchers)
    hidden = [Acl(Perm.ALL & ~Perm.READ, "world", "anyone")]
    stage.ask([one], [rq.create(path, acl=hidden), *[rq.set_data(path, b"")] * 500 * stage.scale])


def prepare_masked(stage: Stage) -> None:
    acl = [Acl(Perm.READ, "digest", f"u{number}:x") for number in range(30_000)]
    acl.append(Acl(Perm.READ, "world", "anyone"))
    stage.ask(stage.join(), [rq.create(stage.path("masked"), acl=acl)])


def masked_acls_behind_a_write(stage: Stage) -> None:
    # 60 of them took 8 s in the middle of a batch.
    reads = [rq.get_acl(stage.path("masked"))] * 60 * stage.scale
    stage.ask(stage.join(), [rq.set_data(stage.root, b""), *reads])


def who_am_i_behind_a_write(stage: Stage) -> None:
    # 9,000 of them took 3 s in the middle of a batch.
    one = stage.identified(IDENTITIES)
    stage.ask([one], [rq.set_data(stage.root, b""), *[rq.who_am_i()] * 9_000])


def the_same_identity_again(stage: Stage) -> None:
    one = stage.identified(IDENTITIES)
    stage.ask([one], [rq.auth("digest", b"u%d:p" % (IDENTITIES - 1))] * 8_000 * stage.scale)


def growing_identities(stage: Stage) -> None:
    # Each write carries a set of its own: 300 kB sent were 281 MB at the next start.
    for number in range(20 * stage.scale):
        (one,) = stage.join()
        requests = [
            request
            for more in range(IDENTITIES)
            for request in (rq.auth("digest", b"%d-%d:p" % (number, more)), rq.check("/", 5))
        ]
        stage.ask([one], requests)
        one.close()


def identities_in_the_log(stage: Stage) -> None:
    # Each of these small writes takes 16 kB of the log along, and none of them a snapshot.
    one = stage.identified(IDENTITIES)
    stage.ask([one], [rq.check("/", 5)] * 8_000 * stage.scale)


# Trees.


def prepare_large_tree(stage: Stage) -> None:
    tops = [stage.path(number) for number in range(400)]
    stage.create(tops)
    each = 250 * stage.scale
    stage.create(f"{top}/{number}" for top in tops for number in range(each))


def counts_by_twenty(stage: Stage) -> None:
    # Of 200,000 nodes, 60 ms each: others waited for 12 s.
    stage.ask(stage.join(20), [rq.get_all_children_number(stage.root)] * 20)


def prepare_quota(stage: Stage) -> None:
    above = f"/zookeeper/quota{stage.root}"
    stage.create([above])
    stage.create([f"{above}/zookeeper_limits"], b"count=-1,bytes=-1")
    stage.create(stage.path(number) for number in range(20_000 * stage.scale))


def recounts_in_a_multi(stage: Stage) -> None:
    # 1,500 steps took 6 s, and at each start again.
    statistics = f"/zookeeper/quota{stage.root}/zookeeper_stats"
    steps = [rq.create(statistics), rq.delete(statistics)] * 750
    stage.ask(stage.join(), [rq.multi(*steps)])


def prepare_wide(stage: Stage) -> None:
    stage.create(stage.path(f"{number:06d}") for number in range(20_000 * stage.scale))


def lists_of_a_node_that_changes(stage: Stage) -> None:
    # 58 kB took 5.6 s: between two reads the list is encoded anew.
    path = stage.path("t")
    pairs = [
        (rq.create(path), rq.get_children(stage.root)),
        (rq.delete(path), rq.get_children(stage.root)),
    ]
    stage.ask(stage.join(), list(itertools.chain(*pairs * 400)))


def prepare_large_node(stage: Stage) -> None:
    stage.create([stage.path("large")], MEGABYTE)


def stats_of_a_large_node_that_changes(stage: Stage) -> None:
    # 176 kB took 3.4 s: a stat was cut from a copy of the data.
    large, below = stage.path("large"), stage.path("large/t")
    pairs = [(rq.create(below), rq.exists(large)), (rq.delete(below), rq.exists(large))]
    stage.ask(stage.join(), list(itertools.chain(*pairs * 1_500 * stage.scale)))


def unread_copies(stage: Stage) -> None:
    # 217 kB of requests took 1.7 GB: each read is of another state of the node.
    large, below = stage.path("large"), stage.path("large/t")
    pairs = [(rq.create(below), rq.get_data(large)), (rq.delete(below), rq.get_data(large))]
    (one,) = stage.join(receive_bytes=4_096)
    stage.send(one, encoded(list(itertools.chain(*pairs * 1_000))))
    # An answer behind it says that the server is through with what it took of them.
    stage.ask(stage.join(), [rq.set_data(stage.root, b"")] * 50)


def prepare_large_nodes(stage: Stage) -> None:
    guarded = [Acl(Perm.ALL & ~Perm.READ, "world", "anyone")]
    paths = [stage.path(number) for number in range(60 * stage.scale)]
    stage.ask(stage.join(), [rq.create(path, MEGABYTE, guarded) for path in paths])


def exists_without_read(stage: Stage) -> None:
    # Each kept a copy of data that it never sends.
    paths = [stage.path(number) for number in range(60 * stage.scale)]
    stage.ask(stage.join(), [rq.exists(path) for path in paths])


def deletes_of_large_nodes(stage: Stage) -> None:
    paths = [stage.path(number) for number in range(60 * stage.scale)]
    stage.ask(stage.join(), [rq.multi(*map(rq.delete, paths))])


def children_of_large_nodes(stage: Stage) -> None:
    # 300 of them, 16 kB, took 0.4 s: the digest went over all of their data, twice.
    paths = [stage.path(f"{number}/t") for number in range(60 * stage.scale)]
    stage.ask(stage.join(), [rq.multi(*map(rq.create, paths))])


def paths_of_many_names(stage: Stage) -> None:
    # 0.1 s and 63 MB each: an expression kept a place for each name.
    (one,) = stage.join()
    for _ in range(5 * stage.scale):
        stage.ask([one], [rq.set_data("/a" * 500_000, b""), rq.set_data("/é" * 340_000, b"")])


def ttl_nodes(stage: Stage) -> None:
    # All of them were looked at in each interval, in one step.
    (one,) = stage.join()
    for number in range(10 * stage.scale):
        below = [rq.create_ttl(stage.path(f"{number}-{n}"), 1 << 39) for n in range(4_000)]
        stage.ask([one], [rq.multi(*below)])


# Sessions.


def ephemerals(stage: Stage, count: int) -> list[Request]:
    return [rq.create(stage.path(f"e{number}"), flags=Mode.EPHEMERAL) for number in range(count)]


def the_end_of_many_ephemerals(stage: Stage) -> None:
    # 100,000 of them: 1.6 s.
    (one,) = stage.join()
    stage.ask([one], ephemerals(stage, 8_000 * stage.scale))
    stage.ask([one], [rq.close_session()])


def prepare_deep(stage: Stage) -> None:
    """Create a path of 1,000 levels, and watch below it, where there need not be anything."""
    levels = list(itertools.accumulate(["/n"] * 1_000, initial=stage.root))[1:]
    stage.create(levels)
    watcher, owner = stage.join(2)
    stage.ask([watcher], [rq.add_watch(levels[-1] + "/n" * 500, 1)])
    stage.listen(watcher)
    deepest = levels[-1]
    creates = [
        rq.create(f"{deepest}/e{number}", flags=Mode.EPHEMERAL)
        for number in range(1_000 * stage.scale)
    ]
    stage.ask([owner], creates)
    stage.prepared = [owner]


def the_end_of_deep_ephemerals(stage: Stage) -> None:
    # 5,000 of them: 19 s, for every level of every path in two tables.
    stage.ask(stage.prepared, [rq.close_session()])


def abandoned_sessions(stage: Stage) -> None:
    # 3,000 that end in the same tick, with ten ephemerals each: 1.6 s.
    creates = [rq.create(stage.path("e"), flags=Mode.EPHEMERAL_SEQUENTIAL)] * 10
    for _ in range(5 * stage.scale):
        some = stage.join(50, timeout_ms=2_000)
        stage.ask(some, creates)
        for one in some:
            one.close()
    stage.wait_for_sessions(at_most=20)


def lists_of_ephemerals(stage: Stage) -> None:
    (one,) = stage.join()
    stage.ask([one], ephemerals(stage, 8_000 * stage.scale))
    # None of them fits, so the answers are short and the search is not.
    stage.ask([one], [rq.get_ephemerals("/none")] * 100)


# Watches.


def watches_of_one_request(stage: Stage) -> None:
    # 49,000 of them: 0.5 s to set and 88 MB, 1 s to forget; of ten that go together 5 s.
    paths = [f"/{number}" for number in range(40_000)]
    watchers = stage.join(2 * stage.scale)
    stage.ask(watchers, [rq.set_watches2(0, recursive=paths)])
    for one in watchers:
        one.close()
    stage.ask(stage.join(), [rq.exists("/")] * 10)


def a_recursive_watch_comes_and_goes(stage: Stage) -> None:
    # With 196,000 others there each event took 83 ms.
    (other, one) = stage.join(2)
    paths = [f"/none/{number}" for number in range(45_000)]
    stage.ask([other], [rq.set_watches2(0, recursive=paths)])
    here = rq.add_watch("/none", 1), rq.remove_watches("/none", 3)
    stage.ask([one], [*here, rq.set_data(stage.root, b"")] * 200 * stage.scale)


def events_of_a_multi(stage: Stage) -> None:
    watchers = stage.join(CONNECTIONS - 1)
    stage.ask(watchers, [rq.add_watch(stage.root, 1)])
    stage.listen(*watchers)
    path = stage.path("t")
    stage.ask(stage.join(), [rq.multi(*[rq.create(path), rq.delete(path)] * 1_000 * stage.scale)])


def unread_events_of_long_paths(stage: Stage) -> None:
    # An event is the same for everybody who gets it, and was copied for each.
    for one in stage.join(CONNECTIONS - 1, receive_bytes=4_096):
        stage.ask([one], [rq.add_watch(stage.root, 1)])
    creates = [rq.create(stage.path(f"{n}{'x' * 900_000}")) for n in range(4 * stage.scale)]
    stage.ask(stage.join(), creates)


# Many at a time.


def full_multis_by_twenty(stage: Stage) -> None:
    # A small write waited for all of them: 12.6 s for 80 MB.
    step = rq.check("/")
    room = FRAME_BYTES - 8 - 9
    size = 9 + len(step.body)
    count = room // size
    # To the last byte, so that nothing fits into a batch beside it.
    last = rq.check("/" + "x" * (room - count * size))
    full = rq.multi(*[step] * (count - 1), last)
    stage.ask(stage.join(20), [full] * stage.scale)


def exists_by_sixty(stage: Stage) -> None:
    stage.ask(stage.join(CONNECTIONS), [rq.exists("/")] * 2_000 * stage.scale)


def exists_by_sixty_behind_a_write(stage: Stage) -> None:
    count = min(9_900, 2_000 * stage.scale)
    stage.ask(stage.join(CONNECTIONS), [rq.set_data(stage.root, b""), *[rq.exists("/")] * count])


def writes_by_sixty(stage: Stage) -> None:
    stage.ask(stage.join(CONNECTIONS), [rq.check("/", 5)] * 2_000 * stage.scale)


def pings_by_sixty(stage: Stage) -> None:
    stage.ask(stage.join(CONNECTIONS), [rq.ping()] * 4_000 * stage.scale)


def watches_that_come_and_go_by_sixty(stage: Stage) -> None:
    # What one read brings of each connection was worked off before anything of another one: 6 s.
    both = [rq.add_watch(stage.root, 1), rq.remove_watches(stage.root, 3)]
    stage.ask(stage.join(CONNECTIONS), both * 400 * stage.scale)


def handshakes(stage: Stage) -> None:
    for _ in range(5 * stage.scale):
        for one in stage.join(CONNECTIONS):
            one.close()


#: What an attack may leave in memory that it wrote: nodes, and the log's buffers.
NODES_MB = 20.0

ATTACKS = (
    Case("the product of auth entries and identities", "create", "identities × ACL entries",
         acl_product, memory_mb_each=20, is_restarted=True, is_alone=True),
    Case("an ACL of all identities at each of many nodes", "create", "identities × nodes",
         many_auth_creates, memory_mb_each=40, is_alone=True),
    Case("an ACL of all identities at each step of a multi", "multi", "identities × steps",
         auth_creates_in_a_multi, memory_mb_each=40, is_restarted=True, is_alone=True),
    Case("ACLs as long as a frame", "create, get", "entries of an ACL",
         long_acls, memory_mb_each=60),
    Case("reads that are refused for each of many identities", "get", "identities × requests",
         refused_reads, prepare_guarded),
    Case("a multiRead that asks for each of many identities", "multiRead", "identities × reads",
         guarded_multi_read, prepare_guarded),
    Case("a multi that asks for each of many identities", "multi, check", "identities × steps",
         guarded_checks_in_a_multi, prepare_guarded, is_restarted=True, is_alone=True),
    Case("watchers with many identities", "setData", "watchers × identities",
         watchers_with_identities),
    Case("masked ACLs behind a write", "getACL", "entries of an ACL × requests",
         masked_acls_behind_a_write, prepare_masked, memory_mb=64),
    Case("whoAmI behind a write", "whoAmI", "identities × requests",
         who_am_i_behind_a_write, memory_mb=64),
    Case("an identity that is known already", "auth", "identities × packets",
         the_same_identity_again),
    Case("identities that grow with each write", "auth, check", "sets of identities in the log",
         growing_identities, memory_mb=20, is_restarted=True, is_alone=True),
    Case("many identities with each write", "check", "bytes in the log",
         identities_in_the_log, memory_mb=20, is_restarted=True, is_alone=True),
    Case("counts of a large tree by twenty", "getAllChildrenNumber", "descendants × clients",
         counts_by_twenty, prepare_large_tree),
    Case("quota statistics counted anew in a multi", "multi, create", "descendants × steps",
         recounts_in_a_multi, prepare_quota, is_restarted=True, is_alone=True),
    Case("lists of a node that changes between reads", "getChildren", "children × requests",
         lists_of_a_node_that_changes, prepare_wide, memory_mb=64, memory_mb_each=4),
    Case("stats of a large node that changes between reads", "exists", "data × requests",
         stats_of_a_large_node_that_changes, prepare_large_node),
    Case("data that changes between reads and is not read", "get", "data × unread replies",
         unread_copies, prepare_large_node, memory_mb=72),
    Case("exists on large nodes without READ", "exists", "data of nodes",
         exists_without_read, prepare_large_nodes),
    Case("a multi that deletes large nodes", "multi, delete", "data of nodes",
         deletes_of_large_nodes, prepare_large_nodes),
    Case("a multi that creates below large nodes", "multi, create", "data of nodes",
         children_of_large_nodes, prepare_large_nodes),
    Case("paths of half a million names", "setData", "names of a path",
         paths_of_many_names),
    Case("TTL nodes that are not due", "createTTL", "TTL nodes",
         ttl_nodes, memory_mb_each=NODES_MB),
    Case("the end of a session with many ephemerals", "closeSession", "ephemerals",
         the_end_of_many_ephemerals, memory_mb_each=10),
    Case("the end of a session with deep ephemerals", "closeSession", "ephemerals × levels",
         the_end_of_deep_ephemerals, prepare_deep),
    Case("sessions that expire together", "createSession", "sessions × ephemerals",
         abandoned_sessions, memory_mb_each=4),
    Case("lists of ephemerals of which none fits", "getEphemerals", "ephemerals × requests",
         lists_of_ephemerals, memory_mb_each=10),
    Case("watches of one request, and their end", "setWatches2", "watches × clients",
         watches_of_one_request, memory_mb_each=200),
    Case("a recursive watch that comes and goes", "addWatch, removeWatches", "others' watches",
         a_recursive_watch_comes_and_goes, memory_mb=100),
    Case("events of one multi for sixty", "multi", "changes × watchers",
         events_of_a_multi, memory_mb_each=40),
    Case("events of long paths that nobody reads", "create", "bytes of a path × watchers",
         unread_events_of_long_paths, memory_mb=64, memory_mb_each=8),
    Case("full multis by twenty", "multi, check", "bytes of requests",
         full_multis_by_twenty, memory_mb=160, is_alone=True),
    Case("exists by sixty", "exists", "requests × clients", exists_by_sixty, memory_mb=40),
    Case("exists by sixty behind a write", "exists", "requests × clients",
         exists_by_sixty_behind_a_write, memory_mb=120),
    Case("writes by sixty", "check", "requests × clients", writes_by_sixty, memory_mb=120),
    Case("pings by sixty", "ping", "requests × clients", pings_by_sixty, memory_mb=40),
    Case("watches that come and go by sixty", "addWatch, removeWatches", "requests × clients",
         watches_that_come_and_go_by_sixty, memory_mb=60),
    Case("handshakes", "createSession", "connections", handshakes, memory_mb=10),
)  # fmt: skip
