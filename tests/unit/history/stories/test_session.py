"""The story of a session, and why it ended."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from paddock.history.past import ATTACHED, ENDED, OPENED, Gap, Step
from paddock.history.stories import session as s
from paddock.history.stories.session import SessionStory, tell_session
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


def cause(end: Step, *events: Event) -> tuple[str, str]:
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
            [Event(8500, e.STALLED, details={"seconds": 1.2}), session_ended(e.GONE)],
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
    kind, text = cause(end, *events)
    assert kind == expected
    assert says in text


def test_a_connection_after_which_it_came_back_is_no_cause() -> None:
    """Its last one ended without an event, when its server was killed, or elsewhere."""
    attached = step(5, "attach", ME, change=(ME, ATTACHED, 4000))
    lost = connection_ended(4, e.EOF)
    assert tell_session(ME, [OPEN, attached, EXPIRE], [lost]).cause()[0] == s.NOT_KNOWN
    assert tell_session(ME, [OPEN, EXPIRE], [lost]).cause()[0] == s.CLIENT_GONE
    gone = tell_session(ME, [OPEN, attached, EXPIRE], [lost, session_ended(e.GONE)])
    assert gone.cause() == (s.CLIENT_GONE, "its client did not come back for 4.2 s")


def test_one_that_lives_has_no_cause() -> None:
    story = tell_session(ME, [OPEN], [])
    assert story.cause() == ("", "")
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
    assert first.endswith("by its client, which did not come back for 4.2 s")
    text = "\n".join(rest)
    assert "opened by 10.0.0.7:41234, timeout 4 s" in text
    assert "connection from 10.0.0.7:1 ended: reset" in text
    assert "went with it: /l/a" in text
    assert "then session 0x34: /l/c" in text
    fields = story.fields()
    assert (fields["session"], fields["cause"]) == ("0x12", s.CLIENT_GONE)
    assert fields["ended"] == {"zxid": 9, "time_ms": 9000}
    assert fields["owned"] == ["/l/a", "/l/b"]
