"""Judges what the recipes promise, by what their users said in a history and by its log.

    alone      of what can be held, no more is held than there is, by sessions that live; what a
               paused process believes to hold after the end of its session does not count
    tokens     no token is given twice; of two grants that exclude each other, the later one has
               the larger token
    fenced     guarded writes of two holders do not interleave, in the order of the service. No
               holder is refused whose session lives, and whose node nobody else has deleted
    told       a process that runs knows in time that its session is over, and holds no more
    queue      what was put is finished by somebody, or left; what was acknowledged is gone
    counter    no sum comes twice, and every sure increment counts, once
    members    whoever has joined is seen by whoever looks then, and whoever left or died is not

A violation names the places in the history that show it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from paddock.testing.simulation import history as h
from paddock.testing.simulation import plan as p
from paddock.testing.simulation.judge_timeline import Timeline, Violation
from paddock.testing.simulation.recipe_client import GUARDED, writes_path
from paddock.testing.simulation.writes import all_writes

# A server's clock may be this much faster than a client's: then sessions end early for the client.
_RATE_MARGIN = 0.3
_TOLD_SECONDS = 0.5
_PAUSED = re.compile(rf"{p.PAUSE_CLIENT} \((\d+)\)")


@dataclass(frozen=True, slots=True)
class Said:
    """One note of a recipe's user."""

    at: float
    place: int
    who: str
    act: str
    what: str
    values: dict[str, str]

    def number(self, key: str) -> int:
        return int(self.values[key])


@dataclass(eq=False, slots=True)
class Hold:
    """A grant of one session, as its user said."""

    began: Said
    token: int
    share: int
    of: int
    session: int
    ended: Said | None = None

    def excludes(self, other: Hold) -> bool:
        return self.share + other.share > self.of

    def __str__(self) -> str:
        return f"{self.began.act} of {self.began.who} with token {self.token}"


def judge_promises(timeline: Timeline, counts: Counter[str]) -> list[Violation]:
    """Return the promises that were broken; count what was seen."""
    notes = [*_notes(timeline.calls.history)]
    if not notes:
        return []
    judge = _Judge(timeline, notes, counts)
    judge.judge()
    return judge.violations


def _notes(history: h.History) -> Iterator[Said]:
    for place, moment in enumerate(history):
        if moment.kind == h.NOTE:
            who, act, what, *pairs = moment.text.split(" ")
            values = dict(pair.split("=", 1) for pair in pairs)
            yield Said(moment.at, place, who, act, what, values)


