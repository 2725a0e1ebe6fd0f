"""Attacks by many at a time, and by watches.

Figures of what a server took that did all the work in one step, or kept what it should not, are in
the comments: what a case is there for.
"""

from __future__ import annotations

import itertools

from tests.fault.stage.hostile import Case
from tests.fault.stage.hostile_identities import prepare_masked
from tests.fault.stage.hostile_stage import CONNECTIONS, Stage, multis
from tests.fault.stage.hostile_trees import ephemerals
from tests.support import requests as rq

FRAME_BYTES = 0xFFFFF


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


def recursive_watches_at_every_level(stage: Stage) -> None:
    levels = list(itertools.accumulate(["/n"] * 400, initial=stage.root))[1:]
    stage.create(levels)
    watchers = stage.join(20)
    stage.ask(watchers, [rq.add_watch(level, 1) for level in levels])
    stage.listen(*watchers)
    stage.ask(stage.join(), [rq.set_data(levels[-1], b"")] * 200 * stage.scale)


def events_of_a_multi(stage: Stage) -> None:
    watchers = stage.join(CONNECTIONS - 1)
    stage.ask(watchers, [rq.add_watch(stage.root, 1)])
    stage.listen(*watchers)
    path = stage.path("t")
    steps = [rq.create(path), rq.delete(path)] * 1_000 * stage.scale
    stage.ask(stage.join(), multis(steps))


def unread_events_of_long_paths(stage: Stage) -> None:
    # An event is the same for everybody who gets it, and was copied for each.
    for one in stage.join(CONNECTIONS - 1, receive_bytes=4_096):
        stage.ask([one], [rq.add_watch(stage.root, 1)])
    creates = [rq.create(stage.path(f"{n}{'x' * 900_000}")) for n in range(4 * stage.scale)]
    stage.ask(stage.join(), creates)


def full_multis_by_many(stage: Stage) -> None:
    # A small write waited for all of them: 12.6 s for 80 MB.
    step = rq.check("/")
    room = FRAME_BYTES - 8 - 9
    size = 9 + len(step.body)
    count = room // size
    # To the last byte, so that nothing fits into a batch beside it.
    last = rq.check("/" + "x" * (room - count * size))
    full = rq.multi(*[step] * (count - 1), last)
    stage.ask(stage.join(4 * stage.scale), [full] * 3)


def long_reads_behind_full_multis(stage: Stage) -> None:
    # What waits in the lines of all connections was bounded for each of them alone.
    checks = rq.multi(*[rq.check("/")] * 40_000)
    reads = [rq.exists("/" + "x" * 1_000_000)] * 14
    stage.ask(stage.join(5 * stage.scale), [checks, *reads])


def long_acls_between_writes(stage: Stage) -> None:
    change = rq.set_data(stage.root, b"")
    reads = [rq.get_acl(stage.path("masked"))] * 100
    stage.ask(stage.join(4 * stage.scale), [change, *reads, change])


def reads_between_writes(stage: Stage) -> None:
    # Each write is followed by as many reads as may stand in a line.
    some = [rq.set_data(stage.root, b""), *[rq.exists("/")] * 990]
    stage.ask(stage.join(CONNECTIONS), some * stage.scale)


def changes_for_sixty(stage: Stage) -> None:
    # A batch of cheap bytes, and not of cheap work: 5,000 changes kept a write waiting for 1.3 s.
    watchers = stage.join(CONNECTIONS - 1)
    stage.ask(watchers, [rq.add_watch(stage.root, 0)])
    stage.listen(*watchers)
    stage.ask(stage.join(), [rq.set_data(stage.root, b"")] * 1_000 * stage.scale)


def ephemerals_for_sixty(stage: Stage) -> None:
    # 4,000 of them: 236,000 events in one step, 1.5 s.
    watchers = stage.join(CONNECTIONS - 1)
    stage.ask(watchers, [rq.add_watch(stage.root, 1)])
    stage.listen(*watchers)
    (one,) = stage.join()
    stage.ask([one], ephemerals(stage, 1_000 * stage.scale))
    stage.ask([one], [rq.close_session()])
    stage.ask(stage.join(), [rq.exists("/")] * 10)


def exists_by_sixty(stage: Stage) -> None:
    stage.ask(stage.join(CONNECTIONS), [rq.exists("/")] * 2_000 * stage.scale)


def exists_by_sixty_behind_a_write(stage: Stage) -> None:
    count = min(9_900, 2_000 * stage.scale)
    stage.ask(stage.join(CONNECTIONS), [rq.set_data(stage.root, b""), *[rq.exists("/")] * count])


