"""Mutations: each fits the source as it is, and those that do not are told."""

from pathlib import Path

import pytest

from tests.mutants.mutation import Edit, MisplacedError, Mutation, check, mutated, plant
from tests.mutants.table import MUTATIONS, SELDOM


@pytest.mark.parametrize("mutation", [*MUTATIONS, *SELDOM], ids=lambda one: one.name)
def test_each_fits_the_source(mutation: Mutation) -> None:
    check(mutation)


def test_names_are_given_once() -> None:
    every = (*MUTATIONS, *SELDOM)
    assert len({one.name for one in every}) == len(every) >= 140


@pytest.mark.parametrize("text", ["", "one two one"])
def test_text_that_is_not_there_once_is_refused(text: str) -> None:
    with pytest.raises(MisplacedError, match="not once: 'one'"):
        mutated(Edit("a.py", "one", "two"), text)


def test_what_judges_is_never_changed() -> None:
    edit = Edit("testing/simulation/judge.py", "def judge(", "def judged(")
    with pytest.raises(MisplacedError, match="never changed"):
        check(Mutation("name", "rule", (edit,)))


def test_a_copy_of_the_source_has_the_mutation(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "paddock").mkdir(parents=True)
    (source / "paddock" / "a.py").write_text("one\n")
    (source / "paddock" / "b.py").write_text("one\n")
    edit = Edit("a.py", "one", "two")
    plant(Mutation("name", "rule", (edit,)), tmp_path / "copy", source)
    assert (tmp_path / "copy/paddock/a.py").read_text() == "two\n"
    assert (tmp_path / "copy/paddock/b.py").read_text() == "one\n"
    assert (source / "paddock/a.py").read_text() == "one\n"
