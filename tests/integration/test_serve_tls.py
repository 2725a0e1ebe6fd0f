"""`paddock serve` with TLS: what is said of wrong files and ports, before anything else happens."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.certificates import Authority, name
from tests.support.command import refusal

AUTHORITY = Authority()
# Tells which of our modules are there once a plain server has been started and stopped.
MODULES = """
import asyncio, secrets, sys, time
from paddock.server.config.config import ServerConfig
from paddock.server.server import Server

async def run():
    server = Server(
        ServerConfig(port=0), wall_clock_ms=lambda: 0, random_bytes=secrets.token_bytes
    )
    await server.start()
    await server.stop()

asyncio.run(run())
print(*sorted(name for name in sys.modules if name.startswith("paddock.server")))
"""


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """What a server with TLS needs; later options beat these."""
    key_store = AUTHORITY.issue(name("CN=server")).write(tmp_path / "server.pem")
    trust_store = tmp_path / "trust.pem"
    trust_store.write_bytes(AUTHORITY.pem())
    stores = ["--tls-key-store", str(key_store), "--tls-trust-store", str(trust_store)]
    return ["serve", "--data", str(tmp_path / "data"), "--secure-port", "0", *stores]


def test_a_java_store_is_one_line_with_status_2(options: list[str], tmp_path: Path) -> None:
    store = tmp_path / "server.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    said = refusal(*options, "--tls-key-store", store, status=2)
    assert said == (
        f"{store}: the key store is of type JKS, and only PEM can be read; convert it: "
        f"keytool -importkeystore -srckeystore {store} -destkeystore {tmp_path}/server.p12 "
        f"-deststoretype PKCS12 && openssl pkcs12 -in {tmp_path}/server.p12 -nodes "
        f"-out {tmp_path}/server.pem"
    )
    # Nothing was begun.
    assert not (tmp_path / "data").exists()


def test_a_missing_store_is_one_line_with_status_2(options: list[str], tmp_path: Path) -> None:
    said = refusal(*options, "--tls-trust-store", tmp_path / "none.pem", status=2)
    assert said == f"{tmp_path}/none.pem: the trust store cannot be read: No such file or directory"


def test_a_port_without_stores_is_one_line_with_status_2() -> None:
    said = refusal("serve", "--memory", "--secure-port", "0", status=2)
    assert said.startswith("--secure-port = '0': TLS needs the server's certificate and key: ")


def test_a_secure_port_that_is_taken_is_named_with_status_1(options: list[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refusal(*options, "--secure-port", str(port), "--log-level", "error", status=1)
    assert said == (f"cannot listen on 127.0.0.1:{port}: the port is taken by another program")


def test_without_tls_none_of_it_is_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MODULES], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert "paddock.server.connections.connection" in loaded
    unwanted = ("tls", "x509", "stores", "listener", "hostnames", "secure")
    assert not loaded & {f"paddock.server.{one}" for one in unwanted}
