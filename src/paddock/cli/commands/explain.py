"""`paddock explain`: what became of a session, a lock or a node, and why."""

from collections.abc import Iterator
from typing import Protocol

import click

from paddock.cli.arguments import WholeNumber
from paddock.cli.commands.find import parse_session
from paddock.cli.output import CannotBeDone, harmless, one_line, print_json
from paddock.cli.past.options import given_moment
from paddock.cli.past.place import Place, place_options
from paddock.cli.service import NODE_PATH
from paddock.history.moment import BEGINNING, NOW, Moment
from paddock.history.past import Source
from paddock.history.stories.lock import tell_lock
from paddock.history.stories.node import tell_node
from paddock.history.stories.session import tell_session

_JSON = click.option("--json", "as_json", is_flag=True, help="Say it in JSON, for programs.")
_at_option = click.option(
    "--at",
    metavar="MOMENT",
    type=given_moment,
    default="now",
    help="As it was then: a time, such as 03:12 or 15m (ago), or a zxid, such as 0x1a3.",
)


class Story(Protocol):
    """What is told, for people and for programs."""

    def lines(self) -> Iterator[str]: ...

    def fields(self) -> dict[str, object]: ...


@click.group()
def explain() -> None:
    """Say what became of a session, a lock or a node, and why.

    It reads the history that a server keeps beside its data, and the events that it has written
    there. What they do not say is not guessed.
    """


@explain.command()
@click.argument("session", type=parse_session)
@_JSON
@place_options(is_required=True)
def session(place: Place, session: int, as_json: bool) -> None:
    """Explain SESSION: who opened it, what it owned, who ended it and why, who came after it."""
    with one_line():
        source = place.open()
        steps = source.begin(BEGINNING).steps(NOW)
        story = tell_session(session, steps, place.events())
        if not story.is_known:
            raise CannotBeDone(f"session 0x{session & (1 << 64) - 1:x}: is not in the history")
        _print(story, source, as_json)


@explain.command()
@click.argument("path", type=NODE_PATH)
@_at_option
@_JSON
@place_options(is_required=True)
def lock(place: Place, path: str, at: Moment, as_json: bool) -> None:
    """Explain the lock at PATH: its holder, who waits, and how former holders lost it.

    It knows the locks and elections of Paddock, of kazoo and of Curator.
    """
    with one_line():
        source = place.open()
        story = tell_lock(source.begin(BEGINNING), path, at)
        if not story.is_known:
            raise CannotBeDone(f"{path}: is not in the history")
        _print(story, source, as_json)


@explain.command()
@click.argument("path", type=NODE_PATH)
@_at_option
@click.option(
    "--limit", "-n", metavar="N", type=WholeNumber(min=1), default=5, help="The last N changes."
)
@_JSON
@place_options(is_required=True)
def node(place: Place, path: str, at: Moment, limit: int, as_json: bool) -> None:
    """Explain the node at PATH: who made it, who changed it last, and how it went."""
    with one_line():
        source = place.open()
        story = tell_node(source.begin(BEGINNING), path, at, limit)
        if not story.is_known:
            raise CannotBeDone(f"{path}: is not in the history")
        _print(story, source, as_json)


def _print(story: Story, source: Source, as_json: bool) -> None:
    if as_json:
        print_json({**story.fields(), "unknown": source.unknown or None})
    else:
        for line in story.lines():
            print(harmless(line))
        if source.unknown:
            print(f"  {source.unknown}")
