"""The ring of changes: what a pull finds in it, who may see it, who is woken, what it forgets."""

from __future__ import annotations

from random import Random

import pytest

from paddock.errors import OK
from paddock.protocol import changes, opcodes
from paddock.protocol.acl import ACL, ALL, ANYONE, READ, Identity
from paddock.protocol.changes import ChangeRecord, read_change
from paddock.protocol.jute import Reader
from paddock.protocol.records import ReplyHeader, Stat
from paddock.protocol.requests import CreateRequest, SetDataRequest, VersionRequest
from paddock.state import feeds
from paddock.state.access import NOBODY, Identities
from paddock.state.feeds import ChangeRing, Feed, Topic
from paddock.state.machine import Outcome
from paddock.state.watcher import Watcher
from tests.unit.state.driver import OPEN, Connection, World

LIMIT = 1 << 20
BOB = Identity("digest", "bob:secret")
BOB_ALONE: list[ACL | None] = [ACL(ALL, BOB)]
NOT_READ: list[ACL | None] = [ACL(ALL & ~READ, ANYONE)]


class Sleeper(Watcher):
    """The connection of a feed, which hears wake-ups."""

    def __init__(self) -> None:
        super().__init__()
        self.woken: list[tuple[int, int]] = []

    def notify(self, event: bytes) -> None:
        reader = Reader(event, 4)
        header = ReplyHeader.read(reader)
        assert (header.xid, header.error) == (changes.WAKE_UP_XID, OK)
        self.woken.append((reader.int32(), header.zxid))
        assert reader.rest() == b""


class RecordedWorld(World):
    """A world whose changes go into a ring, and are kept here as well."""

    def __init__(self, bytes_max: int = feeds.RING_BYTES) -> None:
        super().__init__()
        self.ring = ChangeRing(bytes_max)
        self.ring.start(0)
        self.all: list[ChangeRecord] = []

    def apply(self, *arguments: int | bytes, **named: Identities) -> Outcome:  # type: ignore[override]
        outcome = super().apply(*arguments, **named)  # type: ignore[arg-type]
        if outcome.changes:
            self.ring.record(outcome.changes)
            wire = b"".join(map(feeds.encode_change, outcome.changes))
            self.all += decoded(wire)
        return outcome

    def feed(self, path: bytes, watcher: Watcher | None = None, number: int = 1) -> Feed:
        return self.ring.open(watcher or Sleeper(), number, path, self.machine.zxid)

    def pull(
        self, feed: Feed, since: int, limit: int = LIMIT, who: Identities = NOBODY
    ) -> tuple[list[ChangeRecord], int, bool]:
        page = self.ring.read(feed, since, self.machine.zxid, who, limit)
        return decoded(b"".join(page.wires)), page.until, page.has_more

    def seen(self, path: bytes, since: int = 0, who: Identities = NOBODY) -> list[str]:
        feed = self.feed(path)
        found, until, has_more = self.pull(feed, since, who=who)
        assert (until, has_more) == (max(since, self.machine.zxid), False)
        self.ring.close(feed)
        return list(map(shown, found))


def decoded(wire: bytes) -> list[ChangeRecord]:
    reader, found = Reader(wire), []
    while reader.position < len(wire):
        found.append(read_change(reader))
    return found


def shown(change: ChangeRecord) -> str:
    kind = {changes.CREATED: "+", changes.DELETED: "-", changes.DATA: "=", changes.ACL: "?"}
    return f"{kind[change.kind]}{change.path.decode()}"


@pytest.fixture
def world() -> RecordedWorld:
    return RecordedWorld()


@pytest.fixture
def bob(world: RecordedWorld) -> Connection:
    return world.open()