class _Judge:
    def __init__(self, timeline: Timeline, notes: list[Said], counts: Counter[str]) -> None:
        self.violations: list[Violation] = []
        self._timeline = timeline
        self._notes = notes
        self._counts = counts
        log = timeline.calls.log
        # When a session was over, by the clock of the world.
        self._ends = {session: log[zxid].at for session, zxid in timeline.ends.items()}
        self._paused = {
            f"c{found[1]}"
            for moment in timeline.calls.history
            if moment.kind == h.FAULT and (found := _PAUSED.match(moment.text))
        }

        # When the node of a grant was deleted by hand, at the earliest.
        self._stolen = {
            said.number("token"): said.at for said in reversed(notes) if said.act == "thief"
        }

    def judge(self) -> None:
        for act in sorted({said.act for said in self._notes}):
            notes = [said for said in self._notes if said.act == act]
            if act == "thief":
                self._counts["recipes: stolen grants"] += len(notes)
            elif act in GUARDED:
                self._judge_grants(act, notes)
            elif act == "queue":
                self._judge_queue(notes)
            elif act in ("counter", "naming"):
                self._judge_numbers(act, notes)
            else:
                self._judge_members(act, notes)

    # Grants.

    def _judge_grants(self, act: str, notes: list[Said]) -> None:
        holds: dict[int, Hold] = {}
        for said in notes:
            token = said.number("token")
            if said.what == "began":
                hold = Hold(said, token, said.number("share"), said.number("of"), 0)
                hold.session = said.number("session")
                if token in holds:
                    self._complain("tokens", f"{hold} has a token that was given before", said)
                self._judge_begin(hold, list(holds.values()))
                holds[token] = hold
                self._counts["recipes: grants"] += 1
            elif said.what == "ended":
                holds[token].ended = said
                self._judge_end(holds[token], said)
            elif said.what == "refused":
                self._judge_refusal(holds[token], said)
        self._judge_writes(act, holds)

    def _judge_begin(self, hold: Hold, others: list[Hold]) -> None:
        said = hold.began
        if self._is_over(hold.session, said.at) or self._is_stolen(hold, said.at):
            # Its user does not know yet.
            self._counts["recipes: grants that were over when they began"] += 1
            return
        alive = [one for one in others if one.ended is None and not self._is_gone(one, said.at)]
        if sum(one.share for one in alive) + hold.share > hold.of:
            self._complain(
                "alone",
                f"{hold} begins while it is held: {', '.join(map(str, alive))}",
                *(one.began for one in alive),
                said,
            )
        for one in others:
            if one.token > hold.token and one.excludes(hold):
                self._complain(
                    "tokens", f"{hold} comes after {one}, which is larger", one.began, said
                )

    def _is_gone(self, hold: Hold, at: float) -> bool:
        # Others may end a lease although its session lives.
        is_lease = hold.began.act == "lease"
        return is_lease or self._is_stolen(hold, at) or self._is_over(hold.session, at)

    def _is_stolen(self, hold: Hold, at: float) -> bool:
        return hold.began.act == "lock" and self._stolen.get(hold.token, math.inf) <= at

    def _judge_end(self, hold: Hold, said: Said) -> None:
        over_at = self._ends.get(hold.session, math.inf)
        if said.at <= over_at:
            return
        self._counts["recipes: grants that outlived their session"] += 1
        margin = _TOLD_SECONDS + _RATE_MARGIN * self._timeout(hold.session)
        if hold.began.who not in self._paused and said.at > over_at + margin:
            self._complain(
                "told", f"{hold} was held for {said.at - over_at:.1f} s too long", hold.began, said
            )

    def _judge_refusal(self, hold: Hold, said: Said) -> None:
        self._counts["recipes: guarded writes refused"] += 1
        if not self._is_gone(hold, said.at):
            self._complain("fenced", f"{hold} was refused a write", hold.began, said)

    def _judge_writes(self, act: str, holds: dict[int, Hold]) -> None:
        written: list[Hold] = []
        path = f"{writes_path(act)}/w-"
        for write in all_writes(self._timeline.calls):
            if write.path != path:
                continue
            self._counts["recipes: guarded writes"] += 1
            hold = holds.get(int(write.data or b""))
            if hold is None:
                self._complain("fenced", f"nobody held the token of a write: {write}")
                continue
            for earlier in written:
                if earlier.token > hold.token and earlier.excludes(hold):
                    self._complain(
                        "fenced",
                        f"{hold} has written after {earlier} had",
                        hold.began,
                        earlier.began,
                    )
                    break
            if not written or written[-1] is not hold:
                written.append(hold)

    # Others.

    def _judge_queue(self, notes: list[Said]) -> None:
        items: dict[str, Counter[str]] = {}
        for said in notes:
            items.setdefault(said.what, Counter())[said.values["item"]] += 1
        none: Counter[str] = Counter()
        there = {*items.get("finished", none), *items.get("left", none)}
        known = {*items.get("tried", none)}
        self._counts["recipes: queue items"] += len(items.get("put", none))
        for said in notes:
            item = said.values["item"]
            if said.what == "put" and item not in there:
                self._complain("queue", f"the item {item} is lost", said)
            if item not in known:
                self._complain("queue", f"nobody has put the item {item}", said)
            if said.values.get("taken") == "1":
                self._complain("queue", f"nobody works on {item}, and nobody can", said)
        for item, count in (items.get("done", none) + items.get("left", none)).items():
            if count > 1:
                where = [said for said in notes if said.values["item"] == item]
                self._complain("queue", f"the item {item} is there after its end", *where)

    def _judge_numbers(self, act: str, notes: list[Said]) -> None:
        seen: dict[int, Said] = {}
        tried = sum(said.what == "tried" for said in notes)
        for said in notes:
            if said.what not in ("added", "number"):
                continue
            number = said.number("sum")
            if number in seen:
                self._complain("counter", f"{act} gave {number} twice", seen[number], said)
            seen[number] = said
        self._counts["recipes: increments"] += len(seen)
        for said in notes:
            if said.what == "final" and not len(seen) <= said.number("sum") <= tried:
                text = f"{len(seen)} to {tried} increments made {said.number('sum')}"
                self._complain("counter", text, said)

    def _judge_members(self, act: str, notes: list[Said]) -> None:
        joined: dict[str, Said] = {}
        leaves: dict[str, Said] = {}
        left: dict[str, Said] = {}
        for said in notes:
            where = {"joined": joined, "leaves": leaves, "left": left}.get(said.what)
            if where is not None:
                where[said.values["name"]] = said
        # By the act that looks: a client may play two at once.
        looks: dict[str, Said] = {}
        for said in notes:
            if said.what == "looks":
                looks[said.values["by"]] = said
            elif said.what in ("saw", "final"):
                self._counts["recipes: looks at members"] += 1
                names = {*filter(None, said.values["names"].split(","))}
                look = looks[said.values["by"]]
                for name, one in joined.items():
                    is_member = one.place < look.place and not self._has_left(
                        leaves.get(name), one, said
                    )
                    if is_member and name not in names:
                        text = f"{said.who} does not see {name} among the {act}"
                        self._complain("members", text, one, look, said)
                for name in sorted(names):
                    gone = left.get(name)
                    if gone is not None and gone.place < look.place:
                        text = f"{said.who} sees {name} among the {act}, which has left"
                        self._complain("members", text, gone, look, said)
                if said.what == "final" and names:
                    self._complain("members", f"{sorted(names)} are {act} for ever", said)

    def _has_left(self, leaves: Said | None, joined: Said, seen: Said) -> bool:
        if leaves is not None and leaves.place < seen.place:
            return True
        return self._is_over(joined.number("session"), seen.at)

    def _is_over(self, session: int, at: float) -> bool:
        return self._ends.get(session, math.inf) <= at

    def _timeout(self, session: int) -> float:
        connections = self._timeline.calls.sessions().get(session, [])
        return max((one.timeout for one in connections), default=0.0)

    def _complain(self, rule: str, text: str, *places: Said) -> None:
        self.violations.append(Violation(rule, text, sorted({said.place for said in places})))
