"""What every test gets: event loops in asyncio's debug mode; and what any may ask for.

Only loops made in this process: a server that a test starts as a process of its own runs as its
users run it, so the environment (PYTHONASYNCIODEBUG) stays as it is. The loops check all that they
check in this mode, but do not note where in the code each callback and each future was made, which
took two thirds of the time of a test. With PYTHONASYNCIODEBUG=1 they do, for who has to know.

The shared servers are started once in each process of a run, when the first test asks for them, and
serve until its end: a process gets whole modules, and comes back to each server in most of them. A
test that uses them keeps to nodes of its own and does the servers no harm.
"""

import asyncio
import asyncio.events
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.apache import ApacheServer
from tests.support.apache39 import ApacheServer39
from tests.support.awake import kept_awake
from tests.support.ensemble import ApacheEnsemble
from tests.support.holding import Wrappers, wrappers_in
from tests.support.judges import skip_or_fail
from tests.support.paddock_server import PaddockServer
from tests.support.server import Server, ServerMissingError

_new_event_loop = asyncio.events.new_event_loop


def _new_debug_loop() -> asyncio.AbstractEventLoop:
    loop = _new_event_loop()
    if not loop.get_debug():
        loop.set_debug(True)
        # For others: callbacks, futures and transports. The loop itself knows.
        loop.get_debug = lambda: False  # type: ignore[method-assign]
    return loop


asyncio.events.new_event_loop = _new_debug_loop
asyncio.new_event_loop = _new_debug_loop


@pytest.fixture(scope="session")
def shared_paddock() -> Iterator[Server]:
    """A Paddock in a process of its own."""
    with PaddockServer() as running:
        yield running


@pytest.fixture(scope="session")
def shared_apache() -> Iterator[Server]:
    """An Apache ZooKeeper."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(ApacheServer())
        except ServerMissingError as missing:
            skip_or_fail(str(missing))
        yield running


@pytest.fixture(scope="session")
def shared_apache_39() -> Iterator[Server]:
    """An Apache ZooKeeper 3.9."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(ApacheServer39())
        except ServerMissingError as missing:
            skip_or_fail(str(missing))
        yield running


@pytest.fixture(scope="session")
def shared_ensemble() -> Iterator[ApacheEnsemble]:
    """Three Apache ZooKeepers."""
    with contextlib.ExitStack() as stack:
        try:
            ensemble = stack.enter_context(ApacheEnsemble())
        except ServerMissingError as missing:
            skip_or_fail(str(missing))
        stack.enter_context(kept_awake(ensemble.members))
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


@pytest.fixture
def wrappers(tmp_path: Path) -> Iterator[Wrappers]:
    """Starts commands that hold something; at the end none has seen another."""
    with wrappers_in(tmp_path) as found:
        yield found