def test_every_kind_of_change_is_shown_in_order_with_data_and_stat(
    world: RecordedWorld, bob: Connection
) -> None:
    bob.create(b"/a", b"1")
    bob.set(b"/a", b"2")
    stat = world.stat(b"/a")
    bob.set_acl(b"/a", OPEN)
    bob.delete(b"/a")
    found, _, _ = world.pull(world.feed(b"/a"), 0)
    assert list(map(shown, found)) == ["+/a", "=/a", "?/a", "-/a"]
    assert [change.zxid for change in found] == [2, 3, 4, 5]
    assert [change.data for change in found] == [b"1", b"2", b"2", None]
    assert found[1].stat == stat
    assert found[2].stat is not None
    assert found[2].stat.aversion == 1
    assert found[3].stat is None


def test_a_feed_shows_its_path_and_what_is_below_and_nothing_beside_it(
    world: RecordedWorld, bob: Connection
) -> None:
    for path in (b"/a", b"/a/b", b"/ab", b"/a/b/c", b"/c"):
        bob.create(path)
    assert world.seen(b"/a") == ["+/a", "+/a/b", "+/a/b/c"]
    assert world.seen(b"/a/b/c") == ["+/a/b/c"]
    assert world.seen(b"/") == ["+/a", "+/a/b", "+/ab", "+/a/b/c", "+/c"]
    bob.set(b"/", b"root")
    assert world.seen(b"/", 6) == ["=/"]
    assert world.seen(b"/a", 6) == []


def test_a_feed_at_a_path_gets_what_is_recorded_while_it_is_there(
    world: RecordedWorld, bob: Connection
) -> None:
    bob.create(b"/a")
    feed, root = world.feed(b"/a"), world.feed(b"/", number=2)
    bob.create(b"/a/b")
    bob.create(b"/c")
    assert list(map(shown, world.pull(feed, 2)[0])) == ["+/a/b"]
    # The older one was not filed yet.
    assert list(map(shown, world.pull(feed, 0)[0])) == ["+/a", "+/a/b"]
    assert list(map(shown, world.pull(root, 1)[0])) == ["+/a", "+/a/b", "+/c"]


def test_a_transaction_is_one_step_and_shows_what_it_has_left(
    world: RecordedWorld, bob: Connection
) -> None:
    outcome = bob.multi(
        (opcodes.CREATE, CreateRequest(b"/a", b"1", OPEN, 0)),
        (opcodes.SET_DATA, SetDataRequest(b"/a", b"2", -1)),
        (opcodes.CREATE, CreateRequest(b"/b", b"", OPEN, 0)),
        (opcodes.DELETE, VersionRequest(b"/b", -1)),
    )
    assert outcome.error == OK
    found, until, _ = world.pull(world.feed(b"/"), 0)
    assert list(map(shown, found)) == ["+/a", "=/a", "+/b", "-/b"]
    assert {change.zxid for change in found} == {until} == {2}
    assert [change.is_last for change in found] == [False, False, False, True]
    assert [change.data for change in found[:2]] == [b"2", b"2"]


def test_a_refused_transaction_changes_nothing(world: RecordedWorld, bob: Connection) -> None:
    bob.multi(
        (opcodes.CREATE, CreateRequest(b"/a", b"1", OPEN, 0)),
        (opcodes.DELETE, VersionRequest(b"/nothing", -1)),
    )
    assert world.seen(b"/") == []


def test_a_reply_ends_with_a_transaction_and_a_larger_one_comes_alone(
    world: RecordedWorld, bob: Connection
) -> None:
    bob.create(b"/a", b"x" * 100)
    bob.multi(*[(opcodes.CREATE, CreateRequest(b"/a/%d" % n, b"x" * 100, OPEN, 0)) for n in (1, 2)])
    bob.create(b"/b", b"x" * 100)
    replies = []
    since = 0
    has_more = True
    feed = world.feed(b"/")
    while has_more:
        found, until, has_more = world.pull(feed, since, 300)
        replies.append(list(map(shown, found)))
        assert until == found[-1].zxid
        since = until
    assert replies == [["+/a"], ["+/a/1", "+/a/2"], ["+/b"]]


