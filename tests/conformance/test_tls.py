"""TLS on both servers, from the same files: who a client is, and what that lets it do."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from paddock import ACL, ConnectionLostError, Identity, Permission, connect
from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.tls.context import Credentials
from tests.conformance.conftest import ONE_SERVER_EACH, SERVERS
from tests.conformance.differences import TLS_VERSION
from tests.support import requests as rq
from tests.support import wire, zkcli
from tests.support.certificates import DAY, Authority, Issued, client_context, name
from tests.support.records import Acl, Code
from tests.support.server import Options, Server, ServerMissingError, free_port

DEADLINE_S = 60.0
PASSWORD = "changeit"
ADMINISTRATOR = "CN=admin,O=Example"

#: Subjects as certificates have them, one attribute after the other, and as Java writes them.
SUBJECTS = (
    (("CN=alice",), "CN=alice"),
    (("C=DE", "O=Example", "OU=Sales", "CN=alice"), "CN=alice,OU=Sales,O=Example,C=DE"),
    (("DC=org", "DC=example", "UID=alice"), "UID=alice,DC=example,DC=org"),
    (("O=a, b", 'CN=a"b+c=<d>;#\\'), r"CN=a\"b\+c\=\<d\>\;\#\\,O=a\, b"),
    (("O= spaces ", "CN=#alice"), r"CN=\#alice,O=\ spaces\ "),
    (("O=日本", "CN=é"), "CN=é,O=日本"),
    (("CN=alice", "E=a@b.org"), "1.2.840.113549.1.9.1=#16076140622e6f7267,CN=alice"),
)

#: Ids for ACLs, and whether they are names.
NAMES = {
    "": True,
    "CN=alice": True,
    " cn = alice ; O=Example": True,
    "CN=alice+UID=7,O=Example": True,
    "CN=": True,
    'CN="a, b",O=c': True,
    r"CN=a\, \2C b": True,
    "OID.2.5.4.3=#130161": True,
    "1.2.3=x": True,
    "alice": False,
    "XYZ=alice": False,
    "CN=alice,": False,
    "CN=a+": False,
    "CN=<a>": False,
    'CN="a': False,
    'CN="a"b': False,
    r"CN=\x": False,
    r"CN=\4g": False,
    "CN=#1": False,
    "CN=#1302": False,
    "3.1=a": False,
    "1.40=a": False,
}


@dataclass(frozen=True, slots=True)
class Secure:
    """A server with a secure port, and who issues certificates for it."""

    server: Server
    address: wire.Address
    authority: Authority
    folder: Path

    def connect(self, issued: Issued | None, version: str | None = None) -> wire.Client:
        version = version or TLS_VERSION.on(self.server)[0]
        context = client_context(self.authority.pem(), self.folder, issued, version=version)
        return wire.connect(self.address, tls=context)


@contextlib.contextmanager
def started(kind: str, folder: Path, **settings: str) -> Iterator[Secure]:
    authority = Authority()
    key_store = authority.issue(name("CN=server")).write(folder / "server.pem")
    trust_store = folder / "trust.pem"
    trust_store.write_bytes(authority.pem())
    port = free_port()
    keys = {
        "secureClientPort": str(port),
        "secureClientPortAddress": "127.0.0.1",
        "ssl.keyStore.location": str(key_store),
        "ssl.trustStore.location": str(trust_store),
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        **settings,
    }
    try:
        with SERVERS[kind](Options(extra=tuple(keys.items()))) as server:
            yield Secure(server, ("127.0.0.1", port), authority, folder)
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=ONE_SERVER_EACH)
def secure(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("tls")
    keys = {"X509AuthenticationProvider.superUser": ADMINISTRATOR}
    with started(request.param, folder, **keys) as server:
        yield server


def only(identity: str) -> tuple[Acl, ...]:
    return (Acl(31, "x509", identity),)


@pytest.mark.parametrize(("subject", "shown"), SUBJECTS, ids=lambda one: one[-1])
def test_a_client_has_the_name_of_its_certificate(
    secure: Secure, subject: tuple[str, ...], shown: str
) -> None:
    with secure.connect(secure.authority.issue(name(*subject))) as client:
        assert client.call(rq.who_am_i()).pairs == {("ip", "127.0.0.1"), ("x509", shown)}
        client.close()


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_which_versions_are_spoken(secure: Secure, version: str) -> None:
    alice = secure.authority.issue(name("CN=alice"))
    if version in TLS_VERSION.on(secure.server):
        with secure.connect(alice, version) as client:
            assert client.session_id
            client.close()
    else:
        with pytest.raises((OSError, wire.ConnectionClosedError)):
            secure.connect(alice, version)


def test_an_acl_is_for_exactly_one_certificate(secure: Secure) -> None:
    alice = secure.authority.issue(name("O=Example", "CN=alice"))
    bob = secure.authority.issue(name("O=Example", "CN=bob"))
    with secure.connect(alice) as hers, secure.connect(bob) as his:
        assert hers.call(rq.create("/one", acl=only("CN=alice,O=Example"))).err == Code.OK
        assert hers.call(rq.create("/spaced", acl=only("CN=alice, O=Example"))).err == Code.OK
        assert hers.call(rq.create("/auth", acl=[Acl(31, "auth", "")])).err == Code.OK
        assert hers.call(rq.get_acl("/auth")).acl == only("CN=alice,O=Example")
        assert hers.call(rq.get_data("/one")).err == Code.OK
        # Ids are compared as they are written.
        assert hers.call(rq.get_data("/spaced")).err == Code.NO_AUTH
        assert his.call(rq.get_data("/one")).err == Code.NO_AUTH
        assert his.call(rq.set_acl("/one", only("CN=bob,O=Example"))).err == Code.NO_AUTH
        hers.close()
        his.close()


def test_an_id_must_be_a_name(secure: Secure) -> None:
    with secure.connect(secure.authority.issue(name("CN=alice"))) as client:
        for number, (identity, is_name) in enumerate(NAMES.items()):
            reply = client.call(rq.create(f"/name{number}", acl=only(identity)))
            assert (identity, reply.err) == (identity, Code.OK if is_name else Code.INVALID_ACL)
        client.close()


def test_the_super_user_may_do_everything(secure: Secure) -> None:
    alice = secure.authority.issue(name("O=Example", "CN=alice"))
    with secure.connect(alice) as client:
        assert client.call(rq.create("/super", acl=only("CN=alice,O=Example"))).err == Code.OK
        client.close()
    with secure.connect(secure.authority.issue(name("O=Example", "CN=admin"))) as client:
        assert client.call(rq.set_data("/super", b"x")).err == Code.OK
        assert client.call(rq.create("/by-super", acl=[Acl(31, "auth", "")])).err == Code.OK
        assert client.call(rq.get_acl("/by-super")).acl == only(ADMINISTRATOR)
        client.close()


def test_an_auth_packet_may_say_what_is_known(secure: Secure) -> None:
    with secure.connect(secure.authority.issue(name("CN=alice"))) as client:
        assert client.call(rq.auth("x509", b"")).err == Code.OK
        client.close()


def test_the_plain_port_takes_acls_for_certificates(secure: Secure) -> None:
    with wire.connect(secure.server.address) as client:
        assert client.call(rq.create("/plain", acl=only("CN=alice"))).err == Code.OK
        assert client.call(rq.get_data("/plain")).err == Code.NO_AUTH
        client.close()


def test_without_a_secure_port_there_is_no_such_scheme(client: wire.Client, base: str) -> None:
    reply = client.call(rq.create(f"{base}/a", acl=only("CN=alice")))
    assert reply.err == Code.INVALID_ACL


def test_nobody_gets_in_without_a_good_certificate(secure: Secure) -> None:
    alice = name("CN=alice")
    for issued in (
        None,
        Authority("Somebody else").issue(alice),
        secure.authority.issue(alice, valid=(-9 * DAY, -DAY)),
        secure.authority.issue(alice, valid=(DAY, 9 * DAY)),
    ):
        with pytest.raises((ssl.SSLError, ConnectionError, wire.ConnectionClosedError)):
            secure.connect(issued)


def test_plain_text_gets_nothing_from_the_secure_port(secure: Secure) -> None:
    with wire.Connection(secure.address) as plain:
        plain.send_bytes(b"srvr\n\n")
        assert b"Zookeeper" not in plain.wait_closed()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Secure]:
    with started("paddock", tmp_path) as server:
        yield server


class TestClients:
    """Clients that others have written, on our secure port."""

    def test_kazoo(self, ours: Secure) -> None:
        alice = ours.authority.issue(name("CN=alice"))
        key_store = str(alice.write(ours.folder / "kazoo.pem"))
        client = KazooClient(
            f"localhost:{ours.address[1]}",
            use_ssl=True,
            ca=str(ours.folder / "trust.pem"),
            certfile=key_store,
            keyfile=key_store,
        )
        client.start(timeout=DEADLINE_S)
        try:
            client.create("/kazoo", b"x", acl=[make_acl("x509", "CN=alice", all=True)])
            assert client.get("/kazoo")[0] == b"x"
        finally:
            client.stop()
            client.close()

    @pytest.mark.judge
    def test_the_shell_of_apache(self, ours: Secure) -> None:
        java_client = ours.authority.issue(name("CN=java"))
        properties = {
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.client.secure": "true",
            "zookeeper.ssl.keyStore.location": str(java_client.write(ours.folder / "java.pem")),
            "zookeeper.ssl.trustStore.location": str(ours.folder / "trust.pem"),
        }
        try:
            shell = zkcli.run(
                ours.address,
                ["create /java x x509:CN=java:cdrwa", "get /java", "getAcl /java"],
                properties,
            )
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        assert shell.outputs == [
            ["Created /java"],
            ["x"],
            ["'x509,'CN=java", ": cdrwa"],
        ]


@pytest.mark.judge
@pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool is missing")
class TestConversions:
    """The commands that are told for a store of Java make one that can be used."""

    @pytest.fixture(params=["JKS", "PKCS12"])
    def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        path = tmp_path / ("server.jks" if request.param == "JKS" else "server.p12")
        command = ["keytool", "-genkeypair", "-alias", "server", "-dname", "CN=server"]
        command += ["-keyalg", "EC", "-keystore", str(path), "-storetype", request.param]
        subprocess.run(
            [*command, "-storepass", PASSWORD, "-keypass", PASSWORD],
            check=True,
            capture_output=True,
            timeout=DEADLINE_S,
        )
        return path

    def test_of_a_key_store(self, store: Path) -> None:
        settings = {"tls_client_auth": "none"}
        command = self._command(tls_key_store=store, **settings)
        self._run(command)
        config = ServerConfig(
            secure_port=0, tls_key_store=store.with_suffix(".pem"), tls_client_auth="none"
        )
        Credentials(config, lambda: time.time_ns() // 1_000_000)

    def test_of_a_trust_store(self, store: Path, tmp_path: Path) -> None:
        key_store = Authority().issue(name("CN=server")).write(tmp_path / "key.pem")
        command = self._command(tls_key_store=key_store, tls_trust_store=store)
        self._run(command)
        config = ServerConfig(
            secure_port=0, tls_key_store=key_store, tls_trust_store=store.with_suffix(".pem")
        )
        context = Credentials(config, lambda: time.time_ns() // 1_000_000).context
        assert len(context.get_ca_certs()) + context.cert_store_stats()["x509"] >= 1

    def _command(self, **settings: object) -> str:
        with pytest.raises(ConfigError) as caught:
            Credentials(ServerConfig(secure_port=0, **settings), lambda: 0)  # type: ignore[arg-type]
        return str(caught.value).partition("convert it: ")[2]

    def _run(self, command: str) -> None:
        """Run it with the passwords that a person would type."""
        command = command.replace(
            "keytool -importkeystore",
            f"keytool -importkeystore -srcstorepass {PASSWORD} -deststorepass {PASSWORD}",
        )
        command = command.replace("keytool -list", f"keytool -list -storepass {PASSWORD}")
        command = command.replace("openssl pkcs12", f"openssl pkcs12 -passin pass:{PASSWORD}")
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=DEADLINE_S
        )
        assert done.returncode == 0, done


def test_our_own_client_on_both_servers(secure: Secure) -> None:
    carol = secure.authority.issue(name("CN=carol"))
    context = client_context(secure.authority.pem(), secure.folder, carol)
    stranger = client_context(Authority("Another").pem(), secure.folder, carol)
    hosts = f"localhost:{secure.address[1]}"

    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            async with connect(hosts, tls=context, random=Random(1)) as client:
                own = [ACL(Permission.ALL, Identity("x509", "CN=carol"))]
                await client.create("/carol", b"x", acl=own)
                assert (await client.get("/carol")).data == b"x"
            with pytest.raises(ConnectionLostError, match="its certificate is not accepted: "):
                await connect(hosts, tls=stranger, session_timeout=1, random=Random(1)).start()

    asyncio.run(main())
