"""All mutations, in groups."""

from __future__ import annotations

from typing import Final

from tests.mutants import (
    of_disk,
    of_exact,
    of_leases,
    of_order,
    of_recipes,
    of_serving,
    of_sessions,
    of_state,
)
from tests.mutants.mutation import Mutation

GROUPS: Final[tuple[tuple[str, tuple[Mutation, ...]], ...]] = (
    ("The state machine", of_state.MUTATIONS),
    ("The order of batches", of_order.MUTATIONS),
    ("Leases and members", of_leases.MUTATIONS),
    ("Sessions", of_sessions.MUTATIONS),
    ("Exact sessions", of_exact.MUTATIONS),
    ("What clients are sent", of_serving.MUTATIONS),
    ("The log of a single server", of_disk.MUTATIONS),
    ("Recipes", of_recipes.MUTATIONS),
)
MUTATIONS: Final = tuple(one for _, group in GROUPS for one in group)
BY_NAME: Final = {one.name: one for one in MUTATIONS}
