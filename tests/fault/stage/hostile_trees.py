"""Attacks on what is costly about a tree: many nodes, large ones, deep ones, quotas, ephemerals.

Figures of what a server took that did all the work in one step, or kept what it should not, are in
the comments: what a case is there for.
"""

from __future__ import annotations

import itertools

from tests.fault.stage.hostile import Case
from tests.fault.stage.hostile_stage import Stage, multis
from tests.fault.stage.process import eventually
from tests.fault.stage.siege import encoded
from tests.support import requests as rq
from tests.support.records import Acl, Mode, Perm, Request

MEGABYTE = bytes(1_000_000)
SNAPSHOT_EVERY = 2_000


def prepare_large_tree(stage: Stage) -> None:
    tops = [stage.path(number) for number in range(400)]
    stage.create(tops)
    each = 125 * stage.scale
    stage.create(f"{top}/{number}" for top in tops for number in range(each))


def counts_by_twenty(stage: Stage) -> None:
    # Of 200,000 nodes, 60 ms each: others waited for 12 s.
    stage.ask(stage.join(20), [rq.get_all_children_number(stage.root)] * 60)


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
    stage.ask(stage.join(), list(itertools.chain(*pairs * 300)))


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


def deletes_during_a_snapshot(stage: Stage) -> None:
    # What the snapshot had not written yet was written in the middle of the transaction.
    paths = [stage.path(number) for number in range(60 * stage.scale)]
    (one,) = stage.join()
    stage.ask([one], [*[rq.check("/", 5)] * SNAPSHOT_EVERY, rq.multi(*map(rq.delete, paths))])


def nested_quotas(stage: Stage) -> None:
    levels = list(itertools.accumulate(["/q"] * 300, initial=stage.root))
    above = [f"/zookeeper/quota{level}" for level in levels]
    stage.create(itertools.chain(levels[1:], above))
    stage.create((f"{one}/zookeeper_limits" for one in above), b"count=1000000,bytes=-1")
    stage.create(f"{one}/zookeeper_stats" for one in above)
    below = [f"{levels[-1]}/{number}" for number in range(500 * stage.scale)]
    stage.ask(stage.join(), [*map(rq.create, below), *multis(map(rq.delete, below))])


def ttl_nodes_that_are_due(stage: Stage) -> None:
    (one,) = stage.join()
    creates = [rq.create_ttl(stage.path(number), 1) for number in range(2_000 * stage.scale)]
    stage.ask([one], creates)
    # Those of one look are deleted while this is served.
    stage.ask([one], [rq.set_data(stage.root, b"")] * 2_000)


def ttl_nodes(stage: Stage) -> None:
    # All of them were looked at in each interval, in one step.
    (one,) = stage.join()
    for number in range(40 * stage.scale):
        below = [rq.create_ttl(stage.path(f"{number}-{n}"), 1 << 39) for n in range(1_000)]
        stage.ask([one], [rq.multi(*below)])


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
    before = stage.count_sessions()
    for _ in range(5 * stage.scale):
        some = stage.join(50, timeout_ms=1_000)
        stage.ask(some, creates)
        for one in some:
            one.close()
    eventually(lambda: stage.count_sessions() <= before, "the end of the sessions")


def lists_of_ephemerals(stage: Stage) -> None:
    (one,) = stage.join()
    stage.ask([one], ephemerals(stage, 8_000 * stage.scale))
    # None of them fits, so the answers are short and the search is not.
    stage.ask([one], [rq.get_ephemerals("/none")] * 100)


TREE_ATTACKS = (
    Case("counts of a large tree by twenty", "getAllChildrenNumber", "descendants × clients",
         counts_by_twenty, prepare_large_tree),
    Case("quota statistics counted anew in a multi", "multi, create", "descendants × steps",
         recounts_in_a_multi, prepare_quota, is_restarted=True, is_alone=True, is_atomic=True),
    Case("lists of a node that changes between reads", "getChildren", "children × requests",
         lists_of_a_node_that_changes, prepare_wide, memory_mb=64, memory_mb_each=4),
    Case("stats of a large node that changes between reads", "exists", "data × requests",
         stats_of_a_large_node_that_changes, prepare_large_node),
    Case("data that changes between reads and is not read", "get", "data × unread replies",
         unread_copies, prepare_large_node, memory_mb=72, is_alone=True),
    Case("exists on large nodes without READ", "exists", "data of nodes",
         exists_without_read, prepare_large_nodes, is_alone=True),
    Case("a multi that deletes large nodes", "multi, delete", "data of nodes",
         deletes_of_large_nodes, prepare_large_nodes, is_atomic=True),
    Case("a multi that creates below large nodes", "multi, create", "data of nodes",
         children_of_large_nodes, prepare_large_nodes, is_atomic=True),
    Case("large nodes deleted during a snapshot", "multi, delete", "data of nodes",
         deletes_during_a_snapshot, prepare_large_nodes, settings=(("snapCount", SNAPSHOT_EVERY),),
         is_atomic=True),
    Case("quotas at each of many levels", "create, multi", "quotas",
         nested_quotas, memory_mb_each=10, is_atomic=True),
    Case("paths of half a million names", "setData", "names of a path",
         paths_of_many_names),
    Case("TTL nodes that are due", "createTTL", "TTL nodes",
         ttl_nodes_that_are_due, memory_mb_each=10),
    Case("TTL nodes that are not due", "createTTL", "TTL nodes",
         ttl_nodes, memory_mb_each=20),
    Case("the end of a session with many ephemerals", "closeSession", "ephemerals",
         the_end_of_many_ephemerals, memory_mb_each=10, is_atomic=True),
    Case("the end of a session with deep ephemerals", "closeSession", "ephemerals × levels",
         the_end_of_deep_ephemerals, prepare_deep, is_atomic=True),
    Case("sessions that expire together", "createSession", "sessions × ephemerals",
         abandoned_sessions, memory_mb_each=4),
    Case("lists of ephemerals of which none fits", "getEphemerals", "ephemerals × requests",
         lists_of_ephemerals, memory_mb_each=10),
)  # fmt: skip
