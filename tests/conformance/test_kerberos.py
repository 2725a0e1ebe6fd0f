"""Kerberos: foreign clients on Paddock and on Apache ZooKeeper, each with a key of one KDC.

Apache's C client, as Debian builds it, has no SASL.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.protocol.states import KazooState
from kazoo.security import make_acl

from paddock.server.sasl.local_names import LocalNames, NameRefusedError
from tests.conformance.conftest import ONE_SERVER_EACH
from tests.conformance.differences import KERBEROS_AS_SOMEBODY_ELSE, KERBEROS_OF_ANOTHER_REALM
from tests.support import requests as rq
from tests.support import wire, zkcli
from tests.support.apache import find_jar, find_java
from tests.support.judges import skipped_where_missing
from tests.support.kerberos import (
    OTHER,
    REALM,
    Initiator,
    Kdc,
    KerberosApache,
    KerberosApache39,
    KerberosPaddock,
    within,
)
from tests.support.records import Code
from tests.support.server import Server

pytestmark = pytest.mark.judge

DEADLINE_S: Final = 60.0
SERVERS: Final[dict[str, Callable[..., Server]]] = {
    "paddock": KerberosPaddock,
    "apache": KerberosApache,
    "apache-3.9": KerberosApache39,
}
ALICE: Final = f"alice@{REALM}"
SETTINGS: Final = {
    "security.auth_to_local": "RULE:[2:$1;$2](^team;.*$)s/;.*$/-crew/ DEFAULT",
    "kerberos.removeHostFromPrincipal": "true",
    "kerberos.removeRealmFromPrincipal": "true",
}
RULES: Final = (
    "DEFAULT",
    "RULE:[1:$1@$0](.*@OTHER.TEST)s/@.*// RULE:[2:$1;$2](^zk;.*$)s/;.*$// DEFAULT",
    r"RULE:[2:$2-$1]s/([a-z]+)\.example/$1\$/g RULE:[1:$1](ali.*) RULE:[1:nobody]",
    "RULE:[2:$1$0$2] RULE:[1:$1]s/i/I/g",
    "RULE:[1:$1](ali) RULE:[2:$1](.*) RULE:[1:$1@$0](bob@OTHER.TEST)",
)
NO_RULE: Final = "-"

# Reads rules and a principal, line by line, and asks Apache's class for the short name.
_NAMES: Final = """\
import java.util.Scanner;
import org.apache.zookeeper.server.auth.KerberosName;

