"""Foreign clients that authenticate by SASL: kazoo and its own tests, Apache's shell, Curator.

Apache's C client is not among them: Debian builds it without SASL.
"""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, NoAuthError
from kazoo.security import make_acl

from tests.conformance.conftest import ONE_SERVER_EACH
from tests.conformance.test_sasl import started
from tests.support import zkcli
from tests.support.curator import DEBIANS, FETCHED, SASL_SOURCES, compiled
from tests.support.server import Server, ServerMissingError


@pytest.fixture(scope="module", params=ONE_SERVER_EACH)
def known(request: pytest.FixtureRequest) -> Iterator[Server]:
    with started(request.param) as server:
        yield server


def jaas_of(server: Server) -> dict[str, str]:
    """Return the properties by which Java finds the users, and may prove them by MD5."""
    file = str(server.folder / "jaas.conf")
    return {"java.security.auth.login.config": file, "zookeeper.fips-mode": "false"}


def kazoo_as(server: Server, user: str, password: str) -> KazooClient:
    options = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
    return KazooClient(f"{server.host}:{server.port}", sasl_options=options, timeout=10)


def test_kazoo_is_who_it_says(known: Server) -> None:
    bob, guess = kazoo_as(known, "bob", "bobs-secret"), kazoo_as(known, "bob", "a guess")
    bob.start()
    try:
        path = f"/kazoo-{os.urandom(4).hex()}"
        bob.create(path, b"1", acl=[make_acl("sasl", credential="bob", all=True)])
        assert bob.get(path)[0] == b"1"
        guess.start()
        with pytest.raises(AuthFailedError):
            guess.get("/")
        stranger = KazooClient(f"{known.host}:{known.port}", timeout=10)
        stranger.start()
        with pytest.raises(NoAuthError):
            stranger.get(path)
        stranger.stop()
        stranger.close()
    finally:
        for client in (bob, guess):
            client.stop()
            client.close()


def test_kazoos_own_tests_of_it_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    # What it makes certificates with, of which these tests need none.
    for name in ("OpenSSL", "jks"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    tests = importlib.import_module("kazoo.tests.test_sasl")
    with started("paddock") as server:
        # In place of an ensemble of Apache's.
        member = SimpleNamespace(address=f"{server.host}:{server.port}", running=True)
        harness = importlib.import_module("kazoo.testing.harness").KazooTestHarness
        monkeypatch.setattr(harness, "cluster", property(lambda _: [member]))
        suite = unittest.TestSuite(
            unittest.defaultTestLoader.loadTestsFromTestCase(case)
            for case in (
                tests.TestSASLDigestAuthentication,
                tests.TestLegacySASLDigestAuthentication,
            )
        )
        said = io.StringIO()
        with warnings.catch_warnings():
            # It warns of its own way to begin.
            warnings.simplefilter("ignore")
            result = unittest.TextTestRunner(said, warnings="ignore").run(suite)
    assert result.wasSuccessful(), said.getvalue()
    assert (result.testsRun, result.skipped) == (4, [])


@pytest.mark.judge
def test_the_shell_of_apache_is_who_its_jaas_file_says(known: Server) -> None:
    path = f"/shell-{os.urandom(4).hex()}"
    commands = [f"create {path} 1 sasl:bob:cdrwa", f"getAcl {path}", f"get {path}", "whoami"]
    transcript = zkcli.run(known.address, commands, jaas_of(known))
    created, acl, data, identities = transcript.outputs
    assert created == [f"Created {path}"]
    assert acl == ["'sasl,'bob", ": cdrwa"]
    assert data == ["1"]
    assert any("sasl" in line and "bob" in line for line in identities)
    transcript = zkcli.run(
        known.address, [f"get {path}"], {**jaas_of(known), "zookeeper.sasl.client": "false"}
    )
    assert any(
        "NoAuth" in line or "Insufficient permission" in line for line in transcript.outputs[0]
    )


@pytest.mark.judge
@pytest.mark.long
def test_curator_and_javas_client_are_who_their_jaas_file_says(
    known: Server, tmp_path: Path
) -> None:
    version = FETCHED if known.name == "apache-3.9" else DEBIANS
    try:
        java, *options = compiled(tmp_path, version, SASL_SOURCES)
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    client = KazooClient(f"{known.host}:{known.port}", timeout=10)
    client.start()
    base = f"/curator-{os.urandom(4).hex()}"
    client.create(base)
    client.stop()
    client.close()
    done = subprocess.run(
        [
            java,
            *(f"-D{key}={value}" for key, value in jaas_of(known).items()),
            *options,
            *("Sasl", f"{known.host}:{known.port}", base),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines() == [
        "curator is bob",
        "without SASL there is nobody",
        "a stranger has failed",
    ], done.stdout
