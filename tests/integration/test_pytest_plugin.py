"""The pytest plugin, as users have it: their tests run in a pytest of their own."""

from __future__ import annotations

from pathlib import Path

from tests.support.pytest_run import STRICT_ASYNCIO, run_pytest

KAZOO = """
    import threading

    import pytest
    from kazoo.client import KazooClient, KazooState
    from kazoo.exceptions import ConnectionLoss


    def told(client, wanted):
        event = threading.Event()
        client.add_listener(lambda state: state == wanted and event.set())
        return event


    def test_a_lock_is_lost_with_its_session(paddock_server, paddock_kazoo):
        holder, other = paddock_kazoo(), paddock_kazoo()
        lost = told(holder, KazooState.LOST)
        assert holder.Lock("/lock").acquire()
        paddock_server.expire(holder)
        assert other.Lock("/lock").acquire(timeout=60)
        assert lost.wait(60)


    def test_a_session_is_expired_by_its_number(paddock_server, paddock_kazoo):
        one, other = paddock_kazoo(), paddock_kazoo()
        one.create("/worker", ephemeral=True)
        paddock_server.expire(other.get("/worker")[1].ephemeralOwner)
        assert other.exists("/worker") is None


    def test_a_client_that_is_cut_off_comes_back(paddock_server, paddock_kazoo):
        client, other = paddock_kazoo(), paddock_kazoo()
        suspended = told(client, KazooState.SUSPENDED)
        connected = told(client, KazooState.CONNECTED)
        client.create("/worker", ephemeral=True)
        session = client.client_id
        with paddock_server.partition(client):
            assert suspended.wait(60)
            assert other.exists("/worker") is not None
            assert not connected.is_set()
        assert connected.wait(60)
        assert client.client_id == session


    def test_a_client_that_is_cut_off_can_lose_its_session(paddock_server, paddock_kazoo):
        client, other = paddock_kazoo(), paddock_kazoo()
        suspended, lost = told(client, KazooState.SUSPENDED), told(client, KazooState.LOST)
        client.create("/worker", ephemeral=True)
        paddock_server.partition(client)
        assert suspended.wait(60)
        paddock_server.expire(client)
        assert other.exists("/worker") is None
        assert not lost.is_set()
        paddock_server.heal()
        assert lost.wait(60)


    def test_a_client_can_be_left_cut_off(paddock_server, paddock_kazoo):
        paddock_server.partition(paddock_kazoo())


    @pytest.mark.parametrize("options", [{}, {"ephemeral": True}, {"include_data": True}])
    def test_a_reply_is_lost(paddock_server, paddock_kazoo, options):
        client = paddock_kazoo()
        with paddock_server.drop_reply("create") as fault:
            with pytest.raises(ConnectionLoss):
                client.create("/order", **options)
        assert fault.hits[0].paths == ("/order",)
        assert client.retry(client.exists, "/order") is not None


    def test_any_client_can_be_brought_along(paddock_server, paddock_hosts):
        client = KazooClient(paddock_hosts)
        client.start()
        paddock_server.expire(client)
        client.stop()
        client.close()
"""

