"""Origin checks of the admin server: pages of other sites are refused.

A browser sends requests wherever a page tells it to, even to a port on the loopback interface. The
rules:

* The Host of a request must be an address, `localhost`, this machine's name, the name that the
  admin server listens as, or one that the settings allow. DNS rebinding comes with its own name.
* A request that a browser marks as cross-site (Origin, Sec-Fetch-Site) is refused, unless a user
  has followed a link to a command that changes nothing: the other site cannot read the answer.
* A command that changes something is refused from a browser that does not send such a mark: over
  plain HTTP, except on the loopback, images of a foreign page are requested without one. Tools are
  not browsers: for them GET works, as upstream.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from paddock.server.connections.ports import parse_address

ANY_HOST: Final = "*"
# The values of Sec-Fetch-Site for requests that are not cross-site.
_OWN_SITES: Final = frozenset({"same-origin", "none"})
# The values of Sec-Fetch-Mode and Sec-Fetch-Dest when a user follows a link.
_LINK: Final = ("navigate", "document")
# The User-Agent of every browser; no page can change that of what it embeds.
_BROWSER: Final = "mozilla/"
# A name or an address, and perhaps a port.
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f.:]+)\]|([\w.-]+))(?::[0-9]*)?")


class AdminHosts:
    """The values of Host that the admin server accepts."""

    def __init__(self, host: str, allowed: Iterable[str] = ()) -> None:
        self._any = ANY_HOST in allowed
        self._names = {*map(_plain, (host, "localhost", socket.gethostname(), *allowed))}

    def includes(self, host: str) -> bool:
        """Return whether a request may name this host, with or without a port."""
        name = _name_of(host)
        is_known = self._any or name in self._names or name.endswith(".localhost")
        return is_known or parse_address(name) is not None


def why_refused(
    headers: Iterable[tuple[bytes, bytes]],
    hosts: AdminHosts,
    *,
    changes: bool,
    scheme: str = "http",
) -> str | None:
    """Return why a request with these headers is refused, as one sentence; None if it is not.

    `changes`: whether the request would change something; `scheme`: how it has come.
    """
    found = {name.lower(): value.decode("latin-1").strip() for name, value in headers}
    # Only HTTP 1.0 may omit it, which no browser speaks.
    host = found.get(b"host", "")
    if host and not hosts.includes(host):
        return (
            "This server is not asked by that name; ask by its address, or allow the name with"
            " --admin-allowed-hosts (paddock.adminAllowedHosts)."
        )
    origin, site = found.get(b"origin"), found.get(b"sec-fetch-site")
    is_link = (found.get(b"sec-fetch-mode"), found.get(b"sec-fetch-dest")) == _LINK
    is_foreign = (site or "none") not in _OWN_SITES and (changes or not is_link)
    if is_foreign or (origin is not None and not _is_same(origin, scheme, host)):
        return "A page of another site may not ask here."
    is_browser = found.get(b"user-agent", "").lower().startswith(_BROWSER)
    is_own = _is_same(found.get(b"referer", ""), scheme, host)
    is_marked = origin is not None or site is not None or is_own
    if changes and is_browser and not is_marked:
        return "Nothing tells that no other site's page asked for this; ask with curl."
    return None


def _is_same(url: str, scheme: str, host: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == scheme and parts.netloc.lower() == host.lower() != ""


def _name_of(host: str) -> str:
    """Return the normalised name without its port; "" if it is malformed."""
    match = _HOST.fullmatch(host)
    return "" if match is None else _plain(match[1] or match[2])


def _plain(name: str) -> str:
    return name.lower().rstrip(".")
