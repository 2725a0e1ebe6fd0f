"""Hand-written histories: correct ones pass, and for each rule wrong ones are found."""

import pytest

from paddock.errors import NO_NODE, NODE_EXISTS, SESSION_EXPIRED, SESSION_MOVED, SYSTEM_ERROR
from paddock.protocol import opcodes
from paddock.protocol.acl import OPEN
from paddock.protocol.replies import Create2Response
from paddock.protocol.requests import CreateRequest, PathRequest
from paddock.testing.simulation import history as h
from paddock.testing.simulation.history import Logged
from paddock.testing.simulation.judge import judge
from tests.unit.testing.simulation.written import Written, data, stat

CREATED, DELETED, CHANGED = 1, 2, 3


@pytest.fixture
def written() -> Written:
    return Written()


def test_a_correct_history_breaks_no_rule(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    other = written.connect("c2", 2, opened=2)
    written.reply(written.create(one, "/a"), 3)
    written.reply(written.create(one, "/a"), 4, error=NODE_EXISTS)
    written.reply(written.get(other, "/a", watch=True), 4, data(b"", stat(3)))
    change = written.set_data(one, "/a", b"new")
    written.event(other, CHANGED, "/a", 5)
    written.reply(change, 5, stat(3, 5, version=1, size=3))
    written.reply(written.get(other, "/a"), 5, data(b"new", stat(3, 5, version=1, size=3)))
    assert written.judge().is_good, written.judge().report()
    assert written.judge().report() == "the history breaks no rule"


def test_a_report_shows_the_lines_that_it_rests_on(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    written.reply(written.get(one, "/a"), 2, data(b"other", stat(2, size=5)))
    report = written.judge().report()
    assert "replies: get at 0x2 was answered with" in report
    assert "reply get /a: 0x2 b'other' version 0" in report
    assert "create /a" not in report


# Outcomes.


def test_a_reply_to_nothing_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    asked = written.create(one, "/a")
    written.reply(asked, 2)
    written.reply(asked, 2, log=False)
    assert written.rules() == {"outcomes"}


def test_replies_out_of_turn_are_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    first, second = written.exists(one, "/a"), written.exists(one, "/b")
    written.reply(second, 1, error=NO_NODE)
    written.reply(first, 1, error=NO_NODE)
    assert written.rules() == {"outcomes"}


def test_a_ping_may_overtake(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    write, ping = written.create(one, "/a"), written.ask(one, opcodes.PING)
    written.reply(ping, 1)
    written.reply(write, 2)
    assert written.rules() == set()


def test_a_call_without_an_outcome_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.exists(one, "/a")
    assert written.rules() == set(), "it may be on its way"
    written.at += 11
    written.connect("c2", 2, opened=2)
    assert written.rules() == {"outcomes"}
    written.lose(one)
    assert written.rules() == set()


def test_two_writes_with_one_zxid_are_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    written.reply(written.create(one, "/b"), 2, log=False)
    assert "outcomes" in written.rules()


def test_an_acknowledged_write_that_is_not_in_the_log_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2, log=False)
    assert written.rules() == {"outcomes"}


def test_an_acknowledged_write_that_the_log_has_refused_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    created = written.create(one, "/a")
    written.reply(created, 2, log=False)
    written.logged(created, 2, NODE_EXISTS)
    assert written.rules() == {"outcomes"}


def test_a_write_of_which_the_reply_is_lost_takes_effect_once_or_never(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    lost = written.create(one, "/a")
    written.lose(one)
    again = written.connect("c1", 1, seen=1)
    reading = written.exists(again, "/a")
    written.reply(reading, 1, error=NO_NODE)
    assert written.rules() == set()
    written.logged(lost, 2)
    assert written.rules() == {"own order"}, "it was late, and should have been refused"


def test_a_late_write_that_was_refused_has_no_effect(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    lost = written.create(one, "/a")
    written.lose(one)
    again = written.connect("c1", 1, seen=1)
    written.reply(written.exists(again, "/a"), 1, error=NO_NODE)
    written.logged(lost, 2, SESSION_MOVED)
    written.reply(written.exists(again, "/a"), 2, error=NO_NODE)
    assert written.rules() == set()


def test_a_late_write_of_a_session_that_is_over_has_no_effect(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    lost = written.create(one, "/a")
    written.lose(one)
    again = written.connect("c1", 1, seen=1)
    closing = written.ask(again, opcodes.CLOSE_SESSION)
    written.reply(closing, 2)
    written.logged(lost, 3, SESSION_EXPIRED)
    other = written.connect("c2", 2, opened=4)
    written.reply(written.exists(other, "/a"), 4, error=NO_NODE)
    assert written.rules() == set()


def test_a_late_write_that_is_refused_for_a_living_session_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    lost = written.create(one, "/a")
    written.lose(one)
    written.logged(lost, 2, SESSION_EXPIRED)
    assert written.rules() == {"outcomes"}


def test_a_lost_write_that_took_effect_is_seen(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    lost = written.create(one, "/a")
    written.lose(one)
    written.logged(lost, 2)
    other = written.connect("c2", 2, opened=3)
    written.reply(written.exists(other, "/a"), 3, stat(2))
    assert written.rules() == set()
    written.reply(written.exists(other, "/a"), 3, error=NO_NODE)
    assert written.rules() == {"replies"}


def test_a_write_that_takes_effect_twice_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    lost = written.create(one, "/a", flags=2)
    written.lose(one)
    written.logged(lost, 2)
    written.logged(lost, 3)
    assert written.rules() == {"outcomes"}


def test_a_refused_write_that_took_effect_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    asked = written.create(one, "/a")
    written.reply(asked, 1, error=SYSTEM_ERROR, log=False)
    assert written.rules() == set()
    written.logged(asked, 2)
    assert written.rules() == {"outcomes"}


def test_a_write_that_nobody_asked_for_is_found(written: Written) -> None:
    written.connect("c1", 1, opened=1)
    written.log(Logged(2, h.CALL, 1, 77))
    assert written.rules() == {"outcomes"}


def test_a_zxid_that_nothing_has_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 3)
    assert written.rules() == {"outcomes"}


def test_a_write_that_is_sent_again_though_it_took_effect_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.set_data(one, "/", b"c1-1"), 2, stat(0, 2, version=1, size=4))
    # The same data, which another client has, or which is of no plan, is no repetition.
    other = written.connect("c2", 2, opened=3)
    written.reply(written.set_data(other, "/", b"c1-1"), 4, stat(0, 4, version=2, size=4))
    written.reply(written.set_data(one, "/", b"plain"), 5, stat(0, 5, version=3, size=5))
    written.reply(written.set_data(one, "/", b"plain"), 6, stat(0, 6, version=4, size=5))
    assert "once" not in written.rules()
    written.reply(written.set_data(one, "/", b"c1-1"), 7, stat(0, 7, version=5, size=4))
    assert "once" in written.rules()


# Real time.


def test_writes_against_real_time_are_found(written: Written) -> None:
    one, other = written.connect("c1", 1, opened=1), written.connect("c2", 2, opened=2)
    written.reply(written.create(one, "/a"), 4)
    written.reply(written.create(other, "/b"), 3)
    # The first one was seen before the second began, as well.
    assert written.rules() == {"real time"}


def test_writes_that_overlap_may_have_either_order(written: Written) -> None:
    one, other = written.connect("c1", 1, opened=1), written.connect("c2", 2, opened=2)
    first, second = written.create(one, "/a"), written.create(other, "/b")
    written.reply(first, 4)
    written.reply(second, 3)
    assert written.rules() == set()


def test_a_zxid_that_is_seen_before_its_write_began_is_found(written: Written) -> None:
    one, other = written.connect("c1", 1, opened=1), written.connect("c2", 2, opened=2)
    written.reply(written.exists(other, "/a"), 3, stat(3))
    written.reply(written.create(one, "/a"), 3)
    assert written.rules() == {"real time"}


def test_a_sync_that_is_behind_is_found(written: Written) -> None:
    one, other = written.connect("c1", 1, opened=1), written.connect("c2", 2, opened=2)
    written.reply(written.create(one, "/a"), 3)
    body = PathRequest(b"/")
    written.reply(written.ask(other, opcodes.SYNC, body), 3, body)
    assert written.rules() == set()
    last = written.connect("c3", 3, opened=4)
    written.reply(written.ask(last, opcodes.SYNC, body), 2, body)
    assert written.rules() == {"real time"}


# Own order.


def test_pipelined_writes_out_of_order_are_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    first, second = written.create(one, "/a"), written.create(one, "/b")
    written.reply(first, 3)
    written.reply(second, 2)
    assert written.rules() == {"own order"}


def test_a_zxid_that_goes_back_on_another_server_is_found(written: Written) -> None:
    one, other = written.connect("c1", 1, opened=1), written.connect("c2", 2, opened=2)
    written.reply(written.create(one, "/a"), 3)
    written.reply(written.exists(other, "/a"), 3, stat(3))
    written.lose(other)
    again = written.connect("c2", 2, server="s2", seen=3)
    written.reply(written.exists(again, "/a"), 2, error=NO_NODE)
    assert written.rules() == {"own order"}


def test_a_server_that_is_behind_what_a_client_says_it_saw_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    other = written.connect("c2", 2, opened=3, seen=2)
    written.reply(written.exists(other, "/a"), 1, error=NO_NODE)
    assert written.rules() == {"own order"}


def test_a_read_behind_ones_own_write_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    write, read = written.create(one, "/a"), written.exists(one, "/a")
    written.reply(write, 2)
    written.reply(read, 1, error=NO_NODE)
    assert written.rules() == {"own order"}


# Replies.


def test_a_stale_read_under_a_newer_zxid_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    written.reply(written.set_data(one, "/a", b"new"), 3, stat(2, 3, version=1, size=3))
    written.reply(written.get(one, "/a"), 3, data(b"", stat(2)))
    assert written.rules() == {"replies"}


def test_a_wrong_answer_to_a_write_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    written.reply(written.create(one, "/a"), 3)
    assert written.rules() == {"replies"}


def test_a_read_of_an_older_state_is_allowed_if_its_client_has_seen_no_newer_one(
    written: Written,
) -> None:
    one, other = written.connect("c1", 1, opened=1), written.connect("c2", 2, opened=2)
    written.reply(written.create(one, "/a"), 3)
    written.reply(written.exists(other, "/a"), 2, error=NO_NODE)
    assert written.rules() == set()


def test_one_zxid_with_two_times_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    written.reply(written.exists(one, "/a"), 2, stat(2))
    written.reply(written.exists(one, "/a"), 2, stat(2, times=7))
    assert written.rules() == {"replies"}


def test_time_that_goes_back_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    written.reply(written.create(one, "/b"), 3)
    written.reply(written.exists(one, "/a"), 3, stat(2, times=100))
    written.reply(written.exists(one, "/b"), 3, stat(3))
    assert written.rules() == {"replies"}


def test_a_node_that_is_reaped_for_no_reason_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 2)
    written.log(Logged(3, h.REAPED, path="/a"))
    assert written.rules() == {"replies"}


# Watches.


def watched(written: Written) -> tuple[int, int]:
    one, other = written.connect("c1", 1, opened=1), written.connect("c2", 2, opened=2)
    written.reply(written.create(one, "/a"), 3)
    written.reply(written.get(other, "/a", watch=True), 3, data(b"", stat(3)))
    written.reply(written.set_data(one, "/a", b"x"), 4, stat(3, 4, version=1, size=1))
    return one, other


def test_a_lost_event_is_found(written: Written) -> None:
    _, other = watched(written)
    assert written.rules() == set(), "it may be on its way"
    written.reply(written.exists(other, "/b"), 4, error=NO_NODE)
    assert written.rules() == {"watches"}


def test_an_event_after_the_reply_that_shows_the_change_is_found(written: Written) -> None:
    _, other = watched(written)
    written.reply(written.exists(other, "/b"), 4, error=NO_NODE)
    written.event(other, CHANGED, "/a", 4)
    assert written.rules() == {"watches"}


def test_an_event_that_comes_twice_is_found(written: Written) -> None:
    _, other = watched(written)
    written.event(other, CHANGED, "/a", 4)
    written.reply(written.exists(other, "/b"), 4, error=NO_NODE)
    assert written.rules() == set()
    written.event(other, CHANGED, "/a", 4)
    assert written.rules() == {"watches"}


def test_an_event_before_its_change_is_found(written: Written) -> None:
    one, other = written.connect("c1", 1, opened=1), written.connect("c2", 2, opened=2)
    written.reply(written.exists(other, "/a", watch=True), 2, error=NO_NODE)
    written.event(other, CREATED, "/a", 3)
    written.reply(written.create(one, "/a"), 3)
    assert written.rules() == {"real time"}


def test_an_event_of_another_kind_is_found(written: Written) -> None:
    _, other = watched(written)
    written.event(other, DELETED, "/a", 4)
    assert written.rules() == {"watches"}


def test_an_event_without_a_watch_is_found(written: Written) -> None:
    one, _ = watched(written)
    written.event(one, CHANGED, "/a", 4)
    assert written.rules() == {"watches"}


# Sessions.


def expired(written: Written, at: float) -> int:
    """Have a session with an ephemeral node and a timeout of 10 s expire."""
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/e", flags=1), 2)
    written.at = 20
    written.reply(written.ask(one, opcodes.PING), 2)
    written.log(Logged(3, h.EXPIRED, 1, at=at))
    return one


def test_a_session_that_expires_within_its_timeout_is_found(written: Written) -> None:
    expired(written, at=30.9)
    assert written.rules() == {"sessions"}


def test_a_session_may_expire_after_its_timeout(written: Written) -> None:
    expired(written, at=31.1)
    assert written.rules() == set()


def test_a_session_may_expire_earlier_by_a_fast_clock(written: Written) -> None:
    expired(written, at=30.5)
    assert judge(written.history, clock_rate_max=1.1).is_good


def test_an_early_expiry_shows_in_what_others_see(written: Written) -> None:
    other = written.connect("c2", 2, opened=1)
    one = written.connect("c1", 1, opened=2)
    written.reply(written.create(one, "/e", flags=1), 3)
    written.log(Logged(4, h.EXPIRED, 1))
    written.reply(written.exists(other, "/e"), 4, error=NO_NODE)
    assert written.rules() == {"sessions"}


def test_an_ephemeral_that_outlives_its_session_is_found(written: Written) -> None:
    expired(written, at=31.1)
    written.at = 40
    other = written.connect("c2", 2, opened=4)
    written.reply(written.exists(other, "/e"), 4, error=NO_NODE)
    assert written.rules() == set()
    written.reply(written.exists(other, "/e"), 4, stat(2, owner=1))
    assert written.rules() == {"replies"}


def test_an_ephemeral_that_is_gone_before_its_session_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/e", flags=1), 2)
    written.reply(written.exists(one, "/e"), 2, error=NO_NODE)
    assert written.rules() == {"replies"}


def test_a_session_that_is_said_to_be_over_and_lives_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.lose(one)
    written.grant(written.ask_session("c1", 1), 0)
    assert written.rules() == {"sessions"}


def test_a_session_that_is_said_to_be_over_before_its_end_is_found(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    other = written.connect("c2", 2, opened=2)
    written.lose(one)
    written.grant(written.ask_session("c1", 1), 0)
    written.at = 30
    written.reply(written.create(other, "/a"), 3)
    written.log(Logged(4, h.EXPIRED, 1))
    assert written.rules() == {"sessions"}


def test_a_session_that_is_said_to_be_over_before_that_was_decided_is_found(
    written: Written,
) -> None:
    one = written.connect("c1", 1, opened=1)
    written.lose(one)
    written.at = 30
    written.grant(written.ask_session("c1", 1), 0)
    written.log(Logged(2, h.EXPIRED, 1, at=33.0))
    assert written.rules() == {"sessions"}


def test_a_write_of_a_session_that_is_over_is_found(written: Written) -> None:
    one = expired(written, at=31.1)
    written.at = 32
    asked = written.create(one, "/a")
    written.reply(asked, 3, error=SESSION_EXPIRED, log=False)
    assert written.rules() == set()
    written.reply(written.create(one, "/b"), 4)
    assert "replies" in written.rules()


def test_a_write_that_is_told_of_a_living_session_that_it_is_over_is_found(
    written: Written,
) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a"), 1, error=SESSION_EXPIRED, log=False)
    assert written.rules() == {"sessions"}


def test_a_session_may_be_closed_by_its_client(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/e", flags=1), 2)
    written.reply(written.ask(one, opcodes.CLOSE_SESSION), 3)
    written.lose(one)
    other = written.connect("c2", 2, opened=4)
    written.reply(written.exists(other, "/e"), 4, error=NO_NODE)
    assert written.rules() == set()


def test_a_history_without_a_log_is_judged_by_what_clients_saw(written: Written) -> None:
    one = written.connect("c1", 1)
    written.reply(written.create(one, "/a"), 2, log=False)
    written.reply(written.exists(one, "/a"), 2, stat(2))
    assert written.rules() == set()
    written.reply(written.exists(one, "/b"), 2, stat(2))
    assert written.rules() == {"replies"}


# Leases.


def member(server: str, number: int, about: str, at: float) -> Logged:
    return Logged(0, about, number, path=f"{server} boot{number}", at=at)


def test_a_deposed_server_that_answers_is_found(written: Written) -> None:
    written.log(member("s1", 1, h.JOINED, 0.0))
    one = written.connect("c1", 1, opened=1)
    written.log(member("s1", 1, h.ENDED, written.at + 0.5))
    written.reply(written.exists(one, "/a"), 1, error=NO_NODE)
    assert written.rules() == {"leases"}


def test_a_server_may_answer_what_was_sent_before_it_was_deposed(written: Written) -> None:
    written.log(member("s1", 1, h.JOINED, 0.0))
    one = written.connect("c1", 1, opened=1)
    asked = written.exists(one, "/a")
    written.log(member("s1", 1, h.ENDED, written.at + 0.5))
    written.reply(asked, 1, error=NO_NODE)
    assert written.rules() == set()


def test_the_next_boot_of_a_server_may_answer(written: Written) -> None:
    written.log(member("s1", 1, h.JOINED, 0.0))
    written.log(member("s1", 2, h.JOINED, 0.0))
    one = written.connect("c1", 1, opened=1)
    written.log(member("s1", 1, h.ENDED, written.at + 0.5))
    written.reply(written.exists(one, "/a"), 1, error=NO_NODE)
    assert written.rules() == set()


NOT_KNOWN = -1.0
FIRST, SECOND = "server 1", "server 2"


def deposed_at_some_time(written: Written) -> tuple[int, int]:
    """Have a server deposed between two writes, with a client on each; the log tells no times."""
    written.log(member(FIRST, 1, h.JOINED, NOT_KNOWN))
    written.log(member(SECOND, 2, h.JOINED, NOT_KNOWN))
    one = written.connect("c1", 1, opened=1, server=FIRST)
    other = written.connect("c2", 2, opened=2, server=SECOND)
    written.reply(written.create(other, "/a"), 3)
    written.log(member(FIRST, 1, h.ENDED, NOT_KNOWN))
    return one, other


def test_what_is_seen_says_when_a_server_was_deposed(written: Written) -> None:
    one, other = deposed_at_some_time(written)
    written.reply(written.exists(one, "/b"), 3, error=NO_NODE)
    assert written.rules() == set(), "nobody has seen anything later yet"
    written.reply(written.create(other, "/c"), 4)
    assert written.rules() == set()
    written.reply(written.exists(one, "/b"), 3, error=NO_NODE)
    assert written.rules() == {"leases"}


def test_what_is_sent_says_when_a_server_has_joined_again(written: Written) -> None:
    _, other = deposed_at_some_time(written)
    written.reply(written.create(other, "/c"), 4)
    early = written.connect("c1", 1, seen=4, server=FIRST)
    written.reply(written.create(other, "/d"), 5)
    written.log(member(FIRST, 3, h.JOINED, NOT_KNOWN))
    late = written.connect("c1", 1, seen=5, server=FIRST)
    written.reply(written.exists(late, "/b"), 5, error=NO_NODE)
    assert written.rules() == set()
    written.reply(written.exists(early, "/b"), 5, error=NO_NODE)
    assert written.rules() == {"leases"}, "nobody had let it in"


def test_a_boot_of_an_unknown_server_may_be_that_of_any(written: Written) -> None:
    _, other = deposed_at_some_time(written)
    written.log(member("?", 3, h.JOINED, NOT_KNOWN))
    written.reply(written.create(other, "/c"), 4)
    again = written.connect("c1", 1, seen=4, server=FIRST)
    written.reply(written.exists(again, "/b"), 4, error=NO_NODE)
    assert written.rules() == set()


def test_a_boot_that_joins_twice_is_found(written: Written) -> None:
    written.log(member("s1", 1, h.JOINED, 0.0))
    written.log(member("s1", 1, h.ENDED, 1.0))
    written.log(Logged(0, h.JOINED, 2, path="s1 boot1", at=2.0))
    assert written.rules() == {"leases"}


@pytest.mark.parametrize(("silence_ms", "rules"), [(3_600, {"leases"}), (3_700, set())])
def test_a_server_that_is_deposed_too_early_is_found(
    written: Written, silence_ms: int, rules: set[str]
) -> None:
    written.log(member("s1", 1, h.JOINED, 0.0))
    written.log(Logged(0, h.DEPOSED, 1, path="s1 boot1", timeout_ms=silence_ms, at=9.0))
    verdict = judge(written.history, clock_rate_max=1.1, lease_seconds=4.0)
    assert {one.rule for one in verdict.violations} == rules


# Containers.


@pytest.mark.parametrize(("has_had_a_child", "rules"), [(True, set()), (False, {"replies"})])
def test_a_container_that_never_had_a_child_is_not_reaped(
    written: Written, has_had_a_child: bool, rules: set[str]
) -> None:
    one = written.connect("c1", 1, opened=1)
    asked = written.ask(one, opcodes.CREATE_CONTAINER, CreateRequest(b"/k", b"", list(OPEN), 4))
    written.reply(asked, 2, Create2Response(b"/k", stat(2)))
    written.logged(asked, 2)
    zxid = 2
    if has_had_a_child:
        written.reply(written.create(one, "/k/x"), 3)
        written.reply(written.delete(one, "/k/x"), 4)
        zxid = 4
    written.log(Logged(zxid + 1, h.REAPED, path="/k"))
    assert written.rules() == rules


def test_events_without_zxids_are_known_by_kind_path_and_order(written: Written) -> None:
    one = written.connect("c1", 1, opened=1)
    other = written.connect("c2", 2, opened=2)
    written.reply(written.create(one, "/a"), 3)
    written.reply(written.get(other, "/a", watch=True), 3, data(b"", stat(3)))
    written.reply(written.set_data(one, "/a", b"new"), 4, stat(3, 4, version=1, size=3))
    written.event(other, CHANGED, "/a", -1)
    written.reply(written.get(other, "/a"), 4, data(b"new", stat(3, 4, version=1, size=3)))
    assert judge(written.history, events_have_zxids=False).is_good
    assert written.rules() == {"watches"}, "on Paddock they have one"
    written.event(other, CHANGED, "/a", -1)
    twice = judge(written.history, events_have_zxids=False)
    assert {violation.rule for violation in twice.violations} == {"watches"}
