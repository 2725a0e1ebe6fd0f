"""The judge's rule of leases. See `judge`.

Servers that share a log depose one that has been silent. It stops to speak before that, by its own
clock, whatever it can see of the log. So a request that leaves a client later has no reply on a
connection that was granted before.

Where the log does not say when, its order does: a server has joined after each write before that in
the log had begun, and it was deposed before anybody saw a zxid behind that.
"""

from __future__ import annotations

from paddock.testing.simulation.calls import Boot, Calls
from paddock.testing.simulation.judge_timeline import Timeline, Violation


def judge_leases(timeline: Timeline, silence_min: float) -> list[Violation]:
    """Return what breaks the rules of leases; a server is silent for so long before it is deposed.

    Above all that is what servers have answered that could not know that they were members.
    """
    calls = timeline.calls
    found = [*_joined_again(calls), *_deposed_early(calls, silence_min)]
    spans = [(boot, _joined_at(timeline, boot), _ended_at(timeline, boot)) for boot in calls.boots]
    for connection in calls.connections.values():
        here = [
            (boot, ended_at)
            for boot, joined_at, ended_at in spans
            if boot.server in ("?", connection.server, f"{connection.server}?")
            and joined_at <= connection.granted_at
        ]
        # It cannot be said of a copied machine whose boot it was; "?" may be anybody's.
        if not here or any(boot.server.endswith("?") for boot, _ in here):
            continue
        boot, over_at = here[-1]
        late = [call for call in connection.calls if call.reply and call.begin > over_at]
        found += [
            Violation(
                "leases",
                f"{connection.server} answered a {call.name} that was sent"
                f" {call.begin - over_at:.3f} s after it was a member no more",
                sorted((boot.ended_place, call.begun, call.ended)),
            )
            for call in late[:1]
        ]
    return found


def _joined_at(timeline: Timeline, boot: Boot) -> float:
    """Return when it joined, or a moment before that."""
    if boot.joined_at >= 0:
        return boot.joined_at
    begins = [call.begin for zxid, call in timeline.written.items() if zxid <= boot.joined_after]
    return max(begins, default=0.0)


def _ended_at(timeline: Timeline, boot: Boot) -> float:
    """Return when it was a member no more, or a moment after that."""
    return boot.ended_at if boot.ended_at >= 0 else timeline.known_at(boot.ended_after + 1)[0]


def _joined_again(calls: Calls) -> list[Violation]:
    """A boot that is over is over: what it has proposed may still come, and must not count."""
    found = []
    first: dict[str, Boot] = {}
    for boot in calls.boots:
        before = first.setdefault(boot.name, boot)
        if before is not boot:
            found.append(
                Violation(
                    "leases",
                    f"{boot.server} has joined for the second time under the name {boot.name}",
                    [before.joined_place, boot.joined_place],
                )
            )
    return found


def _deposed_early(calls: Calls, silence_min: float) -> list[Violation]:
    """Who deposes a server has heard nothing of it for a whole lease, and nothing came since."""
    return [
        Violation(
            "leases",
            f"{boot.server} was deposed {boot.silence:.3f} s after its last batch, and not"
            f" {silence_min:.3f} s",
            [boot.ended_place],
        )
        for boot in calls.boots
        if boot.is_deposed and boot.silence < silence_min
    ]