class Names {
    public static void main(String[] none) throws Exception {
        for (Scanner in = new Scanner(System.in); in.hasNextLine(); ) {
            System.setProperty("zookeeper.security.auth_to_local", in.nextLine());
            KerberosName.setConfiguration();
            KerberosName name = new KerberosName(in.nextLine());
            try {
                System.out.println(name.getShortName());
            } catch (KerberosName.NoMatchingRule unmatched) {
                System.out.println("-");
            }
        }
    }
}
"""


@pytest.fixture(scope="module")
def kdc() -> Iterator[Kdc]:
    with skipped_where_missing(), Kdc() as kdc:
        yield kdc


@contextlib.contextmanager
def running(name: str, kdc: Kdc, settings: dict[str, str] | None = None) -> Iterator[Server]:
    with skipped_where_missing(), SERVERS[name](kdc, settings) as server:
        yield server


@pytest.fixture(scope="module", params=ONE_SERVER_EACH)
def kerberized(request: pytest.FixtureRequest, kdc: Kdc) -> Iterator[Server]:
    with running(request.param, kdc) as server:
        yield server


@contextlib.contextmanager
def kazoo(
    server: Server, listener: Callable[[str], None] | None = None, **options: str
) -> Iterator[KazooClient]:
    # By the name, as it is that of the server's principal.
    client = KazooClient(
        f"localhost:{server.port}", sasl_options={"mechanism": "GSSAPI", **options}
    )
    if listener is not None:
        client.add_listener(listener)
    try:
        client.start()
        yield client
    finally:
        client.stop()
        client.close()


def identities(server: Server, *, claims: str | None = None) -> set[tuple[str, str]]:
    """Authenticate with the tickets of the environment; return who one is to the server."""
    initiator = Initiator()
    with wire.connect(server.address) as client:
        proof = client.call(rq.sasl(initiator.first)).token
        offer = client.call(rq.sasl(initiator.confirm(proof or b""))).token
        # No security layer. Apache's says how long a message may be, which means nothing then.
        assert initiator.offer(offer or b"")[:1] == b"\1"
        last = client.call(rq.sasl(initiator.choose(b"\1\0\0\0" + (claims or "").encode())))
        if last.err != Code.OK:
            assert client.wait_closed() == b""
            return set()
        assert last.token is None
        found = client.call(rq.who_am_i()).pairs
        assert found is not None
        return found - {("ip", "127.0.0.1")}


def test_kazoo_is_known_and_alone_has_what_is_its_own(kdc: Kdc, kerberized: Server) -> None:
    own = [make_acl("sasl", ALICE, all=True)]
    with within(kdc.environment(kdc.kinit("alice"))), kazoo(kerberized) as alice:
        alice.create("/hers", b"1", acl=own)
        assert alice.get("/hers")[0] == b"1"
        with within(kdc.environment(kdc.kinit("bob"))), kazoo(kerberized) as bob:
            with pytest.raises(NoAuthError):
                bob.get("/hers")
        alice.delete("/hers")


def test_kazoo_with_a_ticket_for_another_service_fails(
    kdc: Kdc, kerberized: Server, caplog: pytest.LogCaptureFixture
) -> None:
    kdc.keytab("other/localhost")
    lost = threading.Event()

    def listen(state: str) -> None:
        if state == KazooState.LOST:
            lost.set()

    tickets = kdc.environment(kdc.kinit("alice"))
    # It is connected first, and then refused.
    with within(tickets), kazoo(kerberized, listen, service="other"):
        assert lost.wait(DEADLINE_S)
    assert "AUTH_FAILED closing" in caplog.text


def test_java_is_known_and_alone_has_what_is_its_own(
    kdc: Kdc, kerberized: Server, tmp_path: Path
) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(
        "Client {\n  com.sun.security.auth.module.Krb5LoginModule required\n"
        f'  useTicketCache=true ticketCache="{kdc.kinit("alice")}" doNotPrompt=true;\n}};\n'
    )
    with skipped_where_missing():
        transcript = zkcli.run(
            kerberized.address,
            [
                "whoami",
                f"create /java 1 sasl:{ALICE}:cdrwa",
                "get /java",
                f"create /bobs 1 sasl:bob@{REALM}:r",
                "get /bobs",
                "delete /java",
            ],
            {"java.security.auth.login.config": str(jaas), **kdc.java()},
        )
    outputs = transcript.outputs
    assert f"sasl: {ALICE}" in outputs[0]
    assert outputs[2:] == [["1"], ["Created /bobs"], outputs[4], []]
    assert "Insufficient permission" in outputs[4][0]


def test_a_principal_of_a_service_has_its_host(kdc: Kdc, kerberized: Server) -> None:
    with within(kdc.environment(kdc.kinit("team/x.example.com"))):
        assert identities(kerberized) == {("sasl", f"team/x.example.com@{REALM}")}


def test_who_asks_to_act_as_somebody_else_never_is_somebody_else(
    kdc: Kdc, kerberized: Server
) -> None:
    with within(kdc.environment(kdc.kinit("alice"))):
        assert identities(kerberized, claims=ALICE) == {("sasl", ALICE)}
        is_let_in = KERBEROS_AS_SOMEBODY_ELSE.on(kerberized)
        claimed = identities(kerberized, claims=f"bob@{REALM}")
        assert claimed == ({("sasl", ALICE)} if is_let_in else set())


def test_a_user_of_a_trusted_realm(kdc: Kdc, kerberized: Server) -> None:
    with within(kdc.environment(kdc.kinit(f"carol@{OTHER}"))):
        assert identities(kerberized, claims=f"carol@{OTHER}") == {("sasl", f"carol@{OTHER}")}
        is_anybody = KERBEROS_OF_ANOTHER_REALM.on(kerberized)
        claimed = identities(kerberized, claims=ALICE)
        assert claimed == ({("sasl", ALICE)} if is_anybody else set())


@pytest.mark.parametrize(
    "name", [pytest.param("apache", marks=[pytest.mark.foreign, pytest.mark.long]), "paddock"]
)
def test_settings_make_names_of_principals(kdc: Kdc, name: str) -> None:
    users = {"alice": "alice", "team/x.example.com": "team-crew", "zk/y.example.com": "zk"}
    with running(name, kdc, SETTINGS) as server:
        for principal, expected in users.items():
            with within(kdc.environment(kdc.kinit(principal))):
                assert identities(server) == {("sasl", expected)}


@pytest.mark.foreign
def test_the_rules_mean_what_apache_s_mean(kdc: Kdc, tmp_path: Path) -> None:
    principals = [
        *(f"{name}@{realm}" for name in ("alice", "bob", "") for realm in (REALM, OTHER)),
        *(f"{name}/{host}@{REALM}" for name in ("zk", "team") for host in ("a.example.com", "b")),
    ]
    ours = {(rules, one): _our_name(rules, one) for rules in RULES for one in principals}
    source = tmp_path / "Names.java"
    source.write_text(_NAMES)
    with skipped_where_missing():
        command = [find_java(), *(f"-D{key}={value}" for key, value in kdc.java().items())]
        command += ["-cp", str(find_jar()), str(source)]
    asked = "".join(f"{rules}\n{principal}\n" for rules, principal in ours)
    answers = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True)
    assert dict(zip(ours, answers.stdout.splitlines(), strict=True)) == ours


def _our_name(rules: str, principal: str) -> str:
    names = LocalNames(rules, own_realm=REALM, has_host=False, has_realm=False)
    try:
        identity = names.identity(principal)
    except NameRefusedError:
        return NO_RULE
    return NO_RULE if identity == principal else identity