def test_what_may_not_be_read_is_not_shown_and_is_passed(
    world: RecordedWorld, bob: Connection
) -> None:
    bob.be(BOB)
    bob.create(b"/open")
    bob.create(b"/his", acls=BOB_ALONE)
    bob.set(b"/his", b"secret")
    bob.set_acl(b"/open", BOB_ALONE)
    bob.set_acl(b"/his", OPEN)
    bob.delete(b"/open")
    assert world.seen(b"/") == ["+/open", "?/his"]
    everything = ["+/open", "+/his", "=/his", "?/open", "?/his", "-/open"]
    assert world.seen(b"/", who=bob.identities) == everything
    superuser = Identities((Identity("super", ""),))
    assert world.seen(b"/", who=superuser) == everything


def test_what_is_not_shown_does_not_hold_a_pull_for_long(
    world: RecordedWorld, bob: Connection
) -> None:
    world.ring = ChangeRing(looked_max=10)
    world.ring.start(0)
    for number in range(25):
        bob.create(b"/%d" % number, acls=NOT_READ)
    feed, since, pulls, has_more = world.feed(b"/"), 0, 0, True
    while has_more:
        found, until, has_more = world.pull(feed, since)
        assert not found
        assert until > since
        since = until
        pulls += 1
    assert (pulls, since) == (3, world.machine.zxid)


def test_a_feed_that_waits_is_woken_once_by_what_it_may_see(
    world: RecordedWorld, bob: Connection
) -> None:
    sleeper = Sleeper()
    world.ring.wait(world.feed(b"/a", sleeper, 7))
    bob.create(b"/b")
    bob.create(b"/a", acls=NOT_READ)
    assert sleeper.woken == []
    bob.create(b"/a/c")
    bob.create(b"/a/d")
    assert sleeper.woken == [(7, 4)]


def test_a_feed_that_is_closed_is_not_woken(world: RecordedWorld, bob: Connection) -> None:
    sleeper = Sleeper()
    one, other = world.feed(b"/", sleeper, 1), world.feed(b"/", sleeper, 2)
    world.ring.wait(one)
    world.ring.wait(other)
    world.ring.close(one)
    bob.create(b"/a")
    assert sleeper.woken == [(2, 2)]
    world.ring.close(other)
    bob.create(b"/b")
    assert world.seen(b"/", 2) == ["+/b"]


def test_the_ring_drops_whole_transactions_and_says_from_where_it_has_all() -> None:
    world = RecordedWorld(20_000)
    bob = world.open()
    feed = world.feed(b"/")
    for number in range(300):
        steps = [(b"/%d-%d" % (number, step), b"x" * 50) for step in range(3)]
        bob.multi(*[(opcodes.CREATE, CreateRequest(path, data, OPEN, 0)) for path, data in steps])
        assert world.ring.size <= 20_000
    floor = int(world.ring.floor)
    assert 0 < floor < world.machine.zxid
    expected = [change for change in world.all if change.zxid > floor]
    # What the ring has dropped, no topic keeps.
    assert len(expected) <= len(feed.topic.line) < len(expected) + 3
    for reader in (feed, world.feed(b"/", number=2)):
        found, _, _ = world.pull(reader, floor)
        assert list(map(shown, found)) == list(map(shown, expected))
        assert len(expected) % 3 == 0


def test_a_transaction_larger_than_the_ring_is_kept_until_the_next() -> None:
    world = RecordedWorld(1_000)
    bob = world.open()
    bob.create(b"/a")
    steps = [(opcodes.CREATE, CreateRequest(b"/%d" % n, b"x", OPEN, 0)) for n in range(20)]
    bob.multi(*steps)
    assert world.ring.floor == 2
    assert len(world.seen(b"/", 2)) == 20
    bob.create(b"/b")
    assert world.ring.floor == 3
    assert world.seen(b"/", 3) == ["+/b"]


def test_a_feed_that_waits_for_long_learns_of_a_later_zxid() -> None:
    world = RecordedWorld(20_000)
    bob = world.open()
    sleeper = Sleeper()
    world.ring.wait(world.feed(b"/quiet", sleeper))
    while not sleeper.woken:
        bob.create(b"/%d" % world.machine.zxid, b"x" * 100)
        assert world.machine.zxid < 1000
    # In time: the ring still has all since it came to wait.
    assert world.ring.floor < 2
    assert sleeper.woken == [(1, world.machine.zxid)]


