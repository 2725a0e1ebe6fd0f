"""`paddock changes` as its users meet it: lines of JSON, and a checkpoint to go on from."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from paddock.sync import Client
from tests.support.command import refusal, started, success
from tests.support.server import Service


def lines_of(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def short(lines: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return [(line["change"], line["path"], line["data"]) for line in lines]


@pytest.fixture
def service(shared_paddock: Service) -> Service:
    return shared_paddock


def test_every_change_is_a_line_and_a_checkpoint_goes_on(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    file = tmp_path / "checkpoint"
    arguments = ("changes", "--server", service.hosts, "--checkpoint", file, path)
    with started(*map(str, arguments)) as following:
        while not file.exists():
            # It begins with a checkpoint, if only of where it begins.
            assert following.process.poll() is None
        stat = client.set(path, b"v1")
        first = json.loads(following.line())
        assert first == {
            "zxid": stat.mzxid,
            "change": "changed",
            "path": path,
            "data": "v1",
            "encoding": "utf-8",
            "stat": {**stat._asdict(), "ephemeral_owner": None},
            "is_last": True,
            "is_exact": True,
        }
        ended = following.end(signal.SIGINT)
        assert (ended.status, ended.output, ended.errors) == (130, "", "")
    assert json.loads(file.read_text())["zxid"] >= stat.mzxid
    with client.transaction() as transaction:
        transaction.create(f"{path}/a", b"\xff")
        transaction.create(f"{path}/b")
        transaction.delete(f"{path}/b")
    client.delete(f"{path}/a")
    # Also in the middle of a transaction.
    found = lines_of(success(*arguments, "-n", "2"))
    assert short(found) == [("created", f"{path}/a", "/w=="), ("created", f"{path}/b", "")]
    assert json.loads(file.read_text())["lines"] == 2
    found = lines_of(success(*arguments, "-n", "2", "--since", "0"))
    assert short(found) == [("deleted", f"{path}/b", None), ("deleted", f"{path}/a", None)]
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoint"]


def test_what_cannot_be_done_is_one_line(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    asked = ("changes", "--server", service.hosts, path)
    file = tmp_path / "checkpoint"
    file.write_text("nothing")
    message = refusal(*asked, "--checkpoint", file, status=1)
    assert message == f"{file}: is no checkpoint of `paddock changes`"
    message = refusal(*asked, "--since", "0x7fffffffffffffff", status=2)
    assert "is ahead of it" in message


@pytest.mark.judge
def test_apache_zookeeper_is_told_to_be_without_and_gives_what_it_can(
    shared_apache: Service,
) -> None:
    asked = ("changes", "--server", shared_apache.hosts, "/zookeeper")
    assert refusal(*asked, status=1) == (
        "/zookeeper: the server has no change feeds; --best-effort says what watches can"
    )
    found = lines_of(success(*asked, "--best-effort", "--since", "0", "-n", "1"))
    assert found[0]["change"] == "gap"
