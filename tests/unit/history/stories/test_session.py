"""The story of a session, and why it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from paddock.history.past import ATTACHED, ENDED, OPENED, Gap, Step
from paddock.history.stories import session as s
from paddock.history.stories.session import Cause, SessionStory, tell_session
from paddock.storage import events as e
from paddock.storage.events import Event

ME = 0x12
OTHER = 0x34


def step(
    zxid: int,
    operation: str = "set",
    session: int = OTHER,
    *paths: bytes,
    change: tuple[int, str, int] | None = None,
    who: tuple[str, ...] = (),
) -> Step:
    return Step(zxid * 1000, zxid, session, who, operation, 0, paths, change)


OPEN = step(1, "create_session", 0, change=(ME, OPENED, 4000), who=("ip:10.0.0.7",))
CLOSE = step(9, "close_session", ME, change=(ME, ENDED, 4000))
EXPIRE = step(9, "expire", 0, b"/l/a", b"/l/b", change=(ME, ENDED, 4000))


def connection_ended(at: int, reason: str) -> Event:
    return Event(at * 1000, e.CONNECTION_ENDED, session=ME, address="10.0.0.7:1", reason=reason)


def session_ended(reason: str, seconds: float | None = 4.2) -> Event:
    details = {} if seconds is None else {"silent_seconds": seconds}
    return Event(9000, e.SESSION_ENDED, 9, session=ME, reason=reason, details=details)


def cause(end: Step, *events: Event) -> Cause:
    return tell_session(ME, [OPEN, end], events).cause()


def test_what_the_log_says_of_it() -> None:
    attached = step(3, "attach", ME, change=(ME, ATTACHED, 4000), who=("ip:10.0.0.8",))
    noise = step(4, "set", OTHER, b"/l/c")
    end = step(10, "close_session", OTHER, b"/l/d", change=(OTHER, ENDED, 4000))
    after = [step(11, "set", OTHER, b"/l/c"), end, step(12, "set", OTHER, b"/far")]
    gap = Gap(1, 1000, 2, 2000, 2000, "lost")
    story = tell_session(ME, [OPEN, gap, attached, noise, EXPIRE, *after], [])
    assert (story.opened, story.attached, story.ended) == (OPEN, [attached], EXPIRE)
    assert (story.timeout_ms, story.identities) == (4000, ("ip:10.0.0.7",))
    assert (story.owned, story.gaps) == ((b"/l/a", b"/l/b"), [gap])
    # Who wrote beside its nodes when it was gone, and not elsewhere or before.
    assert story.followers == [(b"/l/c", after[0])]


@pytest.mark.parametrize(
    ("end", "events", "expected", "says"),
    [
        (CLOSE, [], s.CLOSED, "its client closed it"),
        (EXPIRE, [], s.NOT_KNOWN, "no event says more"),
        (EXPIRE, [session_ended(e.SILENT)], s.CLIENT_SILENT, "sent nothing for 4.2 s"),
        (EXPIRE, [session_ended(e.SILENT, None)], s.CLIENT_SILENT, "sent nothing: it was"),
        (EXPIRE, [session_ended(e.NOT_READING)], s.CLIENT_NOT_READING, "took nothing"),
        (
            EXPIRE,
            [connection_ended(4, e.RESET), session_ended(e.GONE)],
            s.CLIENT_GONE,
            "reset at",
        ),
        (EXPIRE, [connection_ended(4, e.EOF), session_ended(e.GONE)], s.CLIENT_GONE, "closed at"),
        (EXPIRE, [session_ended(e.GONE)], s.CLIENT_GONE, "did not come back for 4.2 s"),
        (
            EXPIRE,
            [
                Event(1000, e.SESSION_OPENED, server=2, session=ME),
                Event(4000, e.OUT_OF_SERVICE, server=2, details={"seconds": 3}),
                connection_ended(4, e.NOT_SERVING),
                session_ended(e.GONE),
            ],
            s.SERVER_GONE,
            "server 2 was out of service for 3.0 s",
        ),
        (
            EXPIRE,
            [connection_ended(4, e.STOPPING), session_ended(e.GONE)],
            s.SERVER_GONE,
            "ended the connection (stopping)",
        ),
        (
            EXPIRE,
            [
                Event(1000, e.SESSION_OPENED, server=2, session=ME),
                Event(5000, e.MEMBER_DEPOSED, server=1, details={"member": 2}),
                session_ended(e.GONE),
            ],
            s.SERVER_GONE,
            "server 2 was deposed",
        ),
        # It was not the one that had it, or nobody knows.
        (
            EXPIRE,
            [
                Event(1000, e.SESSION_OPENED, server=3, session=ME),
                Event(5000, e.MEMBER_DEPOSED, server=1, details={"member": 2}),
                session_ended(e.GONE),
            ],
            s.CLIENT_GONE,
            "did not come back",
        ),
        (
            EXPIRE,
            [
                Event(5000, e.MEMBER_DEPOSED, server=1, details={"member": 2}),
                session_ended(e.GONE),
            ],
            s.CLIENT_GONE,
            "did not come back",
        ),
        # It was in trouble long ago, or afterwards.
        (
            EXPIRE,
            [Event(-60_000, e.STALLED, details={"seconds": 2.0}), session_ended(e.GONE)],
            s.CLIENT_GONE,
            "did not come back",
        ),
        (EXPIRE, [Event(9500, e.STALLED), session_ended(e.GONE)], s.CLIENT_GONE, "not come back"),
        # It was too short for that.
        (
            EXPIRE,
            [Event(8500, e.STALLED, details={"seconds": 0.5}), session_ended(e.GONE)],
            s.CLIENT_GONE,
            "did not come back",
        ),
        # What somebody else has written there.
        (
            EXPIRE,
            [
                Event(8500, e.STALLED, details={"seconds": "x"}),
                Event(8500, e.STALLED, details={"seconds": 10**400}),
                Event(9000, e.SESSION_ENDED, session=ME, details={"silent_seconds": "x"}),
            ],
            s.NOT_KNOWN,
            "no event says more",
        ),
        # A connection before the last one does not count.
        (
            EXPIRE,
            [connection_ended(2, e.STOPPING), connection_ended(5, e.RESET), session_ended(e.GONE)],
            s.CLIENT_GONE,
            "reset at",
        ),
    ],
)
def test_why_it_ended(end: Step, events: Sequence[Event], expected: str, says: str) -> None:
    told = cause(end, *events)
    assert told.kind == expected
    assert says in told.text


def unheard(at: int, seconds: float = 0.7, last: str = "handshake", reason: str = e.EOF) -> Event:
    details = {"last": last, "silent_seconds": seconds}
    return Event(at * 1000, e.CONNECTION_ENDED, session=ME, reason=reason, details=details)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([unheard(2, last="ping"), unheard(4), unheard(5)], s.CLIENT_CUT_OFF),
        # Longer than any client waits with its first ping that has its answer.
        ([unheard(2, last="ping"), unheard(5, 4.0)], s.CLIENT_CUT_OFF),
        # It may have been killed when it was back.
        ([unheard(2, last="ping"), unheard(5)], s.CLIENT_GONE),
        ([unheard(2), unheard(3), unheard(5, last="ping")], s.CLIENT_GONE),
        ([unheard(3, reason=e.STOPPING), unheard(5)], s.CLIENT_GONE),
    ],
)
def test_a_client_that_does_not_hear_its_server(ends: Sequence[Event], expected: str) -> None:
    assert cause(EXPIRE, *ends, session_ended(e.GONE)).kind == expected


@pytest.mark.parametrize(
    ("at_ms", "seconds", "expected"),
    [
        (5000, 3.0, s.SERVER_SLOW),
        # Any client waits so long.
        (5000, 1.5, s.CLIENT_CUT_OFF),
        # That was before.
        (-5000, 3.0, s.CLIENT_CUT_OFF),
    ],
)
def test_a_client_that_comes_back_to_a_slow_disk(at_ms: int, seconds: float, expected: str) -> None:
    slow = Event(at_ms, e.SLOW_SYNC, details={"seconds": seconds})
    ends = [unheard(2, last="ping"), unheard(4, 0.1), unheard(6, 0.1)]
    assert cause(EXPIRE, slow, *ends, session_ended(e.GONE)).kind == expected


@pytest.mark.parametrize(
    ("seconds", "expected", "trouble"),
    [(0.9, s.CLIENT_GONE, ""), (1.0, s.SERVER_SLOW, e.SLOW_SYNC)],
)
def test_a_client_that_waited_for_a_slow_disk(seconds: float, expected: str, trouble: str) -> None:
    lost = connection_ended(4, e.EOF)._replace(details={"log_seconds": seconds})
    told = cause(EXPIRE, lost, session_ended(e.GONE))
    assert (told.kind, told.trouble) == (expected, trouble)


@pytest.mark.parametrize(
    ("stalled_ms", "seconds", "server", "expected"),
    [
        (4100, 3.0, 0, s.SERVER_GONE),
        (3900, 3.0, 0, s.SERVER_GONE),
        # It may have begun a quarter of a second before the server noticed it.
        (4100, 0.6, 0, s.SERVER_GONE),
        # Its client has waited that long for a ping before.
        (4100, 0.5, 0, s.CLIENT_GONE),
        # The server has served again before, or stood still afterwards.
        (3500, 3.0, 0, s.CLIENT_GONE),
        (8000, 3.0, 0, s.CLIENT_GONE),
        # It was another one.
        (4100, 3.0, 2, s.CLIENT_GONE),
    ],
)
def test_a_client_that_has_left_a_server_that_stood_still(
    stalled_ms: int, seconds: float, server: int, expected: str
) -> None:
    stalled = Event(stalled_ms, e.STALLED, server=server, details={"seconds": seconds})
    told = cause(EXPIRE, stalled, connection_ended(4, e.EOF), session_ended(e.GONE))
    assert told.kind == expected
    assert told.trouble == (e.STALLED if expected == s.SERVER_GONE else "")


def test_a_client_that_has_left_before_its_server_stopped() -> None:
    events = [connection_ended(4, e.EOF), Event(4100, e.SERVER_STOPPING), session_ended(e.GONE)]
    assert cause(EXPIRE, *events).kind == s.CLIENT_GONE


STARTED, STARTED_AGAIN = (Event(at, e.SERVER_STARTED) for at in (0, 5000))
STOPPED = Event(4500, e.SERVER_STOPPED)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([STARTED, STARTED_AGAIN], s.SERVER_GONE),
        ([STARTED, STOPPED, STARTED_AGAIN], s.CLIENT_GONE),
        # What was before it, nobody knows.
        ([STARTED_AGAIN], s.CLIENT_GONE),
        # Its client had left before.
        ([STARTED, connection_ended(4, e.EOF), STARTED_AGAIN], s.CLIENT_GONE),
    ],
)
def test_a_server_that_was_killed(events: Sequence[Event], expected: str) -> None:
    told = cause(EXPIRE, *events, session_ended(e.GONE))
    assert told.kind == expected
    assert told.trouble == (e.SERVER_STARTED if expected == s.SERVER_GONE else "")


def test_a_server_that_stopped_and_was_away_for_long() -> None:
    lost, end = connection_ended(2, e.STOPPING), step(90, "expire", 0, change=(ME, ENDED, 4000))
    told = cause(end, Event(2000, e.SERVER_STOPPING), lost, session_ended(e.GONE))
    assert (told.kind, told.trouble) == (s.SERVER_GONE, e.SERVER_STOPPING)


def test_a_member_that_was_killed_has_its_number_from_before() -> None:
    opened = Event(1000, e.SESSION_OPENED, server=2, session=ME)
    told = cause(EXPIRE, STARTED, opened, STARTED_AGAIN, session_ended(e.GONE))
    assert told.kind == s.SERVER_GONE
    assert "server 2 was killed and started again" in told.text


def test_the_events_of_another_member_tell_of_a_member_that_is_gone() -> None:
    """That it had the session is in the log alone."""
    opened = dataclasses.replace(OPEN, server=2)
    deposed = Event(5000, e.MEMBER_DEPOSED, server=1, details={"member": 2})
    story = tell_session(ME, [opened, EXPIRE], [deposed, session_ended(e.GONE)])
    assert story.cause()[::2] == (s.SERVER_GONE, e.MEMBER_DEPOSED)
    # It had moved before.
    moved = step(3, "attach", ME, change=(ME, ATTACHED, 4000))
    moved = dataclasses.replace(moved, server=1)
    story = tell_session(ME, [opened, moved, EXPIRE], [deposed, session_ended(e.GONE)])
    assert story.cause().kind == s.CLIENT_GONE


def test_a_trouble_after_which_its_client_came_back_is_no_cause() -> None:
    attached = step(6, "attach", ME, change=(ME, ATTACHED, 4000))
    events = [STARTED, STARTED_AGAIN, session_ended(e.GONE)]
    assert tell_session(ME, [OPEN, attached, EXPIRE], events).cause().kind == s.CLIENT_GONE


def test_who_closed_it_and_who_came_too_late() -> None:
    closed = Event(9000, e.SESSION_ENDED, session=ME, address="10.0.0.9:7", reason=e.CLOSED)
    assert cause(CLOSE, closed).text == "its client closed it, from 10.0.0.9:7"
    late = Event(9500, e.HANDSHAKE_FAILED, session=ME, address="10.0.0.7:2", reason=e.EXPIRED)
    lines = tell_session(ME, [OPEN, EXPIRE], [late]).lines()
    assert any(line.endswith("asked for by 10.0.0.7:2: too late") for line in lines)


def test_a_connection_after_which_it_came_back_is_no_cause() -> None:
    """Its last one ended without an event, when its server was killed, or elsewhere."""
    attached = step(5, "attach", ME, change=(ME, ATTACHED, 4000))
    lost = connection_ended(4, e.EOF)
    assert tell_session(ME, [OPEN, attached, EXPIRE], [lost]).cause()[0] == s.NOT_KNOWN
    assert tell_session(ME, [OPEN, EXPIRE], [lost]).cause()[0] == s.CLIENT_GONE
    gone = tell_session(ME, [OPEN, attached, EXPIRE], [lost, session_ended(e.GONE)])
    assert gone.cause() == (s.CLIENT_GONE, "its client did not come back for 4.2 s", "")


def test_one_that_lives_has_no_cause() -> None:
    story = tell_session(ME, [OPEN], [])
    assert story.cause() == ("", "", "")
    assert next(story.lines()) == "session 0x12: not over"
    assert not SessionStory(5).is_known


def test_the_story_is_told_to_people_and_to_programs() -> None:
    events = [
        Event(1000, e.SESSION_OPENED, 1, session=ME, address="10.0.0.7:41234"),
        connection_ended(4, e.RESET),
        session_ended(e.GONE),
    ]
    story = tell_session(ME, [OPEN, EXPIRE, step(10, "set", OTHER, b"/l/c")], events)
    first, *rest = story.lines()
    assert first.startswith("session 0x12: expired at 19")
    assert first.endswith("from its client's side, and it did not come back for 4.2 s")
    text = "\n".join(rest)
    assert "opened by 10.0.0.7:41234, timeout 4 s" in text
    assert "connection from 10.0.0.7:1 ended: reset" in text
    assert "went with it: /l/a" in text
    assert "then session 0x34: /l/c" in text
    fields = story.fields()
    assert (fields["session"], fields["cause"]) == ("0x12", s.CLIENT_GONE)
    assert fields["ended"] == {"zxid": 9, "time_ms": 9000}
    assert fields["owned"] == ["/l/a", "/l/b"]
