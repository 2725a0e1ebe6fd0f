"""A log in an etcd with TLS, by the commands: who is trusted, and what is said if not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import requests as rq
from tests.support import wire
from tests.support.command import paddock, refusal, serving, success
from tests.support.etcd import Etcd, EtcdPki
from tests.support.records import Code
from tests.support.server import ServerMissingError

pytestmark = pytest.mark.judge


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Etcd, EtcdPki]]:
    """An etcd that asks its clients for certificates."""
    folder = tmp_path_factory.mktemp("etcd")
    pki = EtcdPki(folder)
    try:
        with Etcd(folder / "data", arguments=pki.arguments(), is_secure=True) as etcd:
            yield etcd, pki
    except ServerMissingError as error:
        pytest.skip(str(error))


def options(pki: EtcdPki) -> list[str]:
    files = {"ca": pki.ca, "cert": pki.certificate, "key": pki.key}
    return [text for name, file in files.items() for text in (f"--etcd-{name}-file", str(file))]


def test_a_service_in_an_etcd_with_tls(
    secured: tuple[Etcd, EtcdPki], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etcd, pki = secured
    log = f"etcds://{etcd.endpoint}/shop"
    with serving("--log", log, "--port", "0", *options(pki)) as server:
        with wire.connect(server.address) as client:
            assert client.call(rq.create("/a", b"kept")).err == Code.OK
        said = success("cluster", "status", "--log", log, *options(pki))
        assert "member      1 on duty" in said
        assert f"etcd        {etcd.endpoint}, version 3." in said
        # An argument has no options of its own: they come from the environment.
        for name, file in (("CA", pki.ca), ("CERT", pki.certificate), ("KEY", pki.key)):
            monkeypatch.setenv(f"PADDOCK_ETCD_{name}_FILE", str(file))
        backup = tmp_path / "backup.tar.gz"
        assert " nodes, " in success("backup", log, backup)
        assert server.stop()[0] == 0
    success("restore", backup, f"etcds://{etcd.endpoint}/again")
    with (
        serving("--log", f"etcds://{etcd.endpoint}/again", "--port", "0") as server,
        wire.connect(server.address) as client,
    ):
        assert client.call(rq.get_data("/a")).err == Code.OK


def test_a_file_that_is_not_there_is_named_at_once(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    for command in (["serve", "--port", "0", "--log-level", "warning"], ["cluster", "finalize"]):
        # Nobody listens there, and nobody is asked.
        given = ("--log", "etcds://127.0.0.1:1/shop", "--etcd-ca-file", file)
        assert refusal(*command, *given, status=1) == (
            f"{file}: cannot be read, for the connection to etcd: No such file or directory"
        )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("ca", "its certificate is not signed by an authority in --etcd-ca-file, or is for"),
        ("certificate", "it wants a certificate that its own authority has signed"),
        ("key", "the certificates for TLS cannot be used: --etcd-ca-file, --etcd-cert-file and"),
    ],
)
def test_who_is_not_trusted_is_told_in_one_line(
    secured: tuple[Etcd, EtcdPki], tmp_path: Path, wrong: str, says: str
) -> None:
    etcd, pki = secured
    other = EtcdPki(tmp_path)
    log = f"etcds://{etcd.endpoint}/shop"
    given = dict(zip(options(pki)[::2], options(pki)[1::2], strict=True))
    if wrong == "ca":
        given["--etcd-ca-file"] = str(other.ca)
    elif wrong == "certificate":
        given["--etcd-cert-file"], given["--etcd-key-file"] = str(other.certificate), str(other.key)
    else:
        given["--etcd-key-file"] = str(other.key)
    arguments = [text for pair in given.items() for text in pair]
    for command in (["serve", "--port", "0", "--log-level", "warning"], ["cluster", "finalize"]):
        line = refusal(*command, "--log", log, *arguments, status=1)
        assert line.startswith(f"etcd at {etcd.endpoint}: {says}"), line
    shown = paddock("cluster", "status", "--log", log, *arguments)
    assert shown.returncode == 1
    assert f"problem     etcd at {etcd.endpoint}: {says}" in shown.stdout.decode()