BLOCKING = """
    import threading

    import paddock
    import pytest


    @pytest.mark.parametrize("round", [1, 2])
    def test_every_test_has_a_server_of_its_own(paddock_client, round):
        assert paddock_client.children("/") == ["zookeeper"]
        paddock_client.create("/color")


    def test_several_clients_see_the_same(paddock_client, paddock_connect):
        other = paddock_connect(session_timeout=3.5)
        assert other.session_timeout == 3.5
        paddock_client.create("/color", b"blue")
        assert other.get("/color").data == b"blue"


    def test_a_session_ends(paddock_server, paddock_client, paddock_connect):
        worker = paddock_connect()
        worker.create("/worker", ephemeral=True)
        paddock_server.expire(worker)
        assert paddock_client.exists("/worker") is None
        assert [*worker.states()][-1].name == "EXPIRED"


    def test_a_client_finds_out_about_silence(paddock_server, paddock_connect):
        client = paddock_connect(session_timeout=2)
        with paddock_server.partition(client, silent=True):
            with pytest.raises(paddock.ConnectionLostError):
                client.get("/")


    def test_a_client_that_is_cut_off_does_not_hold_up_the_end(paddock_server, paddock_client):
        paddock_server.partition(paddock_client, silent=True)


    @pytest.fixture
    def last(paddock_server):
        yield
        # By then the clients have been closed, which takes long if nobody is there.
        assert paddock_server.is_running


    def test_a_server_can_be_left_stopped(paddock_server, last, paddock_client):
        paddock_server.stop()
        assert not paddock_server.is_running


    def test_a_reply_is_lost(paddock_server, paddock_client, paddock_connect):
        ordinary = paddock_connect(exact=False)
        with paddock_server.drop_reply("create", "/order"):
            with pytest.raises(paddock.ConnectionLostError):
                ordinary.create("/order")
        assert paddock_client.exists("/order") is not None
        with paddock_server.drop_reply("create", "/other"):
            assert paddock_client.create("/other") == "/other"


    def test_a_fault_that_does_not_happen_is_a_failure(paddock_server, paddock_client):
        with pytest.raises(AssertionError, match="nobody asked for create /order"):
            with paddock_server.drop_reply("create", "/order"):
                paddock_client.create("/other")
        paddock_client.create("/order")


    @pytest.mark.parametrize("round", [1, 2])
    def test_a_shared_server_has_a_chroot_for_each_test(paddock_shared_hosts, round):
        with paddock.sync.connect(paddock_shared_hosts) as client:
            assert client.children("/") == []
            client.create("/a/b", make_parents=True)


    def test_nothing_is_left_in_a_shared_server(paddock_shared_server):
        with paddock.sync.connect(paddock_shared_server.hosts) as client:
            assert client.children("/") == ["zookeeper"]


    @pytest.fixture(scope="module")
    def application(paddock_shared_server):
        return paddock_shared_server


    def test_a_shared_server_is_for_fixtures_that_live_longer(application, paddock_shared_server):
        assert application is paddock_shared_server
"""

ASYNC = """
    import asyncio

    import paddock
    import pytest
    from paddock.testing import in_virtual_time


    async def lose_a_reply_and_a_session(server):
        async with paddock.connect(server.hosts, exact=False) as client:
            with server.drop_reply("create", client=client):
                with pytest.raises(paddock.ConnectionLostError):
                    await client.create("/order", ephemeral=True)
            assert await client.exists("/order") is not None
            with server.partition(client):
                async for state in client.states():
                    if not state.is_connected:
                        break
            await client.wait_connected()
            server.expire(client)
            assert [state async for state in client.states()][-1].name == "EXPIRED"


    def test_with_asyncio_alone(paddock_server):
        asyncio.run(lose_a_reply_and_a_session(paddock_server))


    @pytest.mark.asyncio
    async def test_with_pytest_asyncio(paddock_server):
        await lose_a_reply_and_a_session(paddock_server)


    @pytest.mark.anyio
    @pytest.mark.parametrize("anyio_backend", ["asyncio"])
    async def test_with_anyio(paddock_server):
        await lose_a_reply_and_a_session(paddock_server)


    @in_virtual_time
    async def test_in_virtual_time(paddock_virtual_server, tmp_path):
        loop = asyncio.get_running_loop()
        async with paddock.connect(paddock_virtual_server.hosts, session_timeout=10) as client:
            await asyncio.sleep(5 * 3600)
            assert client.state.is_connected
            paddock_virtual_server.partition(client, silent=True)
            with pytest.raises(paddock.ConnectionLostError):
                await client.get("/")
            await asyncio.sleep(3600)
            paddock_virtual_server.heal()
            with pytest.raises(paddock.SessionExpiredError):
                await client.wait_connected()
        assert loop.time() > 6 * 3600


    class TestMethods:
        @in_virtual_time
        @pytest.mark.parametrize("hours", [1, 2])
        async def test_of_classes(self, paddock_virtual_server, paddock_virtual_time, hours):
            await asyncio.sleep(hours * 3600)
            assert paddock_virtual_time.now == hours * 3600


    def test_what_runs_in_virtual_time(paddock_virtual_time, paddock_virtual_server):
        async def expire():
            async with paddock.connect(paddock_virtual_server.hosts) as client:
                await paddock_virtual_server.expire(client)
                assert [state async for state in client.states()][-1].name == "EXPIRED"

        paddock_virtual_time.run(expire())
        before = paddock_virtual_time.now
        paddock_virtual_time.run(asyncio.sleep(60))
        assert paddock_virtual_time.now == before + 60
"""


