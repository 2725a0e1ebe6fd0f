"""What is looked at when a world is over, besides the rules of the judge, and what is counted.

A session that nobody uses ends some time. And where nothing goes wrong nothing else happens either:
a calm world is one in which servers have no reason to lose each other, nor clients their sessions.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Final

from paddock.errors import SESSION_MOVED
from paddock.protocol import opcodes
from paddock.testing.simulation.history import EXPIRED, OPENED
from paddock.testing.simulation.judge import Verdict

GONE_SECONDS: Final = 38.0
"""How long a session may outlive its client: the longest timeout, a lease, and some patience."""


def find_forgotten(verdict: Verdict) -> list[str]:
    """Return what should have been over: sessions whose clients are long gone."""
    calls = verdict.calls
    end = max((moment.at for moment in verdict.history), default=0.0)
    # A client may be between two connections.
    used = {
        connection.session
        for connection in calls.connections.values()
        if connection.lost_at is None or connection.lost_at > end - GONE_SECONDS
    }
    opened = [
        one.session
        for one in calls.log.values()
        if one.about == OPENED and one.at < end - GONE_SECONDS
    ]
    return [
        f"liveness: session 0x{session:x} outlives its client"
        for session in opened
        if session not in used and session not in verdict.timeline.ends
    ]


def find_disturbed(verdict: Verdict) -> list[str]:
    """Return what should not have happened in a world in which nothing goes wrong."""
    calls = verdict.calls
    found = [
        f"calm: {boot.server} was a member no more, at {boot.ended_at:.3f}"
        for boot in calls.boots
        if boot.ended_place >= 0
    ]
    used = {
        (connection.session, connection.lost_at)
        for connection in calls.connections.values()
        if connection.calls
    }
    return found + [
        f"calm: session 0x{one.session:x} expired, whose client was there"
        for one in calls.log.values()
        if one.about == EXPIRED
        and any(
            session == one.session and (lost_at is None or lost_at > one.at)
            for session, lost_at in used
        )
    ]


def count(counts: Counter[str], verdict: Verdict) -> None:
    """Count what a campaign should have seen."""
    calls = verdict.calls
    counts["calls"] += len([call for call in calls.calls if call.operation != opcodes.PING])
    unknown = [call for call in calls.calls if call.reply is None and call.is_write]
    counts["unknown outcomes"] += len(unknown)
    counts["unknown outcomes that took effect"] += len(verdict.timeline.resolved)
    counts["sessions"] += len(calls.sessions())
    for logged in calls.log.values():
        counts[f"log: {logged.about}"] += 1
        if logged.error == SESSION_MOVED:
            counts["late writes refused (moved)"] += 1
    for connections in calls.sessions().values():
        counts["reconnects"] += len(connections) - 1
        servers = [connection.server for connection in connections]
        counts["moved sessions"] += sum(one != other for one, other in itertools.pairwise(servers))
    for connection in calls.connections.values():
        counts["told that the session is over"] += connection.is_refused
        counts["events"] += len([one for one in connection.received if not hasattr(one, "reply")])
