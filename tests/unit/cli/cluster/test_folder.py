"""The folder of a cluster: ports are chosen once, and nothing else is touched."""

import json
import socket
from pathlib import Path

import pytest

from paddock.cli.cluster.folder import HOST, opened
from paddock.cli.output import CannotBeDone


def test_ports_are_chosen_once(tmp_path: Path) -> None:
    with opened(tmp_path / "new" / "folder", 3, None) as first:
        ports = {port for one in first.etcd for port in (one.clients, one.peers)}
        assert len(ports | {*first.servers}) == 9
    with opened(tmp_path / "new" / "folder", 3, None) as again:
        assert again == first


def test_the_addresses_are_those_of_the_ports(tmp_path: Path) -> None:
    with opened(tmp_path, 2, None) as folder:
        one, two, three = (one.clients for one in folder.etcd)
        assert folder.url == f"etcd://{HOST}:{one},{HOST}:{two},{HOST}:{three}/cluster"
        assert (tmp_path / "url").read_text() == f"{folder.url}\n"
        assert folder.hosts == f"{HOST}:{folder.servers[0]},{HOST}:{folder.servers[1]}"


def test_more_servers_get_new_ports_and_the_others_keep_theirs(tmp_path: Path) -> None:
    with opened(tmp_path, 2, None) as two:
        pass
    with opened(tmp_path, 4, None) as four:
        assert four.servers[:2] == two.servers
        assert len(set(four.servers)) == 4
        assert four.etcd == two.etcd
    with opened(tmp_path, 1, None) as one:
        assert one.servers == two.servers[:1]
    with opened(tmp_path, 4, None) as again:
        assert again == four


def test_servers_get_the_ports_that_are_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path, 1, None) as chosen:
        (free,) = chosen.servers
    with opened(tmp_path, 1, free) as folder:
        assert folder.servers == (free,)


def test_a_server_cannot_have_a_port_of_etcd(tmp_path: Path) -> None:
    with opened(tmp_path, 1, None) as folder:
        port = folder.etcd[2].clients
    with pytest.raises(CannotBeDone, match=f"port {port} of {HOST} is one of this cluster's etcd"):
        opened(tmp_path, 1, port).__enter__()


def test_a_port_that_is_in_use_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, 1, None) as folder:
        pass
    with socket.socket() as taken:
        taken.bind((HOST, folder.etcd[1].peers))
        with pytest.raises(CannotBeDone, match=f"port {folder.etcd[1].peers} of {HOST} is in use"):
            opened(tmp_path, 1, None).__enter__()


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(CannotBeDone, match="is not empty, and holds no cluster"):
        opened(tmp_path, 3, None).__enter__()
    with pytest.raises(CannotBeDone, match="is not empty, and holds no cluster"):
        opened(tmp_path / "mine", 3, None).__enter__()
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "etcd": [[1]], "servers": []}'])
def test_a_damaged_file_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(CannotBeDone, match=r"cluster\.json: is damaged"):
        opened(tmp_path, 3, None).__enter__()


def test_the_file_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(CannotBeDone, match="another version"):
        opened(tmp_path, 3, None).__enter__()
