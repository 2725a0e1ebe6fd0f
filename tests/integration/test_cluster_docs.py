"""The pages about several servers keep their word: their commands and files, on a real etcd."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.server.config.sources import Settings
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import Running, serving
from tests.support.documents import ROOT, Page, assert_shown, run
from tests.support.etcd import Etcd
from tests.support.reader import Reader
from tests.support.records import Code
from tests.support.server import ServerMissingError, free_ports
from tests.unit.log.folders import FolderBuilder, names
from tests.unit.upgrade import files
from tests.unit.upgrade.files import ApacheFolder, Node, transaction

pytestmark = pytest.mark.judge

SEVERAL = Page("docs/how-to/run-several-servers.md")
ONE = Page("docs/how-to/move-from-one-server.md")
APACHE = Page("docs/how-to/move-from-an-apache-ensemble.md")
FAILURES = Page("docs/how-to/survive-failures.md")
SIZE = Page("docs/how-to/size-a-cluster.md")

ENDPOINTS = "10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379"
# A lease that no busy machine loses.
OPTIONS = ("--sync-limit", "10", "--port", "0")
UNIT = (ROOT / "packaging" / "systemd" / "paddock@.service").read_text(encoding="utf-8")


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    try:
        with Etcd(tmp_path / "etcd") as started:
            yield started
    except ServerMissingError as error:
        pytest.skip(str(error))


@contextlib.contextmanager
def member(log: str, *arguments: str) -> Iterator[Running]:
    """Run a server, which leaves the service at the end of the scope."""
    with serving("--log", log, *OPTIONS, *arguments) as running:
        yield running
        if running.process.poll() is None:
            running.stop()


def three_ports() -> tuple[int, int, int]:
    """Return three free ports in a row."""
    for first in free_ports(20):
        row = first, first + 1, first + 2
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in row:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return row
    raise AssertionError("no three free ports in a row")


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert SEVERAL.languages() == {"console", "sh", "ini", "yaml", "python"}
    assert ONE.languages() == {"console"}
    assert APACHE.languages() == {"console", "ini"}
    assert FAILURES.languages() == {"console"}
    assert SIZE.languages() == {"sh"}
    # The trial has five, and finalize, forget, backup and the removal have one each.
    assert len(SEVERAL.blocks("console")) == 9


def test_a_cluster_can_be_tried_on_one_machine(tmp_path: Path) -> None:
    if shutil.which("etcd") is None:
        pytest.skip("etcd is missing")
    ports = three_ports()
    instead = {str(2181 + number): str(port) for number, port in enumerate(ports)}

    async def main() -> None:
        async with Reader(tmp_path, instead) as reader:
            for block in SEVERAL.blocks("console")[:5]:
                await reader.do(block, SEVERAL.name)

    asyncio.run(main())


def test_the_file_of_etcd_starts_three_members(tmp_path: Path) -> None:
    (block,) = SEVERAL.blocks("yaml")
    ports = free_ports(6)
    text = block.text.replace("/var/lib/etcd/paddock", "DATA")
    for number in (1, 2, 3):
        text = text.replace(f"10.0.0.{number}:2379", f"127.0.0.1:{ports[2 * number - 2]}")
        text = text.replace(f"10.0.0.{number}:2380", f"127.0.0.1:{ports[2 * number - 1]}")
    own = [f"127.0.0.1:{port}" for port in ports[:2]]
    with contextlib.ExitStack() as stack:
        for number in (1, 2, 3):
            file = tmp_path / f"etcd-{number}.yml"
            head, listed, rest = text.partition("initial-cluster: ")
            head = head.replace("name: h1", f"name: h{number}").replace(
                "DATA", str(tmp_path / str(number))
            )
            for place, here in zip(own, ports[2 * number - 2 : 2 * number], strict=True):
                head = head.replace(place, f"127.0.0.1:{here}")
            file.write_text(head + listed + rest, encoding="utf-8")
            stack.enter_context(started_etcd(file, tmp_path / f"{number}.log"))
        endpoints = ",".join(f"127.0.0.1:{port}" for port in ports[::2])
        # A server needs a majority of them.
        with member(f"etcd://{endpoints}/shop") as server, wire.connect(server.address) as client:
            assert client.call(rq.create("/a")).err == Code.OK


@contextlib.contextmanager
def started_etcd(configuration: Path, log: Path) -> Iterator[None]:
    program = shutil.which("etcd")
    if program is None:
        pytest.skip("etcd is missing")
    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "--config-file", str(configuration)],
            stdout=output,
            stderr=output,
            env={**os.environ, "ETCD_UNSUPPORTED_ARCH": machine},
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_the_settings_of_the_page_are_understood(tmp_path: Path) -> None:
    block, file = SEVERAL.blocks("ini")
    assert "`/etc/paddock/cluster`" in SEVERAL.text
    assert "EnvironmentFile=/etc/paddock/cluster\n" in UNIT
    assert "`/etc/paddock/2181`" in SEVERAL.text
    assert "EnvironmentFile=-/etc/paddock/%i\n" in UNIT
    settings = Settings()
    settings.read_environment(dict(line.split("=", 1) for line in block.text.splitlines()))
    assert settings.warnings == []
    url = settings.config().shared_log
    assert url is not None
    assert url.is_secure
    # The file whose hosts can be changed while a server runs.
    (tmp_path / "zoo.cfg").write_text(file.text)
    settings = Settings()
    settings.read_file(tmp_path / "zoo.cfg")
    assert settings.warnings == []
    assert settings.config().shared_log is not None
    assert "ExecReload=kill -HUP $MAINPID\n" in UNIT
    # And the unit is installed where systemd looks for it.
    _, commands = SEVERAL.blocks("sh")
    (install,) = [one for one in commands.text.splitlines() if one.startswith("sudo install ")]
    run(install.removeprefix("sudo ").replace(" /etc/", f" {tmp_path}/etc/"))
    installed = tmp_path / "etc" / "systemd" / "system" / "paddock@.service"
    assert installed.read_text(encoding="utf-8") == UNIT
    assert "ExecStart=/opt/paddock/bin/paddock serve --port %i\n" in UNIT


def test_the_commands_of_an_operator_say_what_the_page_says(etcd: Etcd, tmp_path: Path) -> None:
    url = f"etcd://{etcd.endpoint}/shop"
    serve, _ = SEVERAL.blocks("sh")
    arguments = serve.text.split()
    assert arguments[:2] == ["paddock", "serve"]
    arguments = [one.replace(ENDPOINTS, etcd.endpoint) for one in arguments[2:]]
    with serving(*arguments, *OPTIONS) as server, member(url) as other:
        with member(url, "--advertise", "10.0.0.3:2181"):
            pass
        hosts = ",".join(f"127.0.0.1:{one.address[1]}" for one in (server, other))
        instead = {ENDPOINTS: etcd.endpoint, "10.0.0.1:2181,10.0.0.2:2181,10.0.0.3:2181": hosts}

        async def main() -> None:
            async with Reader(tmp_path, instead) as reader:
                for block in (*SEVERAL.blocks("python"), *SEVERAL.blocks("console")[5:]):
                    await reader.do(block, SEVERAL.name)
                # A bench of a fifth of a second says as much of the command.
                (bench,) = SIZE.blocks("sh")
                run(f"{bench.text.strip().replace(*list(instead.items())[1])} --seconds 0.1")

        asyncio.run(main())


def test_a_single_server_moves_and_back(etcd: Etcd, tmp_path: Path) -> None:
    with FolderBuilder(tmp_path / "data") as builder:
        builder.create(*names(9))
    (port,) = free_ports(1)
    instead = {"h1:2379,h2:2379,h3:2379": etcd.endpoint}

    async def main() -> None:
        variables = {"PADDOCK_PORT": str(port)}
        async with Reader(tmp_path, instead, variables) as reader:
            for block in ONE.every_block()[:2]:
                await reader.do(block, ONE.name)
            # The server runs on.
            with wire.connect(("127.0.0.1", port)) as client:
                assert client.call(rq.exists("/n0")).err == Code.OK

    asyncio.run(main())

    async def go_back() -> None:
        async with Reader(tmp_path, instead) as reader:
            await reader.do(ONE.every_block()[2], ONE.name)

    asyncio.run(go_back())
    with serving("--data", tmp_path / "single", *OPTIONS) as single:
        with wire.connect(single.address) as client:
            assert client.call(rq.exists("/n0")).err == Code.OK


def test_an_apache_ensemble_moves(etcd: Etcd, tmp_path: Path) -> None:
    folder = ApacheFolder(tmp_path / "apache")
    folder.snapshot(0x10, files.snapshot({"/app": Node(b"old")}, {77: 4_000}))
    folder.log(
        transaction(0x11, files.set_data("/app", b"new", 1)),
        transaction(0x12, files.create("/mine", 2, ephemeral=True), session=77),
    )
    instead = {"h1:2379,h2:2379,h3:2379": etcd.endpoint, "/var/lib/zookeeper": str(folder.path)}

    async def main() -> None:
        async with Reader(tmp_path, instead) as reader:
            await reader.follow(APACHE)

    asyncio.run(main())
    # Beside what a zoo.cfg of an ensemble has, which only causes warnings.
    (added,) = APACHE.blocks("ini")
    config = tmp_path / "zoo.cfg"
    config.write_text(
        "tickTime=2000\ninitLimit=10\nsyncLimit=2\nserver.1=h1:2888:3888\nserver.2=h2:2888:3888\n"
        + added.text.replace("h1:2379,h2:2379,h3:2379", etcd.endpoint)
    )
    with serving("--config", config, "--data", tmp_path / "cache", "--port", "0") as server:
        with wire.connect(server.address) as client:
            assert client.call(rq.get_data("/app")).data == b"new"
            assert client.call(rq.exists("/mine")).err == Code.OK


def test_etcd_is_restored_and_a_new_epoch_begins(etcd: Etcd, tmp_path: Path) -> None:
    if shutil.which("etcdctl") is None:
        pytest.skip("etcdctl is missing")
    url = f"etcd://{etcd.endpoint}/shop"
    with member(url) as server, wire.connect(server.address) as client:
        assert client.call(rq.create("/before")).err == Code.OK
        room, save, epoch, skip = FAILURES.every_block()
        for command, expected in save.commands():
            assert_shown(expected, run_both(command.replace("h1:2379", etcd.endpoint), tmp_path))
        assert client.call(rq.create("/lost")).err == Code.OK
        seen = client.call(rq.exists("/lost")).zxid
        client.close()
    etcd.stop()
    shutil.rmtree(etcd.data)
    (tmp_path / "restored").rename(etcd.data)
    etcd.start()

    async def main() -> None:
        async with Reader(tmp_path, {"h1:2379": etcd.endpoint}) as reader:
            for block in (epoch, skip, room):
                await reader.do(block, FAILURES.name)

    asyncio.run(main())
    with member(url) as server, wire.connect(server.address, last_zxid=seen) as client:
        # Its client has seen more than etcd has, and is served all the same.
        assert client.call(rq.exists("/before")).err == Code.OK
        assert client.call(rq.exists("/lost")).err == Code.NO_NODE


def run_both(command: str, folder: Path) -> str:
    """Run a command; return what it says on both streams."""
    return run(f"{command} 2>&1", folder) + "\n"


def test_the_lease_that_the_pages_name_is_the_default() -> None:
    assert Settings().config().lease_seconds == 10
    for page in (SEVERAL, ONE, FAILURES, SIZE):
        assert re.search(r"10 s(,)? by default|by default 10 s", page.text), page.name
