"""Which requests to the admin server may come from where: nothing for pages of other sites.

A browser sends requests wherever a page tells it to, also to a port on the loopback that nobody
else can reach. The rules:

* The Host of a request must be an address, `localhost`, this machine's name, the name that the
  admin server listens as, or one that the settings allow. A page whose name was made to lead here
  (DNS rebinding) comes with its own name.
* A request that a browser marks as another site's (Origin, Sec-Fetch-Site) is refused, unless
  somebody has followed a link, to what changes nothing: the other site does not see the answer.
* A command that changes something is refused from a browser that does not say where it comes from:
  to plain HTTP elsewhere than on the loopback an image of a foreign page is fetched without any
  mark. Tools are not browsers, and send none either: for them GET works, as upstream.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

ANY_HOST: Final = "*"
# Where a browser says that a request comes from, if it is not from another site.
_OWN_SITES: Final = frozenset({"same-origin", "none"})
# What a browser says of a link that somebody has followed, in a window of its own.
_LINK: Final = ("navigate", "document")
# How every browser names itself; no page can change that of what it embeds.
_BROWSER: Final = "mozilla/"
# A name or an address, perhaps with a port behind it.
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f.:]+)\]|([\w.-]+))(?::[0-9]*)?")


class AdminHosts:
    """The names by which the admin server may be asked."""

    def __init__(self, host: str, allowed: Iterable[str] = ()) -> None:
        self._any = ANY_HOST in allowed
        names = {host, "localhost", socket.gethostname(), *allowed}
        self._names = frozenset(map(_plain, names))

    def includes(self, host: str) -> bool:
        """Tell whether a request may name this host; a port behind it does not matter."""
        name = _name_of(host)
        return self._any or name in self._names or name.endswith(".localhost") or _is_address(name)


def why_refused(
    headers: Iterable[tuple[bytes, bytes]], hosts: AdminHosts, *, changes: bool
) -> str | None:
    """Return why a request with these headers is refused, as one sentence; None if it is not.

    `changes` says whether it would change something.
    """
    found = {name.lower(): value.decode("latin-1").strip() for name, value in headers}
    # Only HTTP 1.0 may leave it out, and no browser speaks that.
    host = found.get(b"host", "")
    if host and not hosts.includes(host):
        return (
            "This server is not asked by that name; ask by its address, or allow the name with"
            " --admin-allowed-hosts (paddock.adminAllowedHosts)."
        )
    origin, site = found.get(b"origin"), found.get(b"sec-fetch-site")
    is_link = (found.get(b"sec-fetch-mode"), found.get(b"sec-fetch-dest")) == _LINK
    is_foreign = (site or "none") not in _OWN_SITES and (changes or not is_link)
    if is_foreign or (origin is not None and not _is_same(origin, host)):
        return "A page of another site may not ask here."
    is_browser = found.get(b"user-agent", "").lower().startswith(_BROWSER)
    is_marked = origin is not None or site is not None or _is_same(found.get(b"referer", ""), host)
    if changes and is_browser and not is_marked:
        return "Nothing tells that no other site's page asked for this; ask with curl."
    return None


def _is_same(url: str, host: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.netloc.lower() == host.lower() != ""


def _name_of(host: str) -> str:
    """Return the name without its port, as names are compared; "" if it is no such thing."""
    match = _HOST.fullmatch(host)
    return "" if match is None else _plain(match[1] or match[2])


def _plain(name: str) -> str:
    return name.lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
