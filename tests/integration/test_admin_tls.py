"""The admin server with TLS: who gets in by it, and who does not."""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest

from tests.support.certificates import Authority, client_context, name
from tests.support.command import refusal
from tests.support.paddock_server import PaddockServer
from tests.support.server import Options, free_port

AUTHORITY = Authority()


class Admin:
    """Where an admin server is, and the files of TLS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        AUTHORITY.issue(name("CN=server")).write(folder / "server.pem")
        (folder / "trust.pem").write_bytes(AUTHORITY.pem())

    def options(self, **more: str) -> Options:
        keys = {
            "admin.serverPort": str(self.port),
            "ssl.keyStore.location": str(self.folder / "server.pem"),
            "ssl.trustStore.location": str(self.folder / "trust.pem"),
            **{f"admin.{key}": value for key, value in more.items()},
        }
        return Options(extra=tuple(keys.items()))

    def get(self, tls: ssl.SSLContext | None) -> int:
        if tls is None:
            connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        else:
            connection = HTTPSConnection("127.0.0.1", self.port, timeout=20, context=tls)
        try:
            # A page of its own; over plain HTTP it would be one of another site.
            headers = {"Origin": f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"}
            connection.request("GET", "/commands/ruok", headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def trusting(self) -> ssl.SSLContext:
        return client_context(AUTHORITY.pem(), self.folder)

    def known(self) -> ssl.SSLContext:
        return client_context(AUTHORITY.pem(), self.folder, AUTHORITY.issue(name("CN=monitor")))


@pytest.fixture
def admin(tmp_path: Path) -> Admin:
    return Admin(tmp_path)


def test_a_unified_port_speaks_both_and_asks_for_no_certificate(admin: Admin) -> None:
    with PaddockServer(admin.options(portUnification="true")) as server:
        assert admin.get(admin.trusting()) == 200
        assert admin.get(None) == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            admin.get(ssl.create_default_context())
        server.stop()
        assert "Traceback" not in server.log_tail()


def test_a_port_of_tls_alone_lets_in_those_with_a_certificate(admin: Admin) -> None:
    with PaddockServer(admin.options(forceHttps="true", needClientAuth="true")):
        assert admin.get(admin.known()) == 200
        for nobody in (None, admin.trusting()):
            with pytest.raises(OSError):
                admin.get(nobody)
        # Nobody else notices.
        assert admin.get(admin.known()) == 200


def test_a_port_that_is_taken_is_said_to_be_the_admin_servers(admin: Admin) -> None:
    with PaddockServer(admin.options(forceHttps="true")):
        said = refusal(
            *("serve", "--memory", "--port", "0", "--admin-port", str(admin.port)),
            *("--admin-force-https", "--tls-key-store", admin.folder / "server.pem"),
            status=1,
        )
    assert said == (
        f"the admin server cannot listen on 127.0.0.1:{admin.port}:"
        " the port is taken by another program"
    )
