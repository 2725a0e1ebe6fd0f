"""The messages of etcd; `tests/integration/test_etcd_store.py` asks a real one."""

from collections.abc import Callable

import pytest

from paddock.log.etcd import messages
from paddock.log.etcd.messages import MessageError
from paddock.log.etcd.store import Guard, Page, Range, Read, Stored
from tests.unit.log.etcd import responses

KEY = b"/paddock/shop/log/0001020304050607/0000000000000001"


def test_an_append_puts_the_head_and_the_batch_if_the_batch_has_no_version() -> None:
    request = messages.append_request(b"/h", b"b/1", b"/h/b/1", b"x" * 300)
    assert request == (
        # Compare: key, and the version 0.
        b"\x0a\x0a\x1a\x06/h/b/1\x20\x00"
        # Then put the head.
        b"\x12\x0b\x12\x09\x0a\x02/h\x12\x03b/1"
        # Then put the batch; three sizes of two bytes.
        b"\x12\xba\x02\x12\xb7\x02\x0a\x06/h/b/1\x12\xac\x02" + b"x" * 300
    )


def test_a_swap_compares_revisions() -> None:
    request = messages.swap_request(b"/k", b"v", [Guard(b"/k", 0), Guard(b"/g", 300)])
    assert request == (
        b"\x0a\x08\x10\x02\x1a\x02/k\x30\x00"
        b"\x0a\x09\x10\x02\x1a\x02/g\x30\xac\x02"
        b"\x12\x09\x12\x07\x0a\x02/k\x12\x01v"
    )


def test_a_deletion_has_ranges_and_single_keys() -> None:
    request = messages.delete_request([Range(b"/a", b"/b"), Range(b"/c")], [Guard(b"/g", 1)])
    assert request == (
        b"\x0a\x08\x10\x02\x1a\x02/g\x30\x01"
        b"\x12\x0a\x1a\x08\x0a\x02/a\x12\x02/b"
        b"\x12\x06\x1a\x04\x0a\x02/c"
    )


def test_a_deletion_compares_what_its_ranges_hold_with_the_revision_behind_the_last_allowed() -> (
    None
):
    request = messages.delete_request([Range(b"/a", b"/b"), Range(b"/c")], [], 299)
    assert request == (
        # Less than the revision 300, for all keys up to the end of a range.
        b"\x0a\x10\x08\x02\x10\x02\x1a\x02/a\x30\xac\x02\x82\x04\x02/b"
        b"\x0a\x0b\x08\x02\x10\x02\x1a\x02/c\x30\xac\x02"
        b"\x12\x0a\x1a\x08\x0a\x02/a\x12\x02/b"
        b"\x12\x06\x1a\x04\x0a\x02/c"
    )


def test_a_read_is_a_transaction_of_ranges() -> None:
    assert messages.read_request([b"/a", b"/b"]) == (
        b"\x12\x06\x0a\x04\x0a\x02/a\x12\x06\x0a\x04\x0a\x02/b"
    )


def test_a_range_has_a_limit_and_a_revision_if_asked_for() -> None:
    assert messages.range_request(Range(b"/a", b"/b"), 0, 0) == b"\x0a\x02/a\x12\x02/b"
    assert messages.range_request(Range(b"/a"), 5, 200) == b"\x0a\x02/a\x18\xc8\x01\x20\x05"


def test_a_watch_wants_fragments_and_no_deletes() -> None:
    assert messages.watch_request(Range(b"/a", b"/b"), 130) == (
        b"\x0a\x10\x0a\x02/a\x12\x02/b\x18\x82\x01\x2a\x01\x01\x40\x01"
    )


def test_a_compaction_and_an_authentication() -> None:
    assert messages.compact_request(300) == b"\x08\xac\x02"
    assert messages.authenticate_request("ann", "ü") == b"\x0a\x03ann\x12\x02\xc3\xbc"


def test_a_transaction_succeeds_if_it_says_so() -> None:
    yes = responses.transaction(12, succeeded=True, responses=[responses.content(2, b"")])
    no = responses.transaction(12, succeeded=False)
    assert messages.succeeded(yes)
    assert not messages.succeeded(no)
    assert messages.revision_if_succeeded(yes) == 12
    assert messages.revision_if_succeeded(no) == 0


def test_a_read_finds_each_key_or_none() -> None:
    found = responses.page([responses.item(b"/a", b"1", 8, 3)], 9)
    response = responses.transaction(
        9,
        succeeded=True,
        responses=[responses.content(1, found), responses.content(1, responses.header(9))],
    )
    assert messages.parse_read(response) == Read(9, (Stored(b"/a", b"1", 8, 3), None))


def test_a_page_says_whether_there_is_more() -> None:
    items = [responses.item(b"/a", b"", 8, 3), responses.item(b"/b", b"y" * 200, 1 << 40, 1)]
    stored = (Stored(b"/a", b"", 8, 3), Stored(b"/b", b"y" * 200, 1 << 40, 1))
    assert messages.parse_page(responses.page(items, 9)) == Page(9, stored, has_more=False)
    more = messages.parse_page(responses.page(items, 9, has_more=True))
    assert more.has_more


