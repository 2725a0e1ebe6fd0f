"""The words about the server: names, order and separators, and values where both must agree."""

from __future__ import annotations

import re
import socket

import pytest

from tests.conformance.conftest import Connect
from tests.conformance.differences import (
    ENVI_NAMES_FOLDERS,
    HASH_OF_NOW,
    MNTR_HAS_MORE_ROWS,
    PERCENTILES_ARE_FRACTIONS,
)
from tests.support import requests as rq
from tests.support import wire
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

# The rows of mntr that Paddock has; their order is that of a hash table in Apache.
PERCENTILES = ("p50", "p95", "p99", "p999")
MNTR_KEYS = [
    "zk_version",
    "zk_server_state",
    "zk_ephemerals_count",
    "zk_num_alive_connections",
    "zk_avg_latency",
    "zk_outstanding_requests",
    "zk_znode_count",
    "zk_global_sessions",
    "zk_packets_sent",
    "zk_packets_received",
    "zk_watch_count",
    "zk_min_latency",
    "zk_max_file_descriptor_count",
    "zk_approximate_data_size",
    "zk_open_file_descriptor_count",
    "zk_local_sessions",
    "zk_uptime",
    "zk_max_latency",
    "zk_connection_rejected",
    "zk_sessionless_connections_expired",
    "zk_bytes_received_count",
    "zk_connection_request_count",
    "zk_response_bytes",
    "zk_connection_revalidate_count",
    "zk_stale_sessions_expired",
    *(f"zk_{part}_fsynctime" for part in ("avg", "min", "max", "cnt", "sum")),
    *(f"zk_{part}_snapshottime" for part in ("avg", "min", "max", "cnt", "sum")),
    *(f"zk_{part}_startup_txns_loaded" for part in ("avg", "min", "max", "cnt", "sum")),
    *(f"zk_{part}_dbinittime" for part in ("avg", "min", "max", "cnt", "sum")),
    *(f"zk_{part}_sync_processor_batch_size" for part in ("avg", "min", "max", "cnt", "sum")),
    *(f"zk_{part}_updatelatency" for part in ("avg", "min", "max", "cnt", "sum", *PERCENTILES)),
    *(f"zk_{part}_readlatency" for part in ("avg", "min", "max", "cnt", "sum", *PERCENTILES)),
    *(
        f"zk_{part}_node_{event}_watch_count"
        for event in ("created", "deleted", "changed", "children")
        for part in ("avg", "min", "max", "cnt", "sum")
    ),
]

CONF_KEYS = [
    "clientPort",
    "secureClientPort",
    "dataDir",
    "dataDirSize",
    "dataLogDir",
    "dataLogSize",
    "tickTime",
    "maxClientCnxns",
    "minSessionTimeout",
    "maxSessionTimeout",
    "clientPortListenBacklog",
    "serverId",
]


def monitor(server: Server) -> dict[str, str]:
    """What mntr says."""
    text = four_letter_word(server.address, "mntr")
    assert text.endswith("\n")
    return dict(line.split("\t", 1) for line in text.splitlines())


def summary(server: Server) -> dict[str, str]:
    """What srvr says."""
    lines = four_letter_word(server.address, "srvr").splitlines()
    return dict(line.split(": ", 1) for line in lines)


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


def test_mntr_is_lines_of_key_tab_value(server: Server) -> None:
    values = monitor(server)
    assert set(MNTR_KEYS) <= values.keys()
    # Apache ZooKeeper has no feeds.
    others = [key for key in values if not key.startswith("zk_change_feed")]
    assert (len(others) > len(MNTR_KEYS)) == MNTR_HAS_MORE_ROWS.on(server)
    assert values.pop("zk_server_state") == "standalone"
    assert values.pop("zk_version") in four_letter_word(server.address, "srvr")
    for key in MNTR_KEYS[2:]:
        number = r"\d+\.\d+" if key.startswith("zk_avg_") else r"\d+"
        if key.startswith("zk_p") and key.endswith("latency"):
            assert ("." in values[key]) == PERCENTILES_ARE_FRACTIONS.on(server)
            number = r"\d+(\.\d+)?"
        assert re.fullmatch(number, values[key]), (key, values[key])


def test_mntr_counts_the_same_for_the_same_operations(
    server: Server, connect: Connect, base: str
) -> None:
    watcher = connect()
    before = monitor(server)
    client = connect()
    client.call(rq.create(f"{base}/e", b"12345", flags=1))
    client.call(rq.create(f"{base}/n"))
    client.call(rq.set_data(f"{base}/n", b"123"))
    client.call(rq.exists(f"{base}/missing", watch=True))
    client.call(rq.get_children(base, watch=True))
    watcher.call(rq.get_data(f"{base}/n", watch=True))
    after = monitor(server)
    grown = {
        key: int(after[key]) - int(before[key])
        for key in MNTR_KEYS
        if not key.startswith(("zk_p50", "zk_p95", "zk_p99"))
        if before[key].isdigit() and after[key] != before[key]
    }
    path_bytes = len(f"{base}/e") + len(f"{base}/n")
    # The second mntr counts too.
    expected = {
        "zk_ephemerals_count": 1,
        "zk_num_alive_connections": 1,
        "zk_znode_count": 2,
        "zk_global_sessions": 1,
        "zk_packets_received": 8,
        "zk_watch_count": 3,
        "zk_approximate_data_size": path_bytes + 5 + 3,
        "zk_connection_request_count": 1,
        "zk_cnt_updatelatency": 4,
        "zk_cnt_fsynctime": 4,
        "zk_sum_sync_processor_batch_size": 4,
    }
    assert {key: grown.get(key, 0) for key in expected} == expected
    assert grown["zk_bytes_received_count"] > 0
    assert grown["zk_response_bytes"] > 0


