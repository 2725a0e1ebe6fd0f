"""Mutations of recipes: of the lock, the queue, and what else has promises of its own."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation

MUTATIONS: Final[tuple[Mutation, ...]] = ()