def test_users_of_kazoo_are_served(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, KAZOO)
    assert run.passed == [*run.outcomes], run.output
    assert len(run.passed) == 9


def test_users_of_the_blocking_client_are_served(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, BLOCKING)
    assert run.passed == [*run.outcomes], run.output
    assert len(run.passed) == 13


def test_users_of_asyncio_are_served_whatever_runs_their_tests(tmp_path: Path) -> None:
    both = ("paddock", "asyncio", "anyio")
    run = run_pytest(tmp_path, ASYNC, settings=STRICT_ASYNCIO, plugins=both)
    assert run.passed == [*run.outcomes], run.output
    assert len(run.passed) == 7


def test_where_every_coroutine_is_taken_for_a_test_virtual_time_is_virtual(tmp_path: Path) -> None:
    settings = f"{STRICT_ASYNCIO}    asyncio_mode = auto\n"
    source = """
        from paddock.testing import in_virtual_time


        async def test_by_itself(paddock_server):
            assert ":" in paddock_server.hosts


        @in_virtual_time
        async def test_with_the_decorator(paddock_virtual_time):
            assert paddock_virtual_time.now == 0


        async def test_without_it(paddock_virtual_server):
            pass
    """
    run = run_pytest(tmp_path, source, settings=settings, plugins=("paddock", "asyncio"))
    assert run.outcomes == {
        "test_by_itself": "passed",
        "test_with_the_decorator": "passed",
        "test_without_it": "error",
    }, run.output
    assert "put @paddock.testing.in_virtual_time on the test" in run.output


def test_who_does_not_use_it_pays_nothing(tmp_path: Path) -> None:
    source = """
        import sys


        def test_what_is_loaded():
            ours = sorted(name for name in sys.modules if name.partition(".")[0] == "paddock")
            ours.remove("paddock._first_use")
            assert ours == ["paddock", "paddock.testing", "paddock.testing.plugin"]
            assert not {"asyncio", "kazoo", "uvloop", "ssl"} & {*sys.modules}
    """
    run = run_pytest(tmp_path, source)
    assert run.outcomes == {"test_what_is_loaded": "passed"}, run.output


def test_it_can_be_left_out(tmp_path: Path) -> None:
    source = "def test_a_server(paddock_server): pass\n"
    run = run_pytest(tmp_path, source, plugins=())
    assert run.outcomes == {"test_a_server": "error"}
    assert "fixture 'paddock_server' not found" in run.output


def test_a_test_that_fails_shows_what_came_by(tmp_path: Path) -> None:
    source = """
        def test_that_fails(paddock_client):
            paddock_client.create("/color")
            assert paddock_client.exists("/shape")


        def test_that_passes(paddock_client):
            paddock_client.create("/size")


        def test_with_a_shared_server(paddock_shared_hosts):
            pass


        def test_with_it_again(paddock_shared_hosts):
            assert "/test-1" in paddock_shared_hosts
    """
    run = run_pytest(tmp_path, source)
    assert run.outcomes == {
        "test_that_fails": "failure",
        "test_that_passes": "passed",
        "test_with_a_shared_server": "passed",
        "test_with_it_again": "failure",
    }
    assert run.output.count("Captured paddock teardown") == 2
    assert "connection 1: request 2: create /color" in run.output
    assert "connection 1: reply to 3: exists /shape: no such node" in run.output
    assert "create /test-2" in run.output
    assert "create /test-1" not in run.output
    assert "/size" not in run.output


def test_several_processes_share_nothing(tmp_path: Path) -> None:
    source = """
        import pytest


        @pytest.mark.parametrize("number", range(8))
        def test_a_server(paddock_client, paddock_shared_hosts, number):
            paddock_client.create("/color")
            assert sorted(paddock_client.children("/")) == ["color", "zookeeper"]
    """
    run = run_pytest(tmp_path, source, "-n", "2", plugins=("paddock", "xdist"))
    assert len(run.passed) == 8, run.output
