"""The key space of the model: revisions, versions, history, compaction, space."""

from __future__ import annotations

import pytest

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import (
    CompactedError,
    Guard,
    Page,
    Range,
    Stored,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)
from paddock.log.interface import Record
from paddock.testing.simulation.key_space import REQUEST_BYTES_MAX, KeySpace

KEYS = Keys("test")
BOOT = b"12345678"
ALL = Range(b"\0", b"\xff")


def page(space: KeySpace, wanted: Range = ALL, revision: int = 0, limit: int = 0) -> Page:
    return space.page(wanted, revision, limit, 1 << 30)


def test_an_append_counts_the_head_up_and_happens_once() -> None:
    space = KeySpace()
    assert space.append(KEYS, BOOT, 0, b"a") == Record(1, b"a", BOOT, 0, 2)
    assert space.append(KEYS, BOOT, 1, b"b") == Record(2, b"b", BOOT, 1, 3)
    assert space.append(KEYS, BOOT, 0, b"again") is None
    assert space.revision == 3
    head, batch = space.read([KEYS.head, KEYS.batch(BOOT, 0)]).found
    assert head == Stored(KEYS.head, b"%s/%016x" % (BOOT.hex().encode(), 1), 3, 2)
    assert batch == Stored(KEYS.batch(BOOT, 0), b"a", 2, 1)


def test_a_swap_depends_on_the_revision_and_on_its_guard() -> None:
    space = KeySpace()
    assert space.swap(b"k", b"1", 7, None) == 0
    assert space.swap(b"k", b"1", 0, None) == 2
    assert space.swap(b"k", b"2", 0, None) == 0
    assert space.swap(b"k", b"2", 2, Guard(b"g", 0)) == 3
    assert space.swap(b"k", b"3", 3, Guard(b"g", 9)) == 0
    assert space.get(b"k") == Stored(b"k", b"2", 3, 2)
    assert space.revision == 3


def test_a_deletion_is_one_revision_and_ends_the_version() -> None:
    space = KeySpace()
    for key in (b"a", b"b", b"c"):
        space.swap(key, b"", 0, None)
    space.swap(b"b", b"2", 3, None)
    assert space.delete([Range(b"a", b"c"), Range(b"c")], Guard(b"a", 1), 0) == 0
    assert space.delete([Range(b"a", b"c"), Range(b"b")], None, 4) == 0
    assert space.delete([Range(b"a", b"c"), Range(b"b")], Guard(b"a", 2), 5) == 6
    assert [one.key for one in page(space).items] == [b"c"]
    # Nothing to delete: no revision.
    assert space.delete([Range(b"a", b"c")], None, 0) == 6
    assert space.swap(b"b", b"", 0, None) == 7
    assert space.get(b"b") == Stored(b"b", b"", 7, 1)
    with pytest.raises(StoreForbiddenError):
        space.delete([Range(b"a")] * 129, None, 0)


def test_old_revisions_are_read_until_they_are_compacted() -> None:
    space = KeySpace()
    for value in (b"1", b"2", b"3"):
        now = space.get(b"k")
        space.swap(b"k", value, 0 if now is None else now.mod_revision, None)
    space.delete([Range(b"k")], None, 0)
    assert [[one.value for one in page(space, revision=at).items] for at in range(1, 6)] == [
        [],
        [b"1"],
        [b"2"],
        [b"3"],
        [],
    ]
    space.compact(3)
    space.compact(2)
    with pytest.raises(CompactedError):
        page(space, revision=2)
    assert page(space, revision=3).items[0].value == b"2"
    assert page(space, revision=4).items[0].value == b"3"
    for future in (lambda: page(space, revision=6), lambda: space.compact(6)):
        with pytest.raises(StoreError, match="future"):
            future()
    space.compact(5)
    assert (page(space, revision=5).items, space.used_bytes) == ((), 0)


