"""Kerberos: our client on Apache ZooKeeper with a key of the same KDC, and what goes wrong.

All of it holds on Debian's, and in `make test-all` on the 3.9 that is fetched as well.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import paddock
from paddock import (
    ACL,
    AuthenticationError,
    Client,
    ConnectionLostError,
    Identity,
    InvalidArgumentError,
    KerberosCredentials,
    NoAuthError,
    Permission,
    SessionState,
)
from paddock.protocol import opcodes
from paddock.testing import FaultProxy
from tests.support.judges import skipped_where_missing
from tests.support.kerberos import (
    OTHER,
    REALM,
    SERVICE,
    STRANGE,
    Initiator,
    Kdc,
    KerberosApache,
    KerberosApache39,
    within,
)

DEADLINE_S = 60.0

pytestmark = pytest.mark.judge


@pytest.fixture(scope="module")
def kdc() -> Iterator[Kdc]:
    with skipped_where_missing(), Kdc() as kdc:
        yield kdc


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(KerberosApache, id="apache"),
        pytest.param(KerberosApache39, id="apache-3.9", marks=pytest.mark.long),
    ],
)
def server(request: pytest.FixtureRequest, kdc: Kdc) -> Iterator[KerberosApache]:
    with skipped_where_missing(), request.param(kdc) as server:
        yield server


@pytest.fixture(scope="module")
def tickets(kdc: Kdc) -> Path:
    return kdc.kinit("alice")


@pytest.fixture
def alice(kdc: Kdc, tickets: Path) -> Iterator[None]:
    """This process has the tickets of alice."""
    with within(kdc.environment(tickets)):
        yield


@pytest.fixture
def nobody(kdc: Kdc) -> Iterator[None]:
    """This process has no tickets."""
    with within(kdc.environment()):
        yield


def connect(
    address: tuple[str, int], sasl: KerberosCredentials | None = None, **settings: Any
) -> Client:
    hosts = f"{address[0]}:{address[1]}"
    return paddock.connect(hosts, sasl=sasl or KerberosCredentials(), random=Random(1), **settings)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scenario()

    asyncio.run(main(), debug=True)


def can_begin() -> bool:
    """Return whether the library makes a first token of the tickets that there are."""
    import gssapi

    try:
        Initiator()
    except gssapi.exceptions.GSSError:
        return False
    return True


def failure_of(server: KerberosApache, sasl: KerberosCredentials) -> str:
    """Return why a client cannot be opened."""
    failures: list[str] = []

    async def scenario() -> None:
        client = connect(server.address, sasl)
        with pytest.raises(AuthenticationError) as caught:
            await client.start()
        assert client.state is SessionState.AUTH_FAILED
        failures.append(str(caught.value))

    run(scenario)
    return failures[0]


@pytest.mark.usefixtures("alice")
def test_a_user_with_a_ticket_is_known_and_alone_has_what_is_hers(
    kdc: Kdc, server: KerberosApache
) -> None:
    async def scenario() -> None:
        seen: list[SessionState] = []
        own = [ACL(Permission.ALL, Identity("sasl", f"alice@{REALM}"))]
        alice = connect(server.address)
        bob = connect(server.address, KerberosCredentials("bob", kdc.keytab("bob")))
        alice.add_listener(seen.append)
        async with alice, bob:
            assert seen == [SessionState.CONNECTED, SessionState.SASL_AUTHENTICATED]
            assert ("sasl", f"alice@{REALM}") in await alice.who_am_i()
            assert ("sasl", f"bob@{REALM}") in await bob.who_am_i()
            await alice.create("/hers", b"1", acl=own)
            with pytest.raises(NoAuthError):
                await bob.get("/hers")
            await alice.delete("/hers")

    run(scenario)


@pytest.mark.usefixtures("alice")
def test_after_a_reconnect_it_is_proved_again_before_anything_is_asked(
    server: KerberosApache,
) -> None:
    async def scenario() -> None:
        async with FaultProxy(server.address) as proxy, connect(proxy.address) as client:
            own = [ACL(Permission.ALL, Identity("sasl", f"alice@{REALM}"))]
            await client.create("/after", b"1", acl=own)
            before = len(proxy.requests)
            proxy.when(operation="get").cut_before()
            assert (await client.get("/after")).data == b"1"
            asked = [request.operation for request in proxy.requests[before:]]
            proof = [opcodes.SASL, opcodes.SASL, opcodes.SASL]
            assert asked == [
                opcodes.GET_DATA,
                opcodes.CREATE_SESSION,
                *proof,
                opcodes.GET_DATA,
            ]
            await client.delete("/after")

    run(scenario)


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(
    "credentials",
    [
        KerberosCredentials(server=f"{SERVICE}@{REALM}"),
        KerberosCredentials(server=SERVICE),
        KerberosCredentials(server="localhost"),
        KerberosCredentials(f"alice@{REALM}"),
    ],
    ids=["principal", "without realm", "host", "named user"],
)
def test_the_names_may_be_given(server: KerberosApache, credentials: KerberosCredentials) -> None:
    async def scenario() -> None:
        async with connect(server.address, credentials) as client:
            assert ("sasl", f"alice@{REALM}") in await client.who_am_i()

    run(scenario)


def test_a_user_of_a_trusted_realm_is_known(kdc: Kdc, server: KerberosApache) -> None:
    async def scenario() -> None:
        async with connect(server.address) as client:
            assert ("sasl", f"carol@{OTHER}") in await client.who_am_i()

    with within(kdc.environment(kdc.kinit(f"carol@{OTHER}"))):
        run(scenario)


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(
    ("credentials", "why"),
    [
        (
            KerberosCredentials(service="kafka"),
            rf"the KDC does not know the server as 'kafka/localhost': .*kafka/localhost@{REALM}",
        ),
        (
            KerberosCredentials(server=f"{SERVICE}@{STRANGE}"),
            rf"the KDC does not know the server as '{SERVICE}@{STRANGE}': .*krbtgt/{STRANGE}@",
        ),
        (
            KerberosCredentials(server=f"{SERVICE}@{OTHER}"),
            rf"the KDC does not know the server as '{SERVICE}@{OTHER}': .*krbtgt/{OTHER}@",
        ),
        (KerberosCredentials("bob"), "Kerberos as 'bob': there is no ticket: run kinit"),
        (
            KerberosCredentials(keytab="/nowhere/is.keytab"),
            "the keytab /nowhere/is.keytab cannot be read: No such file or directory",
        ),
        (KerberosCredentials(keytab="/etc/passwd"), "/etc/passwd is not a keytab"),
    ],
    ids=["service", "strange realm", "realm that does not trust us", "user", "keytab", "no keytab"],
)
def test_what_is_wrong_is_an_error_that_says_so(
    server: KerberosApache, credentials: KerberosCredentials, why: str
) -> None:
    failure = failure_of(server, credentials)
    assert failure.startswith("connect: Kerberos")
    assert re.search(why, failure), failure


@pytest.mark.usefixtures("nobody")
def test_without_a_ticket_one_is_told_to_get_one(server: KerberosApache) -> None:
    failure = failure_of(server, KerberosCredentials())
    assert failure.startswith("connect: Kerberos: there is no ticket: run kinit (")


def test_a_keytab_whose_keys_were_changed_is_named(kdc: Kdc, server: KerberosApache) -> None:
    keytab = kdc.keytab("dora")
    kdc.change_keys("dora")
    with within(kdc.environment()):
        failure = failure_of(server, KerberosCredentials("dora", keytab))
    assert failure.startswith(f"connect: Kerberos as 'dora': the keytab {keytab} is of no use: ")


def test_a_ticket_that_has_expired_is_an_error_when_it_is_needed_again(
    kdc: Kdc, server: KerberosApache
) -> None:
    tickets = kdc.kinit("edith")

    async def scenario() -> None:
        async with FaultProxy(server.address) as proxy, connect(proxy.address) as client:
            await asyncio.to_thread(kdc.renew, tickets, "edith", lifetime="1s")
            while kdc.are_valid(tickets):
                # It is not asked for while there is a connection.
                await client.get("/")
            proxy.when(operation="get").cut_before()
            with pytest.raises(AuthenticationError, match="the ticket has expired: run kinit"):
                await client.get("/")
            assert client.state is SessionState.AUTH_FAILED
        # In its last second a ticket expires during the conversation, and from then on before it.
        while await asyncio.to_thread(can_begin):
            pass
        with pytest.raises(AuthenticationError, match="the ticket has expired: run kinit"):
            await connect(server.address).start()
        # As the message says.
        await asyncio.to_thread(kdc.renew, tickets, "edith")
        async with connect(server.address) as client:
            assert ("sasl", f"edith@{REALM}") in await client.who_am_i()

    with within(kdc.environment(tickets)):
        run(scenario)


def test_with_a_keytab_tickets_are_renewed_by_themselves(kdc: Kdc, server: KerberosApache) -> None:
    kdc.add("fred", lifetime="2 seconds")
    # For the same time as those that the client has.
    tickets = kdc.kinit("fred")
    credentials = KerberosCredentials("fred", kdc.keytab("fred"))

    async def scenario() -> None:
        async with FaultProxy(server.address) as proxy:
            async with connect(proxy.address, credentials) as client:
                await asyncio.to_thread(kdc.renew, tickets, "fred")
                while kdc.are_valid(tickets):
                    await client.get("/")
                proxy.when(operation="get").cut_before()
                assert (await client.get("/")).stat.version == 0
                assert ("sasl", f"fred@{REALM}") in await client.who_am_i()

    with within(kdc.environment()):
        run(scenario)


def test_a_server_without_the_key_of_the_ticket_refuses_it(
    kdc: Kdc, server: KerberosApache
) -> None:
    kdc.add("other/localhost")
    with within(kdc.environment(kdc.kinit("alice"))):
        failure = failure_of(server, KerberosCredentials(service="other"))
    assert "Kerberos: the server did not accept the ticket; its log says why" in failure


def test_a_kdc_that_is_gone_is_waited_for_as_long_as_the_session_may_live(
    kdc: Kdc, server: KerberosApache
) -> None:
    tickets = kdc.kinit("alice")
    # Without one for the server.
    unused = tickets.with_suffix(".unused")
    shutil.copy(tickets, unused)

    async def scenario() -> None:
        async with FaultProxy(server.address) as proxy, connect(proxy.address) as client:
            await asyncio.to_thread(kdc.stop)
            # The ticket for the server is still there.
            proxy.when(operation="get").cut_before()
            await client.get("/")
            shutil.copy(unused, tickets)
            proxy.when(operation="get").cut_before()
            asking = client.get("/")
            async for state in client.states():
                if state is SessionState.DISCONNECTED:
                    break
            await asyncio.to_thread(kdc.start)
            await asking
        await asyncio.to_thread(kdc.stop)
        shutil.copy(unused, tickets)
        why = "Cannot contact any KDC for realm .* is it running, and does krb5.conf name it"
        with pytest.raises(ConnectionLostError, match=why):
            await connect(server.address, session_timeout=1.0).start()

    try:
        with within(kdc.environment(tickets)):
            run(scenario)
    finally:
        if not kdc.alive:
            kdc.start()


def test_a_kdc_that_says_nothing_is_not_waited_for_longer_than_a_server(
    server: KerberosApache,
) -> None:
    with Kdc() as silent:
        tickets = silent.kinit("alice")
        os.kill(silent.pid, signal.SIGSTOP)

        async def scenario() -> None:
            client = connect(server.address, session_timeout=1.5)
            with pytest.raises(ConnectionLostError, match="the KDC has not answered in time"):
                await client.start()
            # However often it has tried.
            names = [thread.name for thread in threading.enumerate()]
            assert names.count("paddock-kerberos") == 1

        try:
            with within(silent.environment(tickets)):
                run(scenario)
        finally:
            os.kill(silent.pid, signal.SIGCONT)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)

    async def scenario() -> None:
        with pytest.raises(ImportError, match=r"pip install 'paddock-zk\[kerberos\]'"):
            connect(("127.0.0.1", 1))

    run(scenario)


@pytest.mark.parametrize(
    ("name", "value"),
    [("principal", ""), ("service", None), ("server", 7), ("keytab", 7), ("canonicalize", "no")],
)
def test_credentials_that_cannot_be_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{name}: expected"):
        KerberosCredentials(**{name: value})
