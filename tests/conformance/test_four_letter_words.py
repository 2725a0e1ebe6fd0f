"""ruok, srvr, stat, mntr, conf and isro: their shape, not their values."""

from __future__ import annotations

import re

import pytest

from tests.conformance.conftest import Connect
from tests.support import requests as rq
from tests.support.server import Server
from tests.support.wire import Client, Connection, four_letter_word

SUMMARY = (
    r"Latency min/avg/max: \d+/\d+(\.\d+)?/\d+\n"
    r"Received: \d+\n"
    r"Sent: \d+\n"
    r"Connections: \d+\n"
    r"Outstanding: \d+\n"
    r"Zxid: 0x[0-9a-f]+\n"
    r"Mode: standalone\n"
    r"Node count: \d+\n"
)

MNTR_KEYS = {
    "zk_version",
    "zk_server_state",
    "zk_avg_latency",
    "zk_max_latency",
    "zk_min_latency",
    "zk_packets_received",
    "zk_packets_sent",
    "zk_num_alive_connections",
    "zk_outstanding_requests",
    "zk_znode_count",
    "zk_watch_count",
    "zk_ephemerals_count",
    "zk_approximate_data_size",
    "zk_open_file_descriptor_count",
    "zk_max_file_descriptor_count",
    "zk_global_sessions",
    "zk_uptime",
}

CONF_KEYS = {
    "clientPort",
    "dataDir",
    "dataLogDir",
    "tickTime",
    "maxClientCnxns",
    "minSessionTimeout",
    "maxSessionTimeout",
    "serverId",
}


def test_ruok_says_imok(server: Server) -> None:
    assert four_letter_word(server.address, "ruok") == "imok"


def test_a_word_may_end_with_a_newline(server: Server) -> None:
    assert four_letter_word(server.address, "ruok\n") == "imok"


def test_isro_says_read_write(server: Server) -> None:
    assert four_letter_word(server.address, "isro") == "rw"


def test_srvr_is_a_version_and_a_summary(server: Server) -> None:
    text = four_letter_word(server.address, "srvr")
    assert re.fullmatch(r"Zookeeper version: \S.*\n" + SUMMARY, text), text


def test_stat_adds_the_clients(server: Server, client: Client) -> None:
    text = four_letter_word(server.address, "stat")
    each = r" /127\.0\.0\.1:\d+\[[01]\]\(queued=\d+,recved=\d+,sent=\d+\)\n"
    pattern = rf"Zookeeper version: \S.*\nClients:\n({each})+\n{SUMMARY}"
    assert re.fullmatch(pattern, text), text


def test_srvr_shows_the_last_zxid(server: Server, client: Client, base: str) -> None:
    zxid = client.call(rq.set_data(base, b"x")).zxid
    assert f"\nZxid: 0x{zxid:x}\n" in four_letter_word(server.address, "srvr")


def test_mntr_is_lines_of_key_tab_value(server: Server, connect: Connect, base: str) -> None:
    client = connect()
    client.call(rq.create(f"{base}/e", flags=1))
    client.call(rq.exists(f"{base}/e", watch=True))
    lines = four_letter_word(server.address, "mntr").splitlines()
    values = dict(line.split("\t", 1) for line in lines)
    assert set(values) >= MNTR_KEYS
    assert values["zk_server_state"] == "standalone"
    whole = [key for key in MNTR_KEYS if key not in ("zk_version", "zk_server_state")]
    for key in whole:
        assert re.fullmatch(r"\d+(\.\d+)?", values[key]), (key, values[key])
    assert int(values["zk_ephemerals_count"]) >= 1
    assert int(values["zk_watch_count"]) >= 1
    nodes = client.call(rq.get_all_children_number("/")).number
    assert int(values["zk_znode_count"]) == nodes + 2


def test_conf_shows_the_settings(server: Server) -> None:
    lines = four_letter_word(server.address, "conf").splitlines()
    values = dict(line.split("=", 1) for line in lines)
    assert set(values) >= CONF_KEYS
    assert values["clientPort"] == str(server.port)
    assert values["tickTime"] == "200"
    assert values["minSessionTimeout"] == "400"
    assert values["maxSessionTimeout"] == "60000"
    assert values["maxClientCnxns"] == "0"
    assert int(values["dataLogSize"]) > 0


@pytest.mark.parametrize("word", ["RUOK", "xyzw"])
def test_an_unknown_word_closes_the_connection(server: Server, word: str) -> None:
    assert four_letter_word(server.address, word) == ""


def test_a_word_may_come_in_pieces(server: Server) -> None:
    with Connection(server.address) as connection:
        for byte in b"ruok":
            connection.send_bytes(bytes([byte]))
        assert connection.wait_closed() == b"imok"


def test_a_word_inside_a_session_is_a_length(connect: Connect) -> None:
    client = connect()
    client.send_bytes(b"ruok")
    assert client.wait_closed() == b""
