"""Paddock as a service of Kerberos: what it accepts, and what it refuses, and says of it."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paddock
from paddock import (
    ACL,
    AuthenticationError,
    Identity,
    KerberosCredentials,
    Permission,
    SaslCredentials,
    SessionClosedRequireSaslError,
)
from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.sasl.kerberos import Kerberos, ServerKey, own_realm
from paddock.server.sasl.local_names import LocalNames
from paddock.server.sasl.mechanism import SaslError
from paddock.server.sasl.offer import make_offer
from tests.support import requests as rq
from tests.support import wire
from tests.support.judges import skipped_where_missing
from tests.support.kerberos import (
    OTHER,
    REALM,
    SERVICE,
    Initiator,
    Kdc,
    KerberosPaddock,
    another_clock,
    within,
)
from tests.support.records import Code
from tests.support.server import ServerFailedError

pytestmark = pytest.mark.judge

DEADLINE_S = 60.0
ALICE = f"alice@{REALM}"


@pytest.fixture(scope="module")
def kdc() -> Iterator[Kdc]:
    with skipped_where_missing(), Kdc() as kdc:
        yield kdc


@pytest.fixture(scope="module")
def server(kdc: Kdc) -> Iterator[KerberosPaddock]:
    with KerberosPaddock(kdc) as server:
        yield server


@pytest.fixture
def alice(kdc: Kdc) -> Iterator[None]:
    """This process has tickets of alice, new ones."""
    with within(kdc.environment(kdc.kinit("alice"))):
        yield


@pytest.fixture
def mechanism(kdc: Kdc) -> Kerberos:
    """What such a server has, without the server."""
    with within(kdc.environment()):
        key = ServerKey(kdc.keytab(SERVICE), SERVICE)
        return Kerberos(key.load(), LocalNames(own_realm=own_realm()))


def who_is(
    server: KerberosPaddock, sasl: KerberosCredentials | SaslCredentials | None = None
) -> set[tuple[str, str]]:
    """Connect, and return who one is then."""

    async def main() -> set[tuple[str, str]]:
        async with asyncio.timeout(DEADLINE_S):
            async with paddock.connect(server.hosts, sasl=sasl or KerberosCredentials()) as client:
                return set(await client.who_am_i()) - {("ip", "127.0.0.1")}

    return asyncio.run(main(), debug=True)


def is_refused(server: KerberosPaddock, sasl: KerberosCredentials | None = None) -> str:
    """Connect, which must fail; return what the server's log says of it."""
    before = server.log.stat().st_size
    with pytest.raises(AuthenticationError, match="the server did not accept the ticket"):
        who_is(server, sasl)
    log = server.log.read_bytes()[before:].decode()
    [line] = [line for line in log.splitlines() if "authentication failed" in line]
    return line


@pytest.mark.usefixtures("alice")
def test_a_user_is_known_after_a_restart_of_the_server_as_well(kdc: Kdc) -> None:
    own = [ACL(Permission.ALL, Identity("sasl", ALICE))]

    async def main(server: KerberosPaddock) -> None:
        async with asyncio.timeout(DEADLINE_S):
            kerberos, patient = KerberosCredentials(), DEADLINE_S
            async with paddock.connect(
                server.hosts, sasl=kerberos, session_timeout=patient
            ) as client:
                await client.create("/hers", b"1", acl=own)
                await asyncio.to_thread(server.restart)
                assert (await client.get("/hers")).data == b"1"

    with KerberosPaddock(kdc) as server:
        asyncio.run(main(server), debug=True)


