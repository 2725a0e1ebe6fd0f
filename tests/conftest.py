"""What every test gets: event loops in asyncio's debug mode; and what any may ask for: an ensemble.

Only loops made in this process: a server that a test starts as a process of its own runs as its
users run it, so the environment (PYTHONASYNCIODEBUG) stays as it is.
"""

import asyncio
import asyncio.events
import contextlib
from collections.abc import Iterator

import pytest

from tests.support.ensemble import ApacheEnsemble
from tests.support.judges import skip_or_fail
from tests.support.server import ServerMissingError

_new_event_loop = asyncio.events.new_event_loop


def _new_debug_loop() -> asyncio.AbstractEventLoop:
    loop = _new_event_loop()
    loop.set_debug(True)
    return loop


asyncio.events.new_event_loop = _new_debug_loop
asyncio.new_event_loop = _new_debug_loop


@pytest.fixture(scope="session")
def shared_ensemble() -> Iterator[ApacheEnsemble]:
    """Three Apache ZooKeepers, started once a process. For tests that do them no harm."""
    with contextlib.ExitStack() as stack:
        try:
            ensemble = stack.enter_context(ApacheEnsemble())
        except ServerMissingError as missing:
            skip_or_fail(str(missing))
        yield ensemble


@pytest.fixture
def ensemble(shared_ensemble: ApacheEnsemble) -> Iterator[ApacheEnsemble]:
    """Three Apache ZooKeepers that all serve. A test may end and pause them as it likes."""
    shared_ensemble.heal()
    yield shared_ensemble
    crashed = [member for member in shared_ensemble.members if member.crashed]
    tails = "\n".join(member.log_tail() for member in crashed)
    shared_ensemble.heal()
    assert not crashed, f"{crashed} ended by themselves:\n{tails}"
