"""Faults planted in the model, one at a time: the comparison with etcd finds each of them.

A fault is a change of the text of `key_space.py`; a text that is not there once is an error. Two
more models are wrong in the other way, and allow too much: no answer shows it, but the share does.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Final

from paddock.testing.simulation.key_space import KeySpace
from tests.etcd_model.calls import FULL, NOT_DONE, UNKNOWN, Answer
from tests.etcd_model.history import Event, History, Trouble
from tests.etcd_model.judge import Judge
from tests.etcd_model.worlds import Worlds
from tests.mutants.mutation import SOURCE, Mutation, mutated, mutation

_FILE: Final = "testing/simulation/key_space.py"


def _planted(name: str, rule: str, before: str, after: str) -> Mutation:
    return mutation(name, rule, _FILE, before, after)


FAULTS: Final = (
    _planted(
        "page-compacted-early",
        "A page at the revision that was compacted to is answered.",
        "if 0 < revision < self.compacted:",
        "if 0 < revision <= self.compacted:",
    ),
    _planted(
        "tail-compacted-early",
        "A tail may begin with the revision that was compacted to.",
        "if after + 1 < self.compacted:",
        "if after < self.compacted:",
    ),
    _planted(
        "page-of-today",
        "A page at an old revision shows what was there then.",
        "item = self.get(key, revision)",
        "item = self.get(key)",
    ),
    _planted(
        "page-cut-early",
        "A page holds as many keys as its limit says.",
        "(limit and len(items) == limit)",
        "(limit and len(items) + 1 == limit)",
    ),
    _planted(
        "delete-beyond-through",
        "What was written after `through` is not deleted.",
        "if through and any(",
        "if through < 0 and any(",
    ),
    _planted(
        "delete-without-guard",
        "A deletion needs its guard.",
        "if not self._holds(guard):\n            return 0\n        deleted",
        "deleted",
    ),
    _planted(
        "delete-of-nothing",
        "A deletion of nothing takes no revision.",
        "if deleted:\n            self.revision += 1",
        "self.revision += 1",
    ),
    _planted(
        "swap-without-guard",
        "A swap needs its guard.",
        "mod_revision)) or not self._holds(guard):",
        "mod_revision)):",
    ),
    _planted(
        "version-stands-still",
        "Each change of a key counts its version up.",
        "0 if value is None else last + 1",
        "0 if value is None else max(last, 1)",
    ),
    _planted(
        "version-outlives-deletion",
        "The version of a key begins again after a deletion.",
        "last = changes[-1].version if changes and changes[-1].value is not None else 0",
        "last = max((one.version for one in changes), default=0)",
    ),
    _planted(
        "append-again",
        "A batch that is there is not appended again.",
        "        if self.get(key) is not None:\n            return None\n",
        "",
    ),
    _planted(
        "watch-forgets-deleted",
        "The watch shows batches that were deleted since, until they are compacted.",
        "if one.revision > after]",
        "if one.revision > after and self.get(keys.batch(one.server or b'', one.number))]",
    ),
    _planted(
        "watch-of-the-future",
        "A watch behind a revision that is not there yet, as after a restore, waits for it.",
        "if one.revision > after]",
        "if one.revision > min(after, self.revision - 1)]",
    ),
    _planted(
        "full-takes-puts",
        "After NOSPACE, nothing is put.",
        "if self.is_full:\n            raise",
        "if self.revision < 0:\n            raise",
    ),
    _planted(
        "full-refuses-deletions",
        "After NOSPACE, deletions go on.",
        "        if len(ranges) > DELETED_RANGES_MAX:",
        '        if self.is_full:\n            raise StoreFullError("")\n'
        "        if len(ranges) > DELETED_RANGES_MAX:",
    ),
    _planted(
        "full-for-ever",
        "The alarm can be disarmed.",
        'alarm NOSPACE."""\n        self.is_full = False',
        'alarm NOSPACE."""',
    ),
)


def space_with(fault: Mutation) -> type[KeySpace]:
    """Return the key space of the model with a fault."""
    (edit,) = fault.edits
    text = mutated(edit, (SOURCE / "paddock" / edit.file).read_text())
    module = ModuleType(f"tests.etcd_model.planted.{fault.name}")
    # A dataclass looks for its module there.
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, edit.file, "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    found: type[KeySpace] = module.KeySpace
    return found


class Anything(Worlds):
    """A model that allows every kind of answer to every call."""

    def possible(self, number: int, at: float) -> set[Answer]:
        kinds = [Answer(kind) for kind in ("forbidden", "compacted", "future", "done")]
        revisions = [Answer("done", world.state.space.revision) for world in self]
        return super().possible(number, at) | {FULL, NOT_DONE, UNKNOWN, *kinds, *revisions}

    def answer(self, number: int, answer: Answer, at: float) -> bool:
        worlds, calls = self._worlds, {**self.open}
        if not super().answer(number, answer, at):
            self._worlds, self.open = worlds, calls
            self.abandon(number, at)
        return True


class Forgiving(Judge):
    """A judge by whom etcd may be in trouble at any time."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._is_troubled = True

    def _take(self, event: Event) -> bool:
        return isinstance(event, Trouble) or super()._take(event)
