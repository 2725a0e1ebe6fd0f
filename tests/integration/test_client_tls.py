"""The client over TLS: who is let in, what is said of who is not, and that nothing is left open."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

import paddock
from paddock import sync
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer, ServerThread
from tests.support.certificates import Authority, name

Loop = Callable[[], asyncio.AbstractEventLoop]
LOOPS = [
    pytest.param(asyncio.new_event_loop, id="asyncio"),
    pytest.param(uvloop.new_event_loop, id="uvloop"),
]


class Certificates:
    """Those of a server, of alice, and of an authority that both trust."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self._trusted = authority.pem().decode()
        self._alice = authority.issue(name("CN=alice")).write(folder / "alice.pem")
        trusted = folder / "ca.pem"
        trusted.write_text(self._trusted)
        self.config = ServerConfig(
            port=0,
            secure_port=0,
            tls_key_store=authority.issue(name("CN=server")).write(folder / "server.pem"),
            tls_trust_store=trusted,
        )

    def of_alice(self) -> ssl.SSLContext:
        context = self.of_nobody()
        context.load_cert_chain(self._alice)
        return context

    def of_nobody(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self._trusted)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def secure(address: tuple[str, int]) -> str:
    return f"localhost:{address[1]}"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_is_known_by_its_certificate_and_leaves_nothing_open(
    certificates: Certificates, loop: Loop
) -> None:
    async def use(hosts: str) -> None:
        async with paddock.connect(hosts, tls=certificates.of_alice()) as client:
            assert ("x509", "CN=alice") in await client.who_am_i()

    with ServerThread(config=certificates.config) as server:
        # Its own loop ends with the client: whatever is left open then is a ResourceWarning.
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(use(secure(server.secure_address)))
        gc.collect()


def test_a_blocking_client_over_tls_leaves_nothing_open(certificates: Certificates) -> None:
    with ServerThread(config=certificates.config) as server:
        hosts = secure(server.secure_address)
        with sync.connect(hosts, tls=certificates.of_alice()) as client:
            assert ("x509", "CN=alice") in client.who_am_i()
        gc.collect()


@pytest.mark.parametrize(
    ("tls", "reason"),
    [
        ("of_nobody", "closed the connection|reset by peer|certificate required"),
        ("of_others", "its certificate is not accepted: "),
        ("none", "closed the connection|reset by peer|does not speak"),
    ],
)
def test_who_is_not_let_in_is_told_why(certificates: Certificates, tls: str, reason: str) -> None:
    context = {
        "of_nobody": certificates.of_nobody(),
        "of_others": ssl.create_default_context(),
        "none": None,
    }[tls]

    async def main() -> None:
        async with EmbeddedServer(config=certificates.config) as server:
            hosts = secure(server.secure_address)
            with pytest.raises(paddock.ConnectionLostError, match=reason):
                async with paddock.connect(hosts, tls=context, session_timeout=1):
                    pass

    asyncio.run(main())
    gc.collect()
