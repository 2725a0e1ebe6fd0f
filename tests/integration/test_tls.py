"""TLS over real sockets: who gets in, who does not, and that nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from paddock.server.config.config import ServerConfig
from tests.fault.stage.embedded import EmbeddedServer
from tests.fault.stage.process import eventually
from tests.support import requests as rq
from tests.support import wire
from tests.support.certificates import DAY, Authority, Issued, client_context, name
from tests.support.records import Acl, Code

DEADLINE_S = 30.0
ALICE = "CN=alice,O=Example"

#: What a client's first flight begins with; more of it is announced than ever comes.
HALF_HELLO = bytes.fromhex("160301020001fc0303") + bytes(20)

Start = Callable[..., "Place"]


class Place:
    """A server, its authority and its clients."""

    def __init__(self, folder: Path, authority: Authority, server: EmbeddedServer) -> None:
        self.folder = folder
        self.authority = authority
        self.server = server

    @property
    def secure(self) -> wire.Address:
        return self.server.secure_address

    def context(self, issued: Issued | None = None, **options: Any) -> ssl.SSLContext:
        return client_context(self.authority.pem(), self.folder, issued, **options)

    def connect(self, issued: Issued | None = None, **options: Any) -> wire.Client:
        return wire.connect(self.secure, tls=self.context(issued, **options))

    def alice(self) -> Issued:
        return self.authority.issue(name("O=Example", "CN=alice"))

    def certificate(self) -> int:
        """Connect, and give the serial number of the certificate that the server shows."""
        context = self.context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection(self.secure, timeout=DEADLINE_S)
        with context.wrap_socket(plain) as tls:
            shown = tls.getpeercert(binary_form=True)
            assert shown is not None
            return _serial_number(shown)


def _serial_number(der: bytes) -> int:
    from cryptography import x509

    return x509.load_der_x509_certificate(der).serial_number


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoop:
    if request.param == "uvloop":
        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


@pytest.fixture
def start(loop: asyncio.AbstractEventLoop, tmp_path: Path) -> Iterator[Start]:
    """Start a server with these settings; it ends with the test."""
    with contextlib.ExitStack() as stack:
        stack.callback(loop.close)

        def start(trusted: bytes | None = None, **settings: Any) -> Place:
            authority = Authority()
            key_store = authority.issue(name("CN=server")).write(tmp_path / "server.pem")
            trust_store = tmp_path / "trust.pem"
            trust_store.write_bytes(authority.pem() if trusted is None else trusted)
            settings.setdefault("secure_port", 0)
            config = ServerConfig(tls_key_store=key_store, tls_trust_store=trust_store, **settings)
            server = stack.enter_context(EmbeddedServer(config, loop=loop))
            return Place(tmp_path, authority, server)

        yield start


def refused(place: Place, issued: Issued | None = None, **options: Any) -> bool:
    """Tell whether this client is not served. In TLS 1.3 it learns that when it reads."""
    try:
        with place.connect(issued, **options) as client:
            client.close()
    except (wire.ConnectionClosedError, ssl.SSLError, ConnectionError):
        return True
    return False


def only(identity: str) -> tuple[Acl, ...]:
    return (Acl(31, "x509", identity),)


def test_a_client_is_who_its_certificate_says(start: Start) -> None:
    place = start()
    with place.connect(place.alice()) as client:
        assert ("x509", ALICE) in client.call(rq.who_am_i()).pairs
        assert client.call(rq.create("/hers", acl=only(ALICE))).err == Code.OK
        assert client.call(rq.create("/mine", acl=[Acl(31, "auth", "")])).err == Code.OK
        assert client.call(rq.get_acl("/mine")).acl == only(ALICE)
        client.close()
    with place.connect(place.authority.issue(name("O=Example", "CN=bob"))) as client:
        assert client.call(rq.get_data("/hers")).err == Code.NO_AUTH
        assert client.call(rq.get_data("/mine")).err == Code.NO_AUTH
        client.close()


def test_an_acl_names_a_certificate_by_something_that_is_a_name(start: Start) -> None:
    place = start()
    with place.connect(place.alice()) as client:
        assert client.call(rq.create("/a", acl=only("alice"))).err == Code.INVALID_ACL
        assert client.call(rq.create("/a", acl=only("CN=any, O=body"))).err == Code.OK
        client.close()


def test_the_super_user_may_do_everything(start: Start) -> None:
    place = start(x509_super_user=ALICE)
    with place.connect(place.authority.issue(name("O=Example", "CN=bob"))) as bob:
        assert bob.call(rq.create("/his", acl=only("CN=bob,O=Example"))).err == Code.OK
        with place.connect(place.alice()) as alice:
            assert alice.call(rq.set_data("/his", b"hers")).err == Code.OK
            assert ("super", ALICE) in alice.call(rq.who_am_i()).pairs
            # What she makes for herself is hers by her certificate, not by being super.
            assert alice.call(rq.create("/hers", acl=[Acl(31, "auth", "")])).err == Code.OK
            assert alice.call(rq.get_acl("/hers")).acl == only(ALICE)
            alice.close()
        bob.close()


def test_a_client_may_say_that_it_is_known_by_its_certificate(start: Start) -> None:
    place = start(tls_client_auth="want")
    with place.connect(place.alice()) as client:
        assert client.call(rq.auth("x509", b"")).err == Code.OK
        client.close()
    with place.connect() as client:
        assert client.call(rq.auth("x509", b"")).err == Code.AUTH_FAILED


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_who_shows_no_good_certificate_is_not_served(start: Start, version: str) -> None:
    place = start()
    issue = place.authority.issue
    alice = name("O=Example", "CN=alice")
    for bad in (
        None,
        issue(alice, valid=(-3 * DAY, -DAY)),
        issue(alice, valid=(DAY, 3 * DAY)),
        issue(alice, for_servers_only=True),
        Authority().issue(alice),
    ):
        assert refused(place, bad, version=version)
    assert not refused(place, issue(alice, hosts=()), version=version)


def test_a_wanted_certificate_may_be_missing_but_not_wrong(start: Start) -> None:
    place = start(tls_client_auth="want")
    with place.connect() as client:
        assert client.call(rq.who_am_i()).pairs == {("ip", "127.0.0.1")}
        client.close()
    assert not refused(place, place.alice())
    assert refused(place, Authority().issue(name("CN=alice")))


def test_a_certificate_that_nobody_asks_for_means_nothing(start: Start) -> None:
    place = start(tls_client_auth="none")
    with place.connect(place.alice()) as client:
        assert client.call(rq.who_am_i()).pairs == {("ip", "127.0.0.1")}
        client.close()


def test_a_certificate_below_another_one_is_taken(start: Start) -> None:
    place = start()
    between = Authority("Department", place.authority)
    assert not refused(place, between.issue(name("CN=alice")))


@pytest.mark.parametrize(("allowed", "other"), [("TLSv1.2", "TLSv1_3"), ("TLSv1.3", "TLSv1_2")])
def test_a_version_can_be_the_only_one(start: Start, allowed: str, other: str) -> None:
    place = start(tls_protocol=allowed)
    assert refused(place, place.alice(), version=other)
    assert not refused(place, place.alice(), version=allowed.replace(".", "_"))


def test_old_versions_are_not_spoken(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """The hello is our own: not every OpenSSL would say one of TLS 1.1 for us."""
    suites = bytes.fromhex("c009 c013 002f")
    rest = b"\0" + bytes([0, len(suites)]) + suites + b"\x01\0"
    hello = b"\x03\x02" + bytes(32) + rest
    record = b"\x01\0\0" + bytes([len(hello)]) + hello
    place = start()
    with socket.create_connection(place.secure, timeout=10) as client:
        client.sendall(b"\x16\x03\x01\0" + bytes([len(record)]) + record)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while data := client.recv(1000):
                answer += data
        # Nothing, or an alert; no handshake.
        assert answer[:1] in (b"", b"\x15")
    eventually(lambda: "TLS failed: unsupported protocol" in caplog.text, "the log says why")


def test_a_revoked_certificate_is_refused(start: Start) -> None:
    place = start()
    alice, bob = place.alice(), place.authority.issue(name("CN=bob"))
    trust_store = place.authority.pem() + place.authority.revoked(bob)
    # A second server, so that there is an authority to revoke with.
    key_store = place.authority.issue(name("CN=server")).write(place.folder / "second.pem")
    (place.folder / "lists.pem").write_bytes(trust_store)
    config = ServerConfig(
        secure_port=0,
        tls_key_store=key_store,
        tls_trust_store=place.folder / "lists.pem",
        tls_crl=True,
    )
    with EmbeddedServer(config) as server:
        second = Place(place.folder, place.authority, server)
        assert refused(second, bob)
        assert not refused(second, alice)


def test_a_client_must_come_from_the_host_that_its_certificate_names(start: Start) -> None:
    place = start(tls_client_hostname_verification=True)
    issue = place.authority.issue
    assert refused(place, issue(name("CN=alice"), hosts=["elsewhere.example", "192.0.2.1"]))
    assert refused(place, issue(name("CN=alice"), hosts=[]))
    assert not refused(place, issue(name("CN=alice"), hosts=["127.0.0.1"]))
    assert not refused(place, issue(name("CN=127.0.0.1"), hosts=[]))


def test_new_files_count_for_new_connections(start: Start) -> None:
    place = start()
    key_store = place.folder / "server.pem"
    alice = place.alice()
    before = place.certificate()
    with place.connect(alice) as client:
        replacement = place.authority.issue(name("CN=server"))
        replacement.write(place.folder / "new.pem").replace(key_store)
        eventually(
            lambda: place.certificate() == replacement.certificate.serial_number, "the new files"
        )
        assert replacement.certificate.serial_number != before
        # Who was there before goes on.
        assert client.call(rq.exists("/")).err == Code.OK
        client.close()
    assert not refused(place, alice)


def test_new_authorities_count_for_new_connections(start: Start) -> None:
    place = start()
    other = Authority()
    bob = other.issue(name("CN=bob"))
    assert refused(place, bob)
    (place.folder / "trust.pem").write_bytes(other.pem())
    eventually(lambda: not refused(place, bob), "the new trust store")
    assert refused(place, place.alice())


def test_one_port_for_both(start: Start) -> None:
    place = start(secure_port=None, port=0, port_unification=True)
    context = place.context(place.alice())
    with wire.connect(place.server.address, tls=context) as client:
        assert ("x509", ALICE) in client.call(rq.who_am_i()).pairs
        client.close()
    with wire.connect(place.server.address) as client:
        assert client.call(rq.who_am_i()).pairs == {("ip", "127.0.0.1")}
        client.close()
    assert "imok" not in wire.four_letter_word(place.server.address, "ruok")
    assert wire.four_letter_word(place.server.address, "srvr").startswith("Zookeeper version")


def test_conf_tells_the_ports(start: Start) -> None:
    place = start(port=0, four_letter_words=frozenset({"conf"}))
    told = wire.four_letter_word(place.server.address, "conf").splitlines()
    assert told[:2] == [
        f"clientPort={place.server.address[1]}",
        f"secureClientPort={place.secure[1]}",
    ]


def test_a_word_over_tls_leaves_nothing_in_the_log(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    place = start()
    with (
        socket.create_connection(place.secure, timeout=DEADLINE_S) as plain,
        place.context(place.alice()).wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        tls.sendall(b"srvr")
        answer = b"".join(iter(lambda: tls.recv(65536), b""))
        assert answer.startswith(b"Zookeeper version")
        with contextlib.suppress(OSError):
            tls.unwrap()
    with place.connect(place.alice()) as client:
        # The server has been through its event loop since.
        client.close()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_a_plain_and_a_secure_port_serve_the_same_tree(start: Start) -> None:
    place = start(port=0)
    with place.connect(place.alice()) as secure, wire.connect(place.server.address) as plain:
        assert secure.call(rq.create("/a", b"x")).err == Code.OK
        assert plain.call(rq.get_data("/a")).data == b"x"
        assert plain.call(rq.create("/b", acl=only(ALICE))).err == Code.OK
        assert plain.call(rq.get_data("/b")).err == Code.NO_AUTH
        secure.close()
        plain.close()


def test_large_data_and_many_requests_go_through(start: Start) -> None:
    place = start()
    data = bytes(range(256)) * 3000
    with place.connect(place.alice()) as client:
        assert client.call(rq.create("/a", data)).err == Code.OK
        replies = client.calls(*[rq.get_data("/a") for _ in range(20)])
        assert all(reply.data == data for reply in replies)
        client.close()


def test_a_client_that_does_not_read_is_not_read_from(start: Start) -> None:
    """And gets everything in the end, when it does; meanwhile others are served."""
    place = start()
    alice = place.alice()
    with place.connect(alice) as lazy, place.connect(alice) as other:
        assert lazy.call(rq.create("/a", bytes(500_000))).err == Code.OK
        lazy.send(*[rq.get_data("/a") for _ in range(60)])
        for _ in range(10):
            assert other.call(rq.exists("/a")).err == Code.OK
        for _ in range(60):
            assert len(lazy.reply().data or b"") == 500_000
        lazy.close()
        other.close()


def test_a_client_that_never_reads_its_events_is_disconnected(start: Start) -> None:
    """What waits for it is bounded as on a plain port."""
    place = start(max_reply_bytes_per_connection=1_000_000)
    alice = place.alice()
    path = "/" + "x" * 50_000
    with place.connect(alice) as deaf, place.connect(alice) as other:
        assert other.call(rq.create(path)).err == Code.OK
        assert deaf.call(rq.add_watch(path, 0)).err == Code.OK
        # Each write is an event with the long path; the sockets hold some megabytes of them.
        for _ in range(20):
            replies = other.calls(*[rq.set_data(path, b"") for _ in range(50)])
            assert {reply.err for reply in replies} == {Code.OK}
        deaf.wait_closed()
        other.close()


def test_plain_text_on_the_secure_port_is_closed_at_once(start: Start) -> None:
    place = start()
    for words in (b"ruok", bytes(44), b"GET / HTTP/1.1\r\n\r\n"):
        with wire.Connection(place.secure) as plain:
            plain.send_bytes(words)
            assert plain.wait_closed() == b""


def test_garbage_that_begins_like_tls_is_closed(start: Start) -> None:
    place = start()
    for garbage in (
        b"\x16" * 100,
        b"\x16\x03\x01\x00\x05hello",
        b"\x16\x03\x03\xff\xff" + bytes(70_000),
    ):
        with wire.Connection(place.secure) as peer:
            peer.send_bytes(garbage)
            peer.wait_closed()
    assert not refused(place, place.alice())


def test_tls_on_the_plain_port_is_closed(start: Start) -> None:
    place = start(port=0)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        wire.connect(place.server.address, tls=place.context(place.alice()))


def test_who_never_agrees_on_tls_is_closed_in_the_end(start: Start) -> None:
    place = start(tls_handshake_timeout_ms=300)
    with wire.Connection(place.secure) as silent, wire.Connection(place.secure) as half:
        half.send_bytes(HALF_HELLO)
        assert silent.wait_closed() == b""
        half.wait_closed()


def test_stalled_handshakes_count_as_connections_of_their_address(start: Start) -> None:
    place = start(max_connections_per_address=3, tls_handshake_timeout_ms=600_000)
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(wire.Connection(place.secure)).send_bytes(HALF_HELLO)
        with wire.Connection(place.secure) as fourth:
            fourth.wait_closed()
    # As soon as they are gone there is room again.
    eventually(lambda: not refused(place, place.alice()), "a free place")


def test_one_handshake_too_many_takes_the_place_of_the_oldest(start: Start) -> None:
    place = start(
        tls_max_handshakes=5, max_connections_per_address=0, tls_handshake_timeout_ms=600_000
    )
    alice = place.alice()
    with contextlib.ExitStack() as stack:
        early = stack.enter_context(place.connect(alice))
        stalled = [stack.enter_context(wire.Connection(place.secure)) for _ in range(5)]
        for one in stalled:
            one.send_bytes(HALF_HELLO)
        with place.connect(alice) as late:
            assert late.call(rq.exists("/")).err == Code.OK
            late.close()
        assert stalled[0].wait_closed() == b""
        assert early.call(rq.exists("/")).err == Code.OK
        early.close()


def test_hundreds_of_stalled_handshakes_do_not_hinder_a_client(start: Start) -> None:
    place = start(max_connections_per_address=0, tls_max_handshakes=100)
    alice = place.alice()
    with contextlib.ExitStack() as stack:
        early = stack.enter_context(place.connect(alice))
        for number in range(300):
            stalled = stack.enter_context(wire.Connection(place.secure))
            if number % 4 == 0:
                stalled.send_bytes(HALF_HELLO)
            if number % 50 == 0:
                assert early.call(rq.exists("/")).err == Code.OK
                assert not refused(place, alice)
        early.close()


def test_those_who_come_all_at_once_are_counted_out_again(start: Start) -> None:
    place = start(tls_max_handshakes=2, max_connections_per_address=12)
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            with place.server.standing_still():
                crowd = [stack.enter_context(wire.Connection(place.secure)) for _ in range(8)]
            # All but the last two had to go before they had begun.
            for one in crowd[:-2]:
                one.wait_closed()
    eventually(lambda: not refused(place, place.alice()), "a free place")


def test_a_huge_certificate_is_refused(start: Start) -> None:
    place = start()
    for size in (20_000, 200_000):
        assert refused(place, place.authority.issue(name("CN=alice"), padding=size))
    assert not refused(place, place.authority.issue(name("CN=alice"), padding=8_000))


def test_the_server_stops_while_somebody_stalls(start: Start) -> None:
    place = start(tls_handshake_timeout_ms=600_000)
    with wire.Connection(place.secure) as silent, wire.Connection(place.secure) as half:
        half.send_bytes(HALF_HELLO)
        place.server.stop()
        silent.wait_closed()
        half.wait_closed()
