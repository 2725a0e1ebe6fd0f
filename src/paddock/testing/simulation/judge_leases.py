"""The judge's rule of leases. See `judge`.

Servers that share a log depose one that has been silent. It stops to speak before that, by its own
clock, whatever it can see of the log. So a request that leaves a client later has no reply on a
connection that was granted before.
"""

from __future__ import annotations

from paddock.testing.simulation.judge_timeline import Timeline, Violation


def judge_leases(timeline: Timeline) -> list[Violation]:
    """Return what servers have answered that could not know that they were members."""
    calls = timeline.calls
    found = []
    for connection in calls.connections.values():
        boots = [
            one
            for one in calls.boots
            if one.server == connection.server and one.joined_at <= connection.granted_at
        ]
        if not boots:
            continue
        boot = boots[-1]
        late = [call for call in connection.calls if call.reply and call.begin > boot.ended_at]
        found += [
            Violation(
                "leases",
                f"{connection.server} answered a {call.name} that was sent"
                f" {call.begin - boot.ended_at:.3f} s after it was a member no more",
                sorted((boot.ended_place, call.begun, call.ended)),
            )
            for call in late[:1]
        ]
    return found