def test_a_watch_tells_puts_and_leaves_out_deletes() -> None:
    large = bytes(range(256)) * 4096
    response = responses.watch(
        responses.put_event(b"/a", b"1", 300, 2),
        responses.delete_event(b"/a", 301),
        responses.put_event(b"/b", large, 302, 1),
        responses.put_event(b"/c", b"", 302, 1),
    )
    found = messages.parse_watch(response)
    assert found.puts == [(b"/a", 300, 2, b"1"), (b"/b", 302, 1, large), (b"/c", 302, 1, b"")]
    assert not found.is_created
    assert not found.is_canceled


def test_a_watch_tells_that_it_was_created_or_canceled() -> None:
    assert messages.parse_watch(responses.created()).is_created
    found = messages.parse_watch(responses.canceled("compacted", 1 << 33))
    assert found.is_canceled
    assert found.compact_revision == 1 << 33
    assert found.cancel_reason == "compacted"


def test_a_status_names_the_alarm_of_a_full_database() -> None:
    response = responses.header(5) + responses.content(2, b"3.4.23") + responses.number(3, 4096)
    response += responses.number(9, 1024)
    status = messages.parse_status(response, "h:1")
    assert (status.version, status.revision, status.endpoint) == ("3.4.23", 5, "h:1")
    assert (status.database_bytes, status.used_bytes, status.quota_bytes) == (4096, 1024, 0)
    assert not status.is_full
    alarms = responses.content(8, b"etcdserver: no leader")
    alarms += responses.content(8, b"memberID:9 alarm:NOSPACE ") + responses.number(12, 8 << 30)
    full = messages.parse_status(response + alarms, "h:1")
    assert full.is_full
    assert full.quota_bytes == 8 << 30


def test_an_authentication_without_a_token_is_an_error() -> None:
    assert messages.parse_token(responses.header(1) + responses.content(2, b"abc.1")) == "abc.1"
    with pytest.raises(MessageError):
        messages.parse_token(responses.header(1))


# Fields of all kinds that nobody knows: a number, 8 bytes, some bytes, 4 bytes.
UNKNOWN = responses.number(99, 1 << 60) + b"\xf9\x06" + bytes(8) + responses.content(99, b"?")
UNKNOWN += b"\xfd\x06" + bytes(4)


def test_unknown_fields_are_skipped_everywhere() -> None:
    key = responses.item(b"/a", b"1", 300, 2)
    event = responses.content(11, UNKNOWN + responses.content(2, key + UNKNOWN) + UNKNOWN)
    found = messages.parse_watch(UNKNOWN + event + UNKNOWN)
    assert found.puts == [(b"/a", 300, 2, b"1")]
    page = messages.parse_page(UNKNOWN + responses.page([UNKNOWN + key], 9) + UNKNOWN)
    assert page == Page(9, (Stored(b"/a", b"1", 300, 2),), has_more=False)


@pytest.mark.parametrize("parse", [messages.parse_page, messages.parse_watch])
@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x00",  # a field without a number
        b"\x0b",  # a group
        b"\x0f",  # no kind at all
        b"\x0a",  # no size
        b"\x0a\x05abc",  # too short
        b"\x08",  # no number
        b"\x08" + b"\xff" * 10 + b"\x01",  # a number that is too long
        b"\x09\x00",  # not 8 bytes
    ],
)
def test_garbage_is_a_clear_error(parse: Callable[[bytes], object], garbage: bytes) -> None:
    with pytest.raises(MessageError, match="message of etcd's"):
        parse(garbage)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x0a\x09/",  # a key that is longer than what it is in
        b"\x2a\xff\x01/",  # a value that is
        b"\x18\xff",  # a revision without an end
        b"\x20",  # no version
        b"\x30\xff",  # an unknown number without an end
    ],
)
def test_a_nested_message_that_is_too_short_does_not_read_what_follows(garbage: bytes) -> None:
    follows = b"\x18\x01" * 200
    with pytest.raises(MessageError, match="message of etcd's"):
        messages.parse_page(responses.content(2, garbage) + follows)
    with pytest.raises(MessageError, match="message of etcd's"):
        messages.parse_watch(responses.content(11, responses.content(2, garbage)) + follows)
    with pytest.raises(MessageError, match="message of etcd's"):
        messages.parse_watch(responses.content(11, b"\x12\x04\x18\x01") + follows)


def test_an_event_that_is_cut_anywhere_is_an_error() -> None:
    # The value stands last: nothing behind it is missed when it is cut.
    key = responses.number(3, 300) + responses.content(1, KEY) + responses.content(5, b"x" * 200)
    message = responses.content(11, responses.content(2, key))
    assert messages.parse_watch(message).puts == [(KEY, 300, 0, b"x" * 200)]
    for size in range(1, len(message)):
        with pytest.raises(MessageError):
            messages.parse_watch(message[:size])


def test_a_page_that_is_cut_has_whole_items_or_none() -> None:
    message = responses.page([responses.item(KEY, b"x" * 200, 300, 2)], 9)
    whole = messages.parse_page(message)
    for size in range(len(message)):
        try:
            found = messages.parse_page(message[:size])
        except MessageError:
            continue
        # It was cut between two fields.
        assert found.items in ((), whole.items)