def test_after_a_reset_it_has_what_comes_behind(world: RecordedWorld, bob: Connection) -> None:
    sleeper = Sleeper()
    feed, waiting = world.feed(b"/"), world.feed(b"/c", sleeper)
    world.ring.wait(waiting)
    bob.create(b"/a")
    world.ring.reset(world.machine.zxid)
    assert sleeper.woken == [(1, 2)]
    bob.create(b"/b")
    assert (world.ring.floor, world.ring.size > 0) == (2, True)
    assert list(map(shown, world.pull(feed, 2)[0])) == ["+/b"]


def test_a_topic_covers_whole_segments() -> None:
    assert [Topic(b"/a", 0).covers(path) for path in (b"/a", b"/a/b", b"/ab", b"/b", b"/")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert Topic(b"/", 0).covers(b"/x")


@pytest.mark.parametrize("seed", range(20))
def test_any_feed_agrees_with_everything_that_has_happened(seed: int) -> None:
    """Feeds come and go, pull when they like, and see what was to be seen, each once."""
    random = Random(seed)
    world = RecordedWorld(random.choice([3_000, 10_000, LIMIT]))
    bob = world.open()
    names = [b"/a", b"/a/b", b"/a/b/c", b"/ab", b"/d"]
    followed: dict[Feed, tuple[int, int, list[str]]] = {}
    for number in range(300):
        path = random.choice(names)
        match random.randrange(8):
            case 0 | 1 | 2:
                bob.create(path, b"x" * random.randrange(200))
            case 3 | 4:
                bob.set(path, b"y" * random.randrange(200))
            case 5:
                bob.delete(path)
            case 6:
                floor = max(int(world.ring.floor), world.machine.zxid - random.randrange(30))
                feed = world.feed(random.choice([*names, b"/"]), number=number)
                followed[feed] = (floor, floor, [])
            case 7 if followed:
                feed = random.choice(list(followed))
                begin, since, found = followed.pop(feed)
                if since >= world.ring.floor:
                    page, until, _ = world.pull(feed, since, random.choice([100, 500, LIMIT]))
                    found += map(shown, page)
                    followed[feed] = (begin, until, found)
                    expected = [
                        shown(change)
                        for change in world.all
                        if begin < change.zxid <= until and feed.topic.covers(change.path)
                    ]
                    assert found == expected
                if random.random() < 0.2:
                    followed.pop(feed, None)
                if feed not in followed:
                    world.ring.close(feed)


def test_a_folded_feed_is_the_state(world: RecordedWorld, bob: Connection) -> None:
    random = Random(1)
    for _ in range(200):
        path = random.choice([b"/a", b"/a/b", b"/a/c", b"/d"])
        match random.randrange(4):
            case 0:
                bob.create(path)
            case 1:
                bob.set(path, random.randbytes(3))
            case 2:
                bob.delete(path)
            case 3:
                bob.set_acl(path, OPEN)
    folded: dict[bytes, tuple[bytes | None, Stat]] = {}
    for change in world.pull(world.feed(b"/"), 0)[0]:
        if change.stat is None:
            del folded[change.path]
        else:
            folded[change.path] = change.data, change.stat
    there = {path for path in world.machine.tree.nodes if path[:10] != b"/zookeeper" and path[1:]}
    assert folded.keys() == there
    for path, (data, stat) in folded.items():
        now = world.stat(path)
        assert data == world.machine.tree.nodes[path].data
        # What a child has made of its parent is no change of the parent.
        assert stat._replace(cversion=0, num_children=0, pzxid=0) == now._replace(
            cversion=0, num_children=0, pzxid=0
        )


def test_a_node_without_data_is_not_one_with_empty_data(
    world: RecordedWorld, bob: Connection
) -> None:
    bob.create(b"/a", None)
    bob.create(b"/b", b"")
    assert [change.data for change in world.all] == [None, b""]
