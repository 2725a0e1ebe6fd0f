"""A mutation: exact text of the source, and what stands there instead.

The text must be there once. A change of the source that moves it makes a run fail loudly, so that
no mutation is ever skipped in silence.
"""

from __future__ import annotations

import ast
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src"


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one file, which is named from `src/paddock` on."""

    file: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """A planted bug."""

    name: str
    # The rule that it breaks, as a sentence that is true without it.
    rule: str
    edits: tuple[Edit, ...]


def mutation(name: str, rule: str, file: str, before: str, after: str, *more: Edit) -> Mutation:
    """Return a mutation, most of which have one edit."""
    return Mutation(name, rule, (Edit(file, before, after), *more))


class MisplacedError(Exception):
    """The text of an edit is not in its file, or is there twice."""


def mutated(edit: Edit, text: str) -> str:
    """Return the text of a file with an edit. Raises MisplacedError."""
    count = text.count(edit.before)
    if count != 1:
        raise MisplacedError(f"{edit.file}: {count} times there, and not once: {edit.before!r}")
    return text.replace(edit.before, edit.after)


def check(mutation: Mutation, source: Path = SOURCE) -> None:
    """Raise MisplacedError if a mutation does not fit the source."""
    for edit in mutation.edits:
        if edit.file.startswith("testing/"):
            raise MisplacedError(f"{mutation.name}: {edit.file} judges, and is never changed")
        ast.parse(mutated(edit, (source / "paddock" / edit.file).read_text()))


def plant(mutation: Mutation | None, folder: Path, source: Path = SOURCE) -> None:
    """Copy the source into a folder, with a mutation in it. Raises MisplacedError."""
    shutil.copytree(source / "paddock", folder / "paddock")
    for edit in () if mutation is None else mutation.edits:
        path = folder / "paddock" / edit.file
        path.write_text(mutated(edit, path.read_text()))
