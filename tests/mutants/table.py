"""All mutations, in groups: those that the simulated worlds find, and those for all suites.

The second kind is seldom seen: the second occurrence, a restart, a counter that wraps, an error in
the middle, what is undone, what is given back twice. Nothing runs the suites on them yet.
"""

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
    seldom_client,
    seldom_commands,
    seldom_history,
    seldom_log,
    seldom_recipes,
    seldom_server,
    seldom_state,
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

SELDOM_GROUPS: Final[tuple[tuple[str, tuple[Mutation, ...]], ...]] = (
    ("State", seldom_state.MUTATIONS),
    ("Logs, backups and what Apache has left", seldom_log.MUTATIONS),
    ("The server", seldom_server.MUTATIONS),
    ("The client", seldom_client.MUTATIONS),
    ("Recipes", seldom_recipes.MUTATIONS),
    ("History", seldom_history.MUTATIONS),
    ("Commands and the dashboard", seldom_commands.MUTATIONS),
)
SELDOM: Final = tuple(one for _, group in SELDOM_GROUPS for one in group)
