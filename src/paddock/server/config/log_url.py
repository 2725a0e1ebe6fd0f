"""The address of a log that several servers share.

    etcd://h1:2379,h2:2379,h3:2379/name         three members of one etcd; the service is `name`
    etcds://h1:2379/name?compact=no             with TLS; etcd's history is left to others

A port that is not given is 2379. With `compact=no`, etcd's history is not compacted: for an etcd
that other programs use, too. Credentials are not part of it: an address is logged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from paddock.server.config.parsers import ExplainedError, Parser

DEFAULT_ETCD_PORT: Final = 2379
_FORM: Final = "etcd://host:port,…/name"
_SCHEMES: Final = {"etcd": False, "etcds": True}
# A name is part of etcd's keys, and of what operators type.
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?\.?|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class LogUrl:
    """Where a shared log is. `str` returns it as it is written."""

    # Each as `host:port`, in the order in which they are tried.
    endpoints: tuple[str, ...]
    # The name of the service in etcd.
    name: str
    is_secure: bool = False
    # Whether our servers compact etcd's history.
    compacts: bool = True

    def __str__(self) -> str:
        scheme = "etcds" if self.is_secure else "etcd"
        option = "" if self.compacts else "?compact=no"
        return f"{scheme}://{','.join(self.endpoints)}/{self.name}{option}"


def parse_log_url(text: str) -> LogUrl:
    """Return what an address says; raises ExplainedError, a ValueError, with one line."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise ExplainedError(f"expected {_FORM}, or etcds:// for TLS")
    if "@" in rest:
        raise ExplainedError(
            "no user or password belongs here: they are --etcd-user and PADDOCK_ETCD_PASSWORD",
            may_repeat=False,
        )
    place, _, options = rest.partition("?")
    hosts, slash, name = place.partition("/")
    if not hosts:
        raise ExplainedError(f"there is no host; expected {_FORM}")
    endpoints = tuple(parse_endpoint(one, DEFAULT_ETCD_PORT) for one in hosts.split(","))
    if len(set(endpoints)) < len(endpoints):
        raise ExplainedError("a host is there twice")
    if not slash or not name:
        raise ExplainedError(f"there is no name of the service behind the hosts; expected {_FORM}")
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ExplainedError(
            f"the name {name!r} cannot be used: letters, digits, '.', '_' and '-', at most 100"
        )
    return LogUrl(endpoints, name, _SCHEMES[scheme], _compacts(options))


def parse_endpoint(text: str, default_port: int | None = None) -> str:
    """Return `host:port`; raises ExplainedError with what is wrong."""
    host, port = _split(text)
    if not text.startswith("[") and text.count(":") > 1:
        raise ExplainedError(
            f"{text!r}: an IPv6 address stands in brackets, as [::1]:{DEFAULT_ETCD_PORT}"
        )
    if not host:
        raise ExplainedError(f"{text!r} has no host")
    if not _HOST.fullmatch(host):
        raise ExplainedError(
            f"the host {host!r} cannot be used: a name, an address, or [an IPv6 address]"
        )
    if port is None:
        if default_port is None:
            raise ExplainedError(f"{text!r} has no port")
        return f"{host}:{default_port}"
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise ExplainedError(f"the port {port!r} of {host} cannot be used: 1 to 65535")
    return f"{host}:{int(port)}"


def _split(text: str) -> tuple[str, str | None]:
    """Return the host, brackets included, and the text of the port, if there is one."""
    match = re.fullmatch(r"(?s)(\[[^\]]*\]|[^:]*)(?::(.*))?", text)
    return (match[1], match[2]) if match else (text, None)


def _compacts(options: str) -> bool:
    compacts = True
    for option in options.split("&") if options else ():
        key, _, value = option.partition("=")
        if key != "compact":
            raise ExplainedError(f"there is no option {key!r}; there is compact=no")
        if value not in ("yes", "no"):
            raise ExplainedError(f"compact is yes or no, not {value!r}")
        compacts = value == "yes"
    return compacts


LOG_URL: Final = Parser(parse_log_url, f"{_FORM}, or etcds:// for TLS", "URL")
ADVERTISED: Final = Parser(parse_endpoint, "host:port", "HOST:PORT")
