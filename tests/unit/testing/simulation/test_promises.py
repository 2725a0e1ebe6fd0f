"""The promises of recipes: what breaks each of them is found, and what is allowed is not."""

from collections import Counter

import pytest

from paddock.testing.simulation import history as h
from paddock.testing.simulation.calls import Calls
from paddock.testing.simulation.history import History, Logged, Moment
from paddock.testing.simulation.judge_timeline import Timeline
from paddock.testing.simulation.promises import judge_promises

HELD = "token={} share=1 of=1 session={}"


def judged(*moments: tuple[float, str], ends: dict[int, float] | None = None) -> set[str]:
    """Return the rules that are broken by some notes, with sessions that ended at some time."""
    history = History()
    for at, text in moments:
        history.add(Moment(at, h.FAULT if text.startswith("pause") else h.NOTE, text=text))
    for zxid, (session, at) in enumerate((ends or {}).items(), 1):
        logged = Logged(zxid, h.EXPIRED, session, at=at)
        history.add(Moment(at, h.LOG, logged=logged))
    violations = judge_promises(Timeline(Calls(history)), Counter())
    return {violation.rule for violation in violations}


def test_no_notes_break_nothing() -> None:
    assert judged() == set()


def test_two_do_not_hold_a_lock_at_once() -> None:
    first, second = (
        (1.0, "c1 lock began " + HELD.format(5, 1)),
        (
            2.0,
            "c2 lock began " + HELD.format(6, 2),
        ),
    )
    assert judged(first, second) == {"alone"}
    assert judged(first, (1.5, "c1 lock ended token=5"), second) == set()
    # Its session is over: a paused process does not know.
    assert judged(first, second, ends={1: 1.5}) == set()
    # Somebody has deleted its node.
    assert judged(first, (1.5, "c3 thief steals token=5"), second) == set()


def test_tokens_rise_and_are_given_once() -> None:
    first = [(1.0, "c1 lock began " + HELD.format(7, 1)), (1.5, "c1 lock ended token=7")]
    assert judged(*first, (2.0, "c2 lock began " + HELD.format(6, 2))) == {"tokens"}
    assert judged(*first, (2.0, "c2 lock began " + HELD.format(7, 2))) == {"tokens"}


def test_readers_share_and_writers_do_not() -> None:
    def began(who: str, token: int, share: int) -> str:
        return f"{who} rw-lock began token={token} share={share} of=100 session={token}"

    assert judged((1.0, began("c1", 5, 1)), (2.0, began("c2", 6, 1))) == set()
    assert judged((1.0, began("c1", 5, 1)), (2.0, began("c2", 6, 100))) == {"alone"}


def test_a_holder_is_told_in_time_unless_it_is_paused() -> None:
    hold = [(1.0, "c1 lock began " + HELD.format(5, 1)), (20.0, "c1 lock ended token=5")]
    assert judged(*hold, ends={1: 10.0}) == {"told"}
    assert judged((0.5, "pause a client (1) for 15.0 s"), *hold, ends={1: 10.0}) == set()
    assert judged(*hold, ends={1: 19.9}) == set()


def test_a_holder_whose_session_lives_is_not_refused() -> None:
    hold = (1.0, "c1 lock began " + HELD.format(5, 1))
    refused = (2.0, "c1 lock refused token=5")
    assert judged(hold, refused) == {"fenced"}
    assert judged(hold, refused, ends={1: 1.5}) == set()


@pytest.mark.parametrize(
    ("notes", "rules"),
    [
        (["tried item=a", "put item=a", "finished item=a", "done item=a"], set()),
        (["tried item=a", "put item=a", "left item=a taken=0"], set()),
        (["tried item=a"], set()),
        (["tried item=a", "put item=a"], {"queue"}),
        (["tried item=a", "put item=a", "left item=a taken=1"], {"queue"}),
        (["tried item=a", "finished item=a", "done item=a", "left item=a taken=0"], {"queue"}),
        (["finished item=b"], {"queue"}),
    ],
)
def test_items_of_a_queue_are_finished_or_left(notes: list[str], rules: set[str]) -> None:
    assert judged(*((float(at), f"c1 queue {text}") for at, text in enumerate(notes))) == rules


@pytest.mark.parametrize(
    ("notes", "rules"),
    [
        (["tried", "added sum=1", "tried", "added sum=2", "final sum=2"], set()),
        (["tried", "added sum=1", "tried", "final sum=2"], set()),
        (["tried", "added sum=1", "tried", "added sum=1", "final sum=2"], {"counter"}),
        (["tried", "added sum=1", "final sum=2"], {"counter"}),
        (["tried", "added sum=1", "final sum=0"], {"counter"}),
    ],
)
def test_increments_count_once(notes: list[str], rules: set[str]) -> None:
    assert judged(*((float(at), f"c1 counter {text}") for at, text in enumerate(notes))) == rules


def test_members_are_seen_or_gone() -> None:
    joined = (1.0, "c1 members joined name=a session=1")
    looks = (2.0, "c2 members looks by=c2-1")
    seen, missed = (3.0, "c2 members saw by=c2-1 names=a"), (3.0, "c2 members saw by=c2-1 names=")
    assert judged(joined, looks, seen) == set()
    # The client has begun to look once more meanwhile.
    assert judged((0.5, looks[1]), joined, (2.0, "c2 members looks by=c2-2"), missed) == set()
    assert judged(joined, looks, missed) == {"members"}
    assert judged(joined, looks, missed, ends={1: 2.5}) == set()
    leaves, left = (1.5, "c1 members leaves name=a"), (1.6, "c1 members left name=a")
    assert judged(joined, leaves, looks, missed) == set()
    assert judged(joined, leaves, looks, seen) == set()
    assert judged(joined, leaves, left, looks, seen) == {"members"}
    assert judged(joined, leaves, looks, (3.0, "c2 members final by=c2-1 names=a")) == {"members"}
