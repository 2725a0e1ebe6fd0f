"""The client tells the truth about lost connections: every fault, at every request of a story.

Each story asks the client for something and then looks, on another connection, at what is really
there. Wherever the connection is lost:

* What may be repeated gives the right answer, as if nothing had happened.
* Anything else gives the right answer, or says that the outcome is unknown; then it has happened
  once or not at all, and never twice.
* Nothing is called done that was not, and no error is due to an earlier attempt of our own.
* Nothing hangs, and the client is of use afterwards.

In an exact session every call gives the right answer, and has happened once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from tests.fault.stage import client_call_stories, client_watch_stories
from tests.fault.stage.client_stories import prepare
from tests.fault.stage.cutting import (
    CUTS,
    LOSSES,
    play_on,
    play_with_every_fault,
    play_with_every_two_faults,
)
from tests.support.apache import ApacheServer
from tests.support.server import Options, ServerMissingError

STORIES: Final = {**client_call_stories.STORIES, **client_watch_stories.STORIES}


@pytest.mark.parametrize("name", STORIES)
def test_the_answer_is_right_whatever_happens_to_a_request(name: str) -> None:
    assert play_with_every_fault(STORIES[name], prepare) >= 27


@pytest.mark.parametrize("name", STORIES)
def test_no_outcome_is_unknown_in_an_exact_session(name: str) -> None:
    assert play_with_every_fault(STORIES[name], prepare, LOSSES, exact=True) >= 9


# What is played on Apache ZooKeeper, too, in real time: one of each kind. Persistent watches are
# left out: what happens between a cut and the next connection is not told there.
ON_APACHE: Final = (
    "reading",
    "creating sequential",
    "creating protected sequential ephemeral",
    "creating protected with parents",
    "setting a version",
    "setting with a mark",
    "deleting a tree",
    "committing",
    "authenticating",
    "watching once",
    "following a node",
    "producing and consuming",
    "closing",
)


# Two faults have very many places; in a story of many requests, too many.
LONG: Final = {*STORIES} - {*ON_APACHE} | {"deleting a tree"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in STORIES],
)
def test_the_answer_is_right_also_if_the_next_connection_is_lost(name: str) -> None:
    assert play_with_every_two_faults(STORIES[name], prepare) >= 20


@pytest.mark.long
@pytest.mark.parametrize("name", STORIES)
def test_two_lost_connections_leave_nothing_unknown_in_an_exact_session(name: str) -> None:
    assert play_with_every_two_faults(STORIES[name], prepare, exact=True) >= 20


@pytest.fixture(scope="module")
def apache() -> Iterator[ApacheServer]:
    try:
        with ApacheServer(Options(durable=False)) as server:
            yield server
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.judge
@pytest.mark.parametrize("name", ON_APACHE)
def test_the_answer_is_right_on_apache_zookeeper_too(apache: ApacheServer, name: str) -> None:
    place = f"/{ON_APACHE.index(name)}"
    assert asyncio.run(play_on(apache.address, place, STORIES[name], prepare, CUTS)) >= 6
