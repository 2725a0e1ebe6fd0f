"""What should be the same on all servers of a service, and how a server tells it to the others.

    tickTime=2000 lease=10 minSessionTimeout=4000 …

Each JOIN carries this text. What a write may do is decided by the server that it came through, so
servers with other settings behave differently to their clients: others warn of that. Only the lease
is more than a matter of taste, because a server that is deposed too early may still speak. So each
member is given as much time as it says that its own lease has.
"""

from __future__ import annotations

from paddock.server.config.config import ServerConfig

_LEASE = "lease"


def settings_text(config: ServerConfig) -> str:
    """Return what a server tells of its settings."""
    told = {
        "tickTime": config.tick_time_ms,
        _LEASE: f"{config.lease_seconds:g}",
        "minSessionTimeout": config.min_session_timeout_ms,
        "maxSessionTimeout": config.max_session_timeout_ms,
        "extendedTypesEnabled": _yes_or_no(config.extended_types_enabled),
        "enforceQuota": _yes_or_no(config.enforce_quota),
        "enforceAuth": _yes_or_no(config.enforce_authentication),
        "superDigest": _yes_or_no(config.super_digest is not None),
        "tls": _yes_or_no(config.speaks_tls()),
    }
    return " ".join(f"{name}={value}" for name, value in told.items())


def differences(ours: str, theirs: str) -> list[str]:
    """Return what another server has set differently, each as `name=theirs, ours here`.

    What only one of the two tells is left out: they may be of different versions.
    """
    here, there = _parsed(ours), _parsed(theirs)
    return [
        f"{name}={value} ({here[name]} here)"
        for name, value in there.items()
        if here.get(name, value) != value
    ]


def lease_seconds(settings: str, default: float) -> float:
    """Return how long the lease of a server is that has told these settings; never less than ours.

    A server that does not tell it is a command, which speaks to no clients.
    """
    try:
        return max(float(_parsed(settings).get(_LEASE, default)), default)
    except ValueError:
        return default


def _parsed(settings: str) -> dict[str, str]:
    found = {}
    for word in settings.split():
        name, _, value = word.partition("=")
        found[name] = value
    return found


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"