def test_mntr_counts_sessions_that_come_back_and_that_expire(
    server: Server, client: Client, base: str
) -> None:
    before = monitor(server)
    short = wire.connect(server.address, timeout_ms=400)
    short.call(rq.create(f"{base}/e", flags=1))
    again = wire.reattach(server.address, short)
    client.call(rq.exists(f"{base}/e", watch=True))
    assert client.next_event(60).path == f"{base}/e"
    after = monitor(server)
    again.disconnect()
    short.disconnect()
    for key in ("zk_connection_revalidate_count", "zk_stale_sessions_expired"):
        assert int(after[key]) == int(before[key]) + 1, key


def test_srvr_counts_the_same_for_the_same_operations(
    server: Server, client: Client, base: str
) -> None:
    before = summary(server)
    client.call(rq.create(f"{base}/n"))
    client.call(rq.get_data(f"{base}/n"))
    after = summary(server)
    assert int(after["Received"]) == int(before["Received"]) + 3
    assert int(after["Sent"]) == int(before["Sent"]) + 3
    assert after["Connections"] == before["Connections"]
    assert int(after["Zxid"], 16) == int(before["Zxid"], 16) + 1
    assert int(after["Node count"]) == int(before["Node count"]) + 1
    assert after["Outstanding"] == "0"


def test_srst_begins_to_count_anew(server: Server, client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    # Upstream counts a reply some time after it was sent, and so perhaps after the reset.
    for _ in range(10):
        assert four_letter_word(server.address, "srst") == "Server stats reset.\n"
        values = summary(server)
        # srst's own answer, and the question about it.
        if (values["Received"], values["Sent"]) == ("1", "1"):
            break
    else:
        pytest.fail(f"it does not begin anew: {values}")
    assert values["Latency min/avg/max"] == "0/0.0/0"
    assert monitor(server)["zk_cnt_updatelatency"] == "0"


def test_conf_shows_the_settings(server: Server) -> None:
    lines = four_letter_word(server.address, "conf").splitlines()
    values = dict(line.split("=", 1) for line in lines)
    assert list(values) == CONF_KEYS
    assert values["clientPort"] == str(server.port)
    assert values["secureClientPort"] == "-1"
    assert values["tickTime"] == "200"
    assert values["minSessionTimeout"] == "400"
    assert values["maxSessionTimeout"] == "60000"
    assert values["maxClientCnxns"] == "0"
    assert int(values["dataLogSize"]) > 0


def test_dirs_shows_the_sizes(server: Server) -> None:
    text = four_letter_word(server.address, "dirs")
    match = re.fullmatch(r"datadir_size: (\d+)\nlogdir_size: (\d+)\n", text)
    assert match, text
    conf = four_letter_word(server.address, "conf")
    assert f"dataDirSize={match[1]}\n" in conf
    assert f"dataLogSize={match[2]}\n" in conf


def test_envi_begins_with_the_version(server: Server) -> None:
    lines = four_letter_word(server.address, "envi").splitlines()
    assert lines[0] == "Environment:"
    values = dict(line.split("=", 1) for line in lines[1:])
    assert list(values)[:2] == ["zookeeper.version", "host.name"]
    assert {"os.name", "os.arch", "os.version"} <= set(values)
    assert ("user.home" in values) == ENVI_NAMES_FOLDERS.on(server)


def test_the_trace_mask_is_what_was_set_last(server: Server) -> None:
    assert four_letter_word(server.address, "gtmk") == "306"
    for mask in (-2, 306):
        with Connection(server.address) as connection:
            connection.send_bytes(b"stmk" + mask.to_bytes(8, "big", signed=True))
            assert connection.wait_closed() == str(mask).encode()
        assert four_letter_word(server.address, "gtmk") == str(mask)


def test_hash_is_lines_of_zxid_and_digest(server: Server, client: Client, base: str) -> None:
    zxid = client.call(rq.set_data(base, b"x")).zxid
    text = four_letter_word(server.address, "hash")
    assert re.fullmatch(r"([0-9a-f]+: -?\d+\n)*", text), text
    assert text.startswith(f"{zxid:x}: ") == HASH_OF_NOW.on(server)


def test_whoever_closes_its_half_gets_the_whole_answer(server: Server) -> None:
    with socket.create_connection(server.address, timeout=10) as asking:
        # No line end: what Apache leaves unread makes its close a reset, and may cost the answer.
        asking.sendall(b"mntr")
        asking.shutdown(socket.SHUT_WR)
        answer = b""
        while data := asking.recv(65536):
            answer += data
    assert answer.startswith(b"zk_version\t")
    assert answer.endswith(b"\n")
    assert b"_updatelatency\t" in answer


def test_what_stands_behind_a_word_is_not_looked_at(server: Server) -> None:
    with Connection(server.address) as connection:
        connection.send_bytes(b"ruok" + b"srvr" * 100)
        assert connection.wait_closed() == b"imok"


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
