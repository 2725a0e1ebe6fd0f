"""How much of what the model allowed etcd really gave.

* For each answer: one of so many that the model allowed then. Where nothing is open that is 1 of 1.
* For each kind of answer to a kind of call in a scene: whether etcd ever gave it, of those that the
  model ever allowed.

Both have a floor. A model that allows too much comes below the first; one that allows what never
happens, below the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tests.etcd_model.judge import Verdict

# Of all answers of a scene, and of all kinds of answers.
ANSWERS_FLOOR: Final = 0.4
KINDS_FLOOR: Final = 0.85
UNDECIDED_MAX: Final = 0.005

# The scene, the call and the kind of its answer.
Kind = tuple[str, str, str]


@dataclass(slots=True)
class Share:
    """A count of scripts that were judged."""

    scripts: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    # The sum of one over the number of answers allowed.
    given_of_allowed: dict[str, float] = field(default_factory=dict)
    allowed: Counter[Kind] = field(default_factory=Counter)
    given: Counter[Kind] = field(default_factory=Counter)
    objections: list[str] = field(default_factory=list)
    # Scripts that left too much open, or in which etcd was disturbed by something else.
    undecided: list[str] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        scene = verdict.history.scene
        self.scripts[scene] += 1
        if verdict.is_undecided or verdict.history.is_disturbed:
            self.undecided.append(verdict.history.name)
            return
        if verdict.objection:
            self.objections.append(verdict.objection)
            return
        for step in verdict.steps:
            self.answers[scene] += 1
            self._count(scene, 1 / len(step.allowed))
            self.given[scene, step.call, step.given.kind] += 1
            self.allowed.update({(scene, step.call, one.kind) for one in step.allowed})

    def merge(self, other: Share) -> None:
        self.scripts.update(other.scripts)
        self.answers.update(other.answers)
        for scene, part in other.given_of_allowed.items():
            self._count(scene, part)
        self.allowed.update(other.allowed)
        self.given.update(other.given)
        self.objections += other.objections
        self.undecided += other.undecided

    def of_answers(self, scene: str) -> float:
        """Return what part of the answers allowed was given, for one answer on average."""
        return self.given_of_allowed.get(scene, 0.0) / max(self.answers[scene], 1)

    def of_kinds(self, *scenes: str) -> float:
        """Return what part of the kinds allowed was ever given."""
        allowed = {kind for kind in self.allowed if not scenes or kind[0] in scenes}
        return len(allowed & self.given.keys()) / max(len(allowed), 1)

    def never_given(self) -> list[Kind]:
        return sorted(self.allowed.keys() - self.given.keys())

    def faults(self) -> list[str]:
        """Return what is wrong: answers that are not allowed, and shares below their floors."""
        found = [*self.objections]
        for scene in self.scripts:
            share = self.of_answers(scene)
            if share < ANSWERS_FLOOR:
                found.append(f"{scene}: the model allows too much, {share:.2f} of it was given")
        if len(self.undecided) > UNDECIDED_MAX * self.scripts.total():
            found.append(f"{len(self.undecided)} scripts are undecided: {self.undecided[:5]}")
        if self.of_kinds() < KINDS_FLOOR:
            found.append(f"only {self.of_kinds():.2f} of the kinds of answers allowed were given")
        return found

    def table(self) -> Iterable[str]:
        """Yield the lines of a table, in Markdown."""
        yield "| scene | scripts | answers | given of allowed | kinds given of allowed |"
        yield "|---|---|---|---|---|"
        for scene in self.scripts:
            allowed = sum(kind[0] == scene for kind in self.allowed)
            given = sum(kind[0] == scene for kind in self.given)
            yield (
                f"| {scene} | {self.scripts[scene]:,} | {self.answers[scene]:,} "
                f"| {self.of_answers(scene):.0%} | {given} of {allowed} |"
            )
        yield (
            f"| all | {self.scripts.total():,} | {self.answers.total():,} "
            f"| {sum(self.given_of_allowed.values()) / max(self.answers.total(), 1):.0%} "
            f"| {len(self.given)} of {len(self.allowed)} |"
        )

    def _count(self, scene: str, part: float) -> None:
        self.given_of_allowed[scene] = self.given_of_allowed.get(scene, 0.0) + part
