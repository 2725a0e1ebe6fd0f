"""The setup of every test process, and the shared fixtures.

Event loops of this process run in asyncio's debug mode, without the record of where each callback
and future was created: that record took two thirds of the time of a test. PYTHONASYNCIODEBUG=1
turns it on. The environment is not changed, so a server that a test starts as a process runs as its
users run it.

Signals that the run was started with as ignored are handled as usual (`tests.support.signals`), and
hypothesis has no deadline: no test asserts a time.

With CI set, a test that is skipped fails: what it needs is to be there.

A shared server is started once in each process of a run, when the first test asks for it, and runs
until the end. A test that uses it keeps to nodes of its own and does not harm the server.
"""

import asyncio
import asyncio.events
import contextlib
import math
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.support import skips
from tests.support.apache import ApacheServer
from tests.support.apache39 import ApacheServer39
from tests.support.awake import kept_awake
from tests.support.ensemble import ApacheEnsemble
from tests.support.etcd import Etcd, EtcdCluster
from tests.support.holding import Wrappers, wrappers_in
from tests.support.members import Ensemble
from tests.support.paddock_cluster import PaddockCluster
from tests.support.paddock_server import PaddockServer
from tests.support.server import Server, ServerMissingError
from tests.support.signals import restore_default_signals

restore_default_signals()
hypothesis.settings.register_profile("paddock", deadline=None)
hypothesis.settings.load_profile("paddock")

_new_event_loop = asyncio.events.new_event_loop
_SEVERAL = ["ensemble", pytest.param("cluster", marks=pytest.mark.cluster)]


def _new_debug_loop() -> asyncio.AbstractEventLoop:
    loop = _new_event_loop()
    if not loop.get_debug():
        loop.set_debug(True)
        # How long a callback takes depends on the machine, and tests read what is logged.
        loop.slow_callback_duration = math.inf
        # For others: callbacks, futures and transports. The loop itself knows.
        loop.get_debug = lambda: False  # type: ignore[method-assign]
    return loop


pytest_runtest_makereport = skips.pytest_runtest_makereport
pytest_make_collect_report = skips.pytest_make_collect_report
asyncio.events.new_event_loop = _new_debug_loop
asyncio.new_event_loop = _new_debug_loop


@pytest.fixture(scope="session")
def shared_paddock() -> Iterator[Server]:
    """A Paddock in a process of its own."""
    with PaddockServer() as running:
        yield running


@pytest.fixture(scope="session")
def shared_apache() -> Iterator[Server]:
    """An Apache ZooKeeper, Debian's."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(ApacheServer())
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture(scope="session")
def shared_apache_39() -> Iterator[Server]:
    """An Apache ZooKeeper 3.9, the one that is fetched."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(ApacheServer39())
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture(scope="session")
def shared_ensemble() -> Iterator[ApacheEnsemble]:
    """Three Apache ZooKeepers."""
    with contextlib.ExitStack() as stack:
        try:
            ensemble = stack.enter_context(ApacheEnsemble())
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        stack.enter_context(kept_awake(ensemble.members))
        yield ensemble


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[PaddockCluster]:
    """Three Paddocks on one etcd."""
    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(PaddockCluster(advertises=True))
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield cluster


@pytest.fixture
def ensemble(shared_ensemble: ApacheEnsemble) -> Iterator[ApacheEnsemble]:
    """Three Apache ZooKeepers, all serving. A test may stop and pause them."""
    with _healed(shared_ensemble):
        yield shared_ensemble


@pytest.fixture
def cluster(shared_cluster: PaddockCluster) -> Iterator[PaddockCluster]:
    """Three Paddocks on one etcd, all serving. A test may stop and pause them."""
    with _healed(shared_cluster):
        yield shared_cluster


@pytest.fixture(params=_SEVERAL)
def several(request: pytest.FixtureRequest) -> Ensemble:
    """Three servers that are one service: of Apache's, then of ours. A test may stop them."""
    found: Ensemble = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session", params=_SEVERAL)
def shared_several(request: pytest.FixtureRequest) -> Ensemble:
    """The same, for tests that do no harm to them."""
    found: Ensemble = request.getfixturevalue(f"shared_{request.param}")
    return found


@contextlib.contextmanager
def _healed(ensemble: Ensemble) -> Iterator[None]:
    """Have all members serve before and after; none may end by itself meanwhile."""
    ensemble.heal()
    yield
    crashed = [member for member in ensemble.members if member.crashed]
    tails = "\n".join(member.log_tail() for member in crashed)
    ensemble.heal()
    assert not crashed, f"{crashed} ended by themselves:\n{tails}"


@pytest.fixture(scope="module")
def shared_etcd() -> Iterator[Etcd]:
    """
    An etcd of one member for the tests of one file. A test that uses it keeps to names of its own;
    compaction is of all names, and no matter of the other files.
    """
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(Etcd())
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    """An etcd of one member that a test may stop, pause, fill and wipe."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(Etcd(tmp_path / "etcd"))
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture
def etcd_cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    """An etcd of three members that a test may stop and pause."""
    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(EtcdCluster(tmp_path / "etcd"))
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield cluster


@pytest.fixture
def wrappers(tmp_path: Path) -> Iterator[Wrappers]:
    """Start commands under locks and elections; at the end, check that no two held one at once."""
    with wrappers_in(tmp_path) as found:
        yield found