def writes_by_sixty(stage: Stage) -> None:
    stage.ask(stage.join(CONNECTIONS), [rq.check("/", 5)] * 1_000 * stage.scale)


def pings_by_sixty(stage: Stage) -> None:
    stage.ask(stage.join(CONNECTIONS), [rq.ping()] * 2_000 * stage.scale)


def watches_that_come_and_go_by_sixty(stage: Stage) -> None:
    # What one read brings of each connection was worked off before anything of another one: 6 s.
    both = [rq.add_watch(stage.root, 1), rq.remove_watches(stage.root, 3)]
    stage.ask(stage.join(CONNECTIONS), both * 400 * stage.scale)


def handshakes(stage: Stage) -> None:
    for _ in range(2 * stage.scale):
        for one in stage.join(CONNECTIONS):
            one.close()


def prepare_watches(stage: Stage) -> None:
    (one,) = stage.join()
    paths = [f"/none/{number}" for number in range(8_000 * stage.scale)]
    stage.ask([one], [rq.set_watches2(0, exist=paths), *ephemerals(stage, 3_000)])


def words_by_many(stage: Stage) -> None:
    # Each sent a piece in each pass of the loop: 0.3 s for reads and 0.7 s for writes.
    for word in ("dump", "wchp", "wchc", "cons", "mntr", "stat"):
        stage.ask_word(word, 10 * stage.scale)


def admin_commands_by_many(stage: Stage) -> None:
    for command in ("dump", "watches", "watches_by_path", "connections", "monitor"):
        stage.ask_admin(f"/commands/{command}", 4 * stage.scale)
    stage.ask_admin("/metrics", 4 * stage.scale)


CROWD_ATTACKS = (
    Case("watches of one request, and their end", "setWatches2", "watches × clients",
         watches_of_one_request, memory_mb_each=200),
    Case("a recursive watch that comes and goes", "addWatch, removeWatches", "others' watches",
         a_recursive_watch_comes_and_goes, memory_mb=100),
    Case("recursive watches at every level", "addWatch, setData", "levels × watchers",
         recursive_watches_at_every_level, memory_mb_each=40),
    Case("events of one multi for sixty", "multi", "changes × watchers",
         events_of_a_multi, memory_mb_each=40, is_atomic=True),
    Case("events of long paths that nobody reads", "create", "bytes of a path × watchers",
         unread_events_of_long_paths, memory_mb=64, memory_mb_each=8),
    # Each of them is a frame that is full of steps.
    Case("full multis by many", "multi, check", "bytes of requests",
         full_multis_by_many, memory_mb=160, is_alone=True, step_ms_max=200),
    Case("long reads behind full multis", "multi, exists", "bytes of requests × clients",
         long_reads_behind_full_multis, memory_mb=160, is_alone=True, is_atomic=True),
    Case("long ACLs between writes", "getACL", "entries of an ACL × clients",
         long_acls_between_writes, prepare_masked, memory_mb=120, is_atomic=True),
    Case("reads between writes by sixty", "setData, exists", "requests × clients",
         reads_between_writes, memory_mb=60),
    Case("changes for sixty watchers", "setData", "changes × watchers",
         changes_for_sixty, memory_mb_each=10),
    # The end of one session is atomic, too.
    Case("the end of ephemerals for sixty watchers", "closeSession", "ephemerals × watchers",
         ephemerals_for_sixty, memory_mb_each=20, step_ms_max=200),
    Case("exists by sixty", "exists", "requests × clients", exists_by_sixty, memory_mb=40),
    Case("exists by sixty behind a write", "exists", "requests × clients",
         exists_by_sixty_behind_a_write, memory_mb=120),
    Case("writes by sixty", "check", "requests × clients", writes_by_sixty, memory_mb=120),
    Case("pings by sixty", "ping", "requests × clients", pings_by_sixty, memory_mb=40),
    Case("watches that come and go by sixty", "addWatch, removeWatches", "requests × clients",
         watches_that_come_and_go_by_sixty, memory_mb=60),
    Case("handshakes", "createSession", "connections", handshakes, memory_mb=10),
    Case("four-letter words by many", "words", "watches, ephemerals × connections",
         words_by_many, prepare_watches, memory_mb=20, memory_mb_each=10),
    Case("admin commands by many", "admin", "watches, ephemerals × connections",
         admin_commands_by_many, prepare_watches, memory_mb=20, memory_mb_each=10),
)  # fmt: skip