def test_a_page_ends_at_its_limit_or_its_size() -> None:
    space = KeySpace()
    for number in range(6):
        space.swap(b"%d" % number, bytes(100), 0, None)
    first = page(space, limit=4)
    assert ([one.key for one in first.items], first.has_more) == ([b"0", b"1", b"2", b"3"], True)
    rest = page(space, Range(b"3\0", b"9"), limit=2)
    assert ([one.key for one in rest.items], rest.has_more) == ([b"4", b"5"], False)
    small = space.page(ALL, 0, 0, 150)
    assert (len(small.items), small.has_more) == (2, True)
    assert page(space, Range(b"2")).items == first.items[2:3]
    assert page(space, Range(b"9")).items == ()


def test_the_watch_shows_puts_of_the_history_that_is_left() -> None:
    space = KeySpace()
    for number in range(5):
        space.append(KEYS, BOOT, number, b"")
    space.delete([Range(KEYS.batch(BOOT, 3))], None, 0)
    assert [one.revision for one in space.appended(KEYS, 0)] == [2, 3, 4, 5, 6]
    assert space.appended(KEYS, 100) == []
    space.compact(4)
    with pytest.raises(CompactedError, match="4"):
        space.appended(KEYS, 2)
    assert [one.index for one in space.appended(KEYS, 3)] == [3, 4, 5]


def test_a_full_space_takes_deletions_alone() -> None:
    space = KeySpace(quota_bytes=3000)
    for number in range(8):
        space.append(KEYS, BOOT, number, bytes(100))

    # A function, because mypy takes an attribute that was asserted for settled.
    def is_full() -> bool:
        return space.is_full

    assert not is_full()
    with pytest.raises(StoreFullError):
        space.append(KEYS, BOOT, 8, bytes(1000))
    assert is_full()
    # What is there already is refused just as well: etcd looks at the size first.
    with pytest.raises(StoreFullError):
        space.append(KEYS, BOOT, 0, bytes(100))
    assert space.delete([Range(KEYS.batches, KEYS.batches_end)], None, 0)
    space.compact(space.revision)
    assert space.used_bytes < space.database_bytes
    with pytest.raises(StoreFullError):
        space.swap(b"k", b"", 0, None)
    space.defragment()
    space.disarm()
    assert space.swap(b"k", b"", 0, None)


def test_a_write_that_crosses_the_quota_is_carried_out_before_the_alarm() -> None:
    space = KeySpace(quota_bytes=1000)
    space.crosses_quota = True
    assert space.append(KEYS, BOOT, 0, bytes(1000)) is not None
    assert (space.is_alarm_due, space.is_full) == (True, False)
    space.crosses_quota = False
    with pytest.raises(StoreFullError):
        space.append(KEYS, BOOT, 1, b"")
    assert space.get(KEYS.batch(BOOT, 1)) is None


def test_what_is_too_large_is_refused_for_good() -> None:
    space = KeySpace()
    with pytest.raises(StoreForbiddenError):
        space.append(KEYS, BOOT, 0, bytes(REQUEST_BYTES_MAX))
    assert space.revision == 1


def test_a_backup_is_independent() -> None:
    space = KeySpace()
    space.append(KEYS, BOOT, 0, b"")
    backup = space.copy()
    space.append(KEYS, BOOT, 1, b"")
    space.compact(3)
    assert (backup.revision, backup.compacted) == (2, 0)
    assert len(backup.appended(KEYS, 0)) == 1
    backup.append(KEYS, BOOT, 7, b"")
    assert space.get(KEYS.batch(BOOT, 7)) is None


def test_a_backup_holds_the_alarm() -> None:
    space = KeySpace(quota_bytes=1000)
    with pytest.raises(StoreFullError):
        space.append(KEYS, BOOT, 0, bytes(1000))
    backup = space.copy()
    space.disarm()
    with pytest.raises(StoreFullError):
        backup.append(KEYS, BOOT, 0, b"")


def test_spaces_of_equal_content_answer_alike() -> None:
    one, two = KeySpace(), KeySpace()
    for space in (one, two):
        space.append(KEYS, BOOT, 0, b"")
    assert one.content() == two.content() == one.copy().content()
    for change in (
        lambda: one.append(KEYS, BOOT, 1, b""),
        lambda: one.delete([Range(KEYS.head)], None, 0),
        lambda: one.compact(3),
        lambda: setattr(one, "is_full", True),
    ):
        before = one.content()
        change()
        assert one.content() != before
