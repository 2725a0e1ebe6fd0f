"""`paddock history` and `paddock diff`: what became of nodes, and what is different."""

from collections import deque
from functools import partial
from typing import Any

import click

from paddock.cli.arguments import JSON_LINES, WholeNumber, recursive_option
from paddock.cli.output import data_fields, harmless, one_line, preview, print_json, stat_fields
from paddock.cli.past.options import given_moment
from paddock.cli.past.place import Place, place_options
from paddock.cli.service import NODE_PATH
from paddock.history.moment import BEGINNING, Moment, shown_time
from paddock.history.past import Gap, Step, state_at
from paddock.history.telling import (
    CREATED,
    DELETED,
    Below,
    Image,
    NodeChange,
    changes,
    difference,
)
from paddock.protocol.acl import format_acl

# As that of `paddock import --diff`.
_DIFFERS = 3
_SIGNS = {CREATED: "+", DELETED: "-"}


_from_option = partial(
    click.option,
    "--from",
    "since",
    metavar="MOMENT",
    type=given_moment,
    help="From then on: a time, such as 03:12 or 15m (ago), or a zxid, such as 0x1a3.",
)
_to_option = click.option(
    "--to", "until", metavar="MOMENT", type=given_moment, default="now", help="Up to then."
)


@click.command()
@click.argument("path", type=NODE_PATH)
@_from_option()
@_to_option
@recursive_option(help="Also of all nodes below it.")
@click.option("--limit", "-n", metavar="N", type=WholeNumber(min=1), help="The last N changes.")
@JSON_LINES
@place_options(is_required=True)
def history(
    place: Place,
    path: str,
    since: Moment | None,
    until: Moment,
    recursive: bool,
    limit: int | None,
    as_json: bool,
) -> int:
    """Print every change of a node: when, by whom, and what it was before and after.

    What the history does not hold any more is not told; a gap in it is. Status 1 says that there
    was nothing.
    """
    with one_line():
        source = place.open()
        past = source.begin(BEGINNING) if since is None else state_at(source, since)
        found = changes(past, until, Below(path.encode(), is_recursive=recursive))
        count = 0
        for one in found if limit is None else deque(found, limit):
            count += 1
            if as_json:
                print_json(_fields(one))
            else:
                print(one if isinstance(one, Gap) else _line(one))
    if not count and not as_json:
        click.echo(f"paddock: {path}: nothing became of it", err=True)
    return 0 if count else 1


@click.command()
@click.argument("path", type=NODE_PATH, default="/")
@_from_option(required=True)
@_to_option
@JSON_LINES
@place_options(is_required=True)
def diff(place: Place, path: str, since: Moment, until: Moment, as_json: bool) -> int:
    """Print how a node and all below it differ between two moments.

    A line begins with + for a node that came, - for one that went, ~ for one that changed. PATH is
    the root unless it is given. Status 3 says that there is a difference.
    """
    below = Below(path.encode())
    with one_line():
        source = place.open()
        before = below.images(state_at(source, since))
        after = below.images(state_at(source, until))
        is_different = False
        for node, old, new, kind in difference(before, after):
            is_different = True
            if as_json:
                print_json(_node_fields(node, kind, old, new))
            else:
                shown = _shown(old, new)
                print(f"{_SIGNS.get(kind, '~')} {harmless(node.decode('utf-8', 'replace'))}{shown}")
    return _DIFFERS if is_different else 0


def _line(change: NodeChange) -> str:
    """Return a change as a line for people."""
    cause = change.cause
    path = harmless(change.path.decode("utf-8", "replace"))
    if isinstance(cause, Gap):
        return f"{'in the gap':23}  {'':10}  {change.kind:7}  {path}{_shown(*_both(change))}"
    when = f"{shown_time(cause.time_ms)}  {f'0x{cause.zxid:x}':10}"
    return f"{when}  {change.kind:7}  {path}{_shown(*_both(change))}  by {_who(cause)}"


def _who(step: Step) -> str:
    if not step.session:
        return f"the service ({step.operation})"
    who = f"session 0x{step.session & (1 << 64) - 1:x}"
    return f"{who} ({', '.join(map(harmless, step.identities))})" if step.identities else who


def _both(change: NodeChange) -> tuple[Image | None, Image | None]:
    return change.before, change.after


def _shown(before: Image | None, after: Image | None) -> str:
    """Return what is different, for people."""
    if after is None or before is None:
        image = after or before
        assert image is not None
        return f"  {preview(image.data or b'')!r}" if image.data else ""
    parts = []
    if before.data != after.data:
        parts.append(f"{preview(before.data or b'', 40)!r} → {preview(after.data or b'', 40)!r}")
    if before.acl != after.acl:
        parts.append(f"{_acl(before)} → {_acl(after)}")
    parts.append(f"version {after.stat.version}")
    return "  " + "  ".join(parts)


def _acl(image: Image) -> str:
    return harmless(",".join(format_acl(one) for one in image.acl))


def _fields(one: NodeChange | Gap) -> dict[str, Any]:
    """Return a change as a JSON object."""
    if isinstance(one, Gap):
        return {
            "kind": "gap",
            "zxid": one.zxid,
            "time_ms": one.time_ms,
            "next_zxid": one.next_zxid,
            "next_time_ms": one.next_time_ms,
            "next_time_ms_max": one.next_time_ms_max,
            "reason": one.reason,
        }
    cause = one.cause
    fields = _node_fields(one.path, one.kind, one.before, one.after)
    if isinstance(cause, Gap):
        return {**fields, "zxid": None, "time_ms": None}
    return {
        **fields,
        "zxid": cause.zxid,
        "time_ms": cause.time_ms,
        "session": f"0x{cause.session & (1 << 64) - 1:x}" if cause.session else None,
        "identities": list(cause.identities),
        "operation": cause.operation,
    }


def _node_fields(
    path: bytes, kind: str, before: Image | None, after: Image | None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "path": path.decode("utf-8", "replace"),
        "before": _image_fields(before),
        "after": _image_fields(after),
    }


def _image_fields(image: Image | None) -> dict[str, Any] | None:
    if image is None:
        return None
    acl = [format_acl(one) for one in image.acl]
    return {**data_fields(image.data), **stat_fields(image.stat), "acl": acl}
