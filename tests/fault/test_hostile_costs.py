"""What each attack costs, at a small scale: memory within what it may take, and nobody forgotten.

The work of many requests has to be many steps of the event loop. That is judged by shares of the
processor time of the server, which do not depend on the machine, nor on what else it does.

`make hostile` runs the same cases larger and writes the table of them; see `hostile_table`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fault.stage.hostile import Case, Range, check
from tests.fault.stage.hostile_table import all_cases

#: No figure of speed, only a guard against a server that hangs. Nobody waits for a tenth of it on a
#: machine that has nothing else to do.
WAIT_S_MAX = 4.0


@pytest.fixture(scope="module")
def range_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Range]:
    with Range(tmp_path_factory.mktemp("hostile"), scale=1) as range_:
        yield range_


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_others_are_served_in_between_and_memory_is_bounded(range_: Range, case: Case) -> None:
    cost = range_.run(case)
    print(f"\n  {cost}", end=" ")
    assert check(cost, 1, WAIT_S_MAX) == []