@pytest.mark.usefixtures("alice")
def test_both_mechanisms_superusers_and_a_jaas_file(kdc: Kdc, tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(
        "Server {\n  com.sun.security.auth.module.Krb5LoginModule required\n"
        f'  useKeyTab=true keyTab="{kdc.keytab(SERVICE)}" storeKey=true principal="{SERVICE}";\n'
        "  org.apache.zookeeper.server.auth.DigestLoginModule required\n"
        '  user_bob="bobs-secret";\n};\n'
    )
    jaas.chmod(0o600)
    keys = {
        "paddock.kerberosKeytab": None,
        "paddock.jaasFile": str(jaas),
        "superUser": ALICE,
        "sessionRequireClientSASLAuth": "true",
    }
    with KerberosPaddock(kdc, keys) as server:
        assert who_is(server) == {("sasl", ALICE), ("super", "")}
        assert who_is(server, SaslCredentials("bob", "bobs-secret")) == {("sasl", "bob")}

        async def without() -> None:
            async with paddock.connect(server.hosts) as client:
                with pytest.raises(SessionClosedRequireSaslError):
                    await client.get("/")

        asyncio.run(without(), debug=True)
        assert "hers" not in is_refused(server, KerberosCredentials(server=_another(kdc)))


def _another(kdc: Kdc) -> str:
    """Return a service whose key the server does not have."""
    kdc.keytab("other/localhost")
    return "other/localhost"


@pytest.mark.usefixtures("alice")
def test_a_ticket_for_another_service_is_refused(kdc: Kdc, server: KerberosPaddock) -> None:
    line = is_refused(server, KerberosCredentials(server=_another(kdc)))
    assert f"SASL GSSAPI: Request ticket server other/localhost@{REALM} not found in keytab" in line


def test_keys_are_changed_while_the_server_runs(kdc: Kdc) -> None:
    with KerberosPaddock(kdc) as server:
        old = kdc.kinit("alice")
        with within(kdc.environment(old)):
            assert who_is(server) == {("sasl", ALICE)}
        kdc.change_keys(SERVICE)
        with within(kdc.environment(kdc.kinit("alice"))):
            assert "keytab is likely out of date" in is_refused(server)
            kdc.export(SERVICE)
            assert who_is(server) == {("sasl", ALICE)}
        # With a ticket of the old key.
        with within(kdc.environment(old)):
            assert who_is(server) == {("sasl", ALICE)}
        # The server asks no KDC, whether it runs or not.
        kdc.stop()
        try:
            with within(kdc.environment(old)):
                assert who_is(server) == {("sasl", ALICE)}
        finally:
            kdc.start()


@pytest.mark.usefixtures("alice")
def test_clocks_that_differ_are_named(kdc: Kdc) -> None:
    server = KerberosPaddock(kdc)
    with skipped_where_missing():
        server.environment = another_clock("+1h")
    with server:
        assert "SASL GSSAPI: Clock skew too great" in is_refused(server)


def test_a_ticket_that_has_expired_is_refused(kdc: Kdc) -> None:
    server = KerberosPaddock(kdc)
    with skipped_where_missing():
        # More than the five minutes that clocks may differ.
        server.environment = another_clock("+10m")
    with server, within(kdc.environment(kdc.kinit("alice", lifetime="1m"))):
        assert "SASL GSSAPI: Ticket expired" in is_refused(server)


@pytest.mark.usefixtures("alice")
def test_a_conversation_that_was_recorded_proves_nothing(server: KerberosPaddock) -> None:
    initiator = Initiator()
    tokens = [initiator.first, b"", b""]
    with wire.connect(server.address) as client:
        proof = client.call(rq.sasl(tokens[0])).token
        tokens[1] = initiator.confirm(proof or b"")
        assert initiator.offer(client.call(rq.sasl(tokens[1])).token or b"") == b"\1\0\0\0"
        tokens[2] = initiator.choose(b"\1\0\0\0")
        assert client.call(rq.sasl(tokens[2])).err == Code.OK
    with wire.connect(server.address) as thief:
        errors = [thief.call(rq.sasl(token)).err for token in tokens]
        assert errors == [Code.OK, Code.OK, Code.AUTH_FAILED]
        assert thief.wait_closed() == b""


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(
    ("last", "why"),
    [
        (b"\2\0\x10\0", "the client wants a security layer"),
        (b"\1", "the choice of a security layer has 1 bytes"),
        (b"\1\0\0\0bob", f"{ALICE} wants to act as bob"),
        (b"\1\0\0\0\x1b[31m" + b"b" * 5000, rf"wants to act as \?\[31m{'b' * 195}$"),
        (b"\1\0\0\0\xff", "is not UTF-8"),
    ],
    ids=["layer", "short", "another", "long", "bytes"],
)
def test_a_last_token_that_means_nothing_is_refused(
    mechanism: Kerberos, last: bytes, why: str
) -> None:
    initiator, exchange = Initiator(), mechanism.start()
    initiator.confirm(exchange.step(initiator.first).reply or b"")
    initiator.offer(exchange.step(b"").reply or b"")
    with pytest.raises(SaslError, match=why):
        exchange.step(initiator.choose(last))


@pytest.mark.usefixtures("alice")
def test_what_comes_between_must_be_nothing(mechanism: Kerberos) -> None:
    initiator, exchange = Initiator(), mechanism.start()
    initiator.confirm(exchange.step(initiator.first).reply or b"")
    with pytest.raises(SaslError, match="goes on although both sides are proved"):
        exchange.step(b"something")


@pytest.mark.usefixtures("alice")
def test_any_spoiled_token_is_refused_and_nothing_worse(mechanism: Kerberos) -> None:
    chance = random.Random(7)
    good = Initiator().first
    for _ in range(300):
        spoiled = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(spoiled))
            spoiled[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 3))
        if spoiled == good:
            continue
        with pytest.raises(SaslError):
            mechanism.start().step(bytes(spoiled))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"kerberos_keytab": Path("/nowhere/is")}, "the keytab /nowhere/is does not exist"),
        ({"kerberos_keytab": Path("/etc/passwd")}, "the keytab /etc/passwd has no key: "),
        ({"kerberos_principal": "zookeeper/elsewhere"}, "has no key for zookeeper/elsewhere: "),
        ({"kerberos_rules": "RULE:nothing"}, "the rule 'RULE:nothing' is not understood"),
    ],
    ids=["no keytab", "another file", "principal", "rules"],
)
def test_settings_that_cannot_be_are_errors(kdc: Kdc, settings: dict[str, Any], why: str) -> None:
    keytab = {"kerberos_keytab": kdc.keytab(SERVICE)}
    with within(kdc.environment()), pytest.raises(ConfigError, match=why):
        make_offer(ServerConfig(**{**keytab, **settings}), random.randbytes)


