"""What has changed in the past, as a page shows it: of one node, between two moments, of a session.

The commands `paddock history`, `diff` and `explain` read it; here their lines become what the page
has, and what a person may not read is taken out: data of a node are shown if the ACL that the node
had then lets this person read it.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import Any, Final

from paddock.dashboard.access import RefusedError
from paddock.dashboard.past import Past, moment_of
from paddock.dashboard.people import Connection
from paddock.dashboard.tree import data_fields
from paddock.protocol.acl import READ, Identity, digest_id, encode_acls, parse_acl
from paddock.state.access import Identities, NodeACL

Fields = dict[str, Any]

CHANGES_MAX: Final = 200
DIFFERENCES_MAX: Final = 1000
_STORY_LINES_MAX: Final = 500
_DATA_BYTES: Final = 16 << 10
_TIMED: Final = re.compile(r"\s*(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})\s+(.*)")


class Reader:
    """A person, as the ACLs of the past know him."""

    def __init__(self, connection: Connection) -> None:
        found = [
            Identity("digest", digest_id(secret.decode("utf-8", "replace")))
            for scheme, secret in connection.credentials
            if scheme == "digest"
        ]
        for name in connection.known_names.names:
            scheme, _, user = name.partition(":")
            if scheme not in ("digest", "super"):
                found.append(Identity(scheme, user))
        if connection.known_names.is_super:
            found.append(Identity("super", ""))
        self._identities = Identities(tuple(found))

    def may_read(self, acl: object) -> bool:
        """Return whether an ACL, as texts, lets this person read."""
        try:
            entries = [parse_acl(one) for one in acl] if isinstance(acl, list) else []
        except ValueError:
            return False
        return NodeACL(tuple(entries), encode_acls(entries)).permits(READ, self._identities)

    def image(self, found: object) -> Fields | None:
        """Return a node as it was, without its data if they may not be read."""
        if not isinstance(found, dict):
            return None
        stat = found.get("stat")
        version = stat.get("version") if isinstance(stat, dict) else None
        if not self.may_read(found.get("acl")):
            return {**data_fields(None, 0), "hidden": True, "version": version}
        return {
            **data_fields(_data(found), _DATA_BYTES),
            "hidden": False,
            "version": version,
            "acl": found.get("acl"),
        }


async def history(
    past: Past, connection: Connection, root: str, path: str, before: str | None, limit: int
) -> Fields:
    """Return the last changes of a node, the newest first; `next` goes on with older ones."""
    until = []
    if before is not None:
        zxid = moment_of(before).zxid
        if zxid is None:
            raise RefusedError(400, "before: expected what the last answer had as next.")
        until = ["--to", f"0x{max(zxid - 1, 0):x}"]
    arguments = ["history", "--json", "--limit", str(limit), *until, "--", full_path(root, path)]
    # A change has a line, and a gap before it has one.
    found, _ = await past.lines(*arguments, limit=2 * limit)
    reader = Reader(connection)
    changes = [_change(one, reader, root) for one in reversed(found)]
    zxids = [one["zxid"] for one in changes if one["zxid"] is not None]
    return {"changes": changes, "next": zxids[-1] if len(found) >= limit and zxids else None}


async def diff(
    past: Past, connection: Connection, root: str, path: str, since: str, until: str
) -> Fields:
    """Return what is different at and below a node between two moments."""
    arguments = ["--from", moment_of(since).written(), "--to", moment_of(until).written()]
    found, is_complete = await past.lines(
        "diff", "--json", *arguments, "--", full_path(root, path), limit=DIFFERENCES_MAX
    )
    reader = Reader(connection)
    changes = []
    hidden = 0
    for one in found:
        change = _change(one, reader, root)
        images = [image for image in (change["before"], change["after"]) if image is not None]
        if all(image["hidden"] for image in images):
            # Not even that there is such a node.
            hidden += 1
        else:
            changes.append(change)
    return {"changes": changes, "hidden": hidden, "is_complete": is_complete}


async def story(past: Past, session: str) -> Fields | None:
    """Return what is told of a session; None if nothing is."""
    try:
        text, _ = await past.text("explain", "session", "--", session, lines_max=_STORY_LINES_MAX)
    except RefusedError as refusal:
        if refusal.status == 409:
            return None
        raise
    title, *rest = text.splitlines() or [""]
    return {"title": title, "lines": [_line(one) for one in rest]}


def _line(text: str) -> Fields:
    match = _TIMED.fullmatch(text)
    if match is None:
        return {"time_ms": None, "text": text.strip()}
    # It is written in the time of this machine.
    at = datetime.fromisoformat(match[1]).astimezone()
    return {"time_ms": int(at.timestamp() * 1000), "text": match[2]}


def _change(found: Fields, reader: Reader, root: str) -> Fields:
    zxid, after = found.get("zxid"), found.get("after")
    image = reader.image(after)
    return {
        "time_ms": found.get("time_ms"),
        "zxid": f"0x{zxid:x}" if isinstance(zxid, int) else None,
        "session": found.get("session"),
        "identities": found.get("identities", []),
        "operation": found.get("operation"),
        "kind": found.get("kind"),
        "path": _own(root, found.get("path")),
        "version": None if image is None else image["version"],
        "before": reader.image(found.get("before")),
        "after": image,
        "reason": found.get("reason"),
    }


def _data(found: Fields) -> bytes:
    text = found.get("data") or ""
    if found.get("encoding") != "base64":
        return str(text).encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def full_path(root: str, path: str) -> str:
    """Return the path of a node in the whole service, which may have a root of the page."""
    return path if root == "/" else root if path == "/" else root + path


def _own(root: str, path: object) -> str | None:
    if not isinstance(path, str):
        return None
    return path if root == "/" else path[len(root) :] or "/"
