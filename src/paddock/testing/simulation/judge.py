"""The judge: whether a history is one that ZooKeeper's guarantees allow. It searches nothing.

Every reply has a zxid, so the order of all writes is known; lines of the log place those whose
reply was lost, and sessions that expired. Without a log it judges histories that have neither. The
order is replayed on the reference model, and these rules are checked:

    outcomes    each call has one outcome: a reply, in its turn, or a lost connection. A write
                takes effect at most once, a refused one never
    once        a write that its client sends again had not taken effect before
    real time   a write that ended before another one began has the lower zxid; nobody sees a write
                before it began; a sync sees what had ended before it began
    own order   what a client issued in order has effect in order, pipelined and across servers;
                zxids never go back for it
    replies     a write is answered as the model answers it at its zxid, and a read with exactly the
                state at the zxid of its reply
    watches     every event that the model sends arrives, once, in order, before the reply that
                shows the change; no other one does
    sessions    a session ends when its client closes it, or after a timeout in which no server had
                told its client that it lives. A session that is said to be over is over
    leases      a server that was deposed, has left or was replaced answers nothing that was sent to
                it after that, and does not come back under the same name. None is deposed before it
                was silent for the whole of a lease

    verdict = judge(history)
    assert not verdict.violations, verdict.report()

Ephemeral nodes need no rule of their own: the model has them as long as the session lives, and
every read is compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from paddock.testing.simulation.calls import Calls
from paddock.testing.simulation.history import History
from paddock.testing.simulation.judge_leases import judge_leases
from paddock.testing.simulation.judge_once import judge_once
from paddock.testing.simulation.judge_orders import judge_orders
from paddock.testing.simulation.judge_replay import judge_replay
from paddock.testing.simulation.judge_sessions import judge_sessions
from paddock.testing.simulation.judge_timeline import Timeline, Violation
from paddock.testing.simulation.story import tell


@dataclass
class Verdict:
    """What the judge found."""

    history: History = field(repr=False)
    calls: Calls = field(repr=False)
    timeline: Timeline = field(repr=False)
    violations: list[Violation] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.violations

    def report(self, violations_max: int = 5) -> str:
        """Return each violation with the lines of history that it rests on."""
        if not self.violations:
            return "the history breaks no rule"
        lines = []
        for violation in self.violations[:violations_max]:
            lines.append(str(violation))
            lines += tell(self.history, violation.places, pings=True)
        if len(self.violations) > violations_max:
            lines.append(f"... and {len(self.violations) - violations_max} more")
        return "\n".join(lines)


def judge(
    history: History,
    *,
    clock_rate_max: float = 1.0,
    lease_seconds: float = 0.0,
    events_have_zxids: bool = True,
) -> Verdict:
    """Judge a history.

    `clock_rate_max` says how fast the clock of a server may run, and `lease_seconds` for how long a
    server may be silent before it is deposed. Events have no zxids on Apache ZooKeeper before 3.9.
    """
    calls = Calls(history)
    timeline = Timeline(calls)
    verdict = Verdict(history, calls, timeline)
    found = verdict.violations
    found += [Violation("outcomes", problem.text, problem.places) for problem in calls.problems]
    found += timeline.violations
    found += judge_once(timeline)
    found += judge_orders(timeline)
    found += judge_sessions(timeline, clock_rate_max)
    found += judge_leases(timeline, lease_seconds / clock_rate_max)
    found += judge_replay(timeline, events_have_zxids=events_have_zxids)
    return verdict