def test_one_key_is_enough(kdc: Kdc, tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(
        "Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };"
    )
    config = ServerConfig(jaas_file=jaas, kerberos_keytab=kdc.keytab(SERVICE))
    with pytest.raises(ConfigError, match="Kerberos has two keys"):
        make_offer(config, random.randbytes)


def test_a_principal_alone_has_its_key_in_the_keytab_of_the_system(kdc: Kdc) -> None:
    config = ServerConfig(kerberos_principal=SERVICE)
    with within(kdc.environment()), pytest.raises(ConfigError, match="the keytab of the system"):
        make_offer(config, random.randbytes)
    with within({**kdc.environment(), "KRB5_KTNAME": f"FILE:{kdc.keytab(SERVICE)}"}):
        offer = make_offer(config, random.randbytes)
    assert offer is not None
    assert [mechanism.name for mechanism in offer.mechanisms] == ["GSSAPI"]
    offer.close()


def test_a_keytab_that_everybody_can_read_is_warned_of(
    kdc: Kdc, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keytab = tmp_path / "keytab"
    keytab.write_bytes(kdc.keytab(SERVICE).read_bytes())
    for mode, expected in ((0o600, 0), (0o644, 1)):
        keytab.chmod(mode)
        with within(kdc.environment()):
            offer = make_offer(ServerConfig(kerberos_keytab=keytab), random.randbytes)
        assert offer is not None
        offer.close()
        told = [text for text in caplog.messages if "holds the key of this server" in text]
        assert len(told) == expected


def test_a_server_without_its_keytab_does_not_start(kdc: Kdc) -> None:
    server = KerberosPaddock(kdc, {"paddock.kerberosKeytab": "/etc/passwd"})
    with pytest.raises(ServerFailedError, match="the keytab /etc/passwd has no key") as failed:
        with server:
            pass
    assert "Traceback" not in str(failed.value)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"pip install 'paddock-zk\[kerberos\]'"):
        ServerKey(None, None).load()


def test_names_of_another_realm_are_their_own(kdc: Kdc, server: KerberosPaddock) -> None:
    with within(kdc.environment(kdc.kinit(f"carol@{OTHER}"))):
        assert who_is(server) == {("sasl", f"carol@{OTHER}")}
