"""The admin server: the commands over HTTP, on Paddock and on Apache's Jetty."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest

from tests.conformance.conftest import ONE_SERVER_EACH, SERVERS
from tests.conformance.differences import ADMIN_COMMANDS, ADMIN_POST, HASH_OF_NOW, SERVER_STATS
from tests.support import requests as rq
from tests.support import wire
from tests.support.server import Options, Server, ServerMissingError, free_port

INFO = [
    "remote_socket_address",
    "interest_ops",
    "outstanding_requests",
    "packets_received",
    "packets_sent",
]
FULL_INFO = [
    *INFO,
    "session_id",
    "last_operation",
    "established",
    "session_timeout",
    "last_cxid",
    "last_zxid",
    "last_response_time",
    "last_latency",
    "min_latency",
    "avg_latency",
    "max_latency",
]


class Admin:
    """A server and its admin port."""

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.port = port

    def request(
        self, target: str, method: str = "GET", body: bytes | None = None
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, target, body)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def command(self, name: str) -> dict[str, Any]:
        response, body = self.request(f"/commands/{name}")
        assert response.status == 200
        assert response.getheader("Content-Type") == "application/json"
        answer = json.loads(body)
        assert isinstance(answer, dict)
        assert {"command", "error"} <= set(answer)
        return answer


@pytest.fixture(scope="module", params=ONE_SERVER_EACH)
def admin(request: pytest.FixtureRequest) -> Iterator[Admin]:
    port = free_port()
    keys = {"admin.enableServer": "true", "admin.serverPort": str(port)}
    keys["admin.serverAddress"] = "127.0.0.1"
    try:
        server = SERVERS[request.param](Options(extra=tuple(keys.items())))
        server.__enter__()
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    with contextlib.ExitStack() as stack:
        stack.push(server)
        yield Admin(server, port)


@pytest.fixture
def client(admin: Admin) -> Iterator[wire.Client]:
    with wire.connect(admin.server.address) as client:
        yield client
        client.close()


def test_without_a_command_there_are_links_to_all_of_them(admin: Admin) -> None:
    for target in ("/commands", "/commands/"):
        response, body = admin.request(target)
        assert response.status == 200
        lines = body.decode().splitlines()
        names = [line.split(">")[1].removesuffix("</a") for line in lines[::2]]
        assert lines[::2] == [f'<a href="/commands/{name}">{name}</a>' for name in names]
        assert set(lines[1::2]) == {"<br/>"}
        assert names == ADMIN_COMMANDS.on(admin.server)


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        ("ruok", []),
        ("connection_stat_reset crst", []),
        ("stat_reset srst", []),
        ("observer_connection_stat_reset orst", []),
        ("is_read_only isro", ["read_only"]),
        ("dirs", ["datadir_size", "logdir_size"]),
        ("dump", ["expiry_time_to_session_ids", "session_id_to_ephemeral_paths"]),
        ("get_trace_mask gtmk", ["tracemask"]),
        ("hash", ["digests"]),
        ("initial_configuration icfg", ["initial_configuration"]),
        ("last_snapshot lsnp", ["zxid", "timestamp"]),
        ("observers obsr", ["synced_observers", "observers"]),
        ("voting_view", ["current_config"]),
        ("zabstate", ["voting", "zabstate"]),
        ("connections cons", ["connections", "secure_connections"]),
        ("watches wchc", ["session_id_to_watched_paths"]),
        ("watches_by_path wchp", ["path_to_session_ids"]),
        ("watch_summary wchs", ["num_connections", "num_paths", "num_total_watches"]),
        (
            "configuration conf config",
            [
                "client_port",
                "data_dir",
                "data_log_dir",
                "tick_time",
                "max_client_cnxns",
                "min_session_timeout",
                "max_session_timeout",
                "server_id",
                "client_port_listen_backlog",
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_has_its_keys_by_each_of_its_names(
    admin: Admin, names: str, keys: list[str]
) -> None:
    for name in names.split():
        answer = admin.command(name)
        assert list(answer) == [*keys, "command", "error"]
        assert (answer["command"], answer["error"]) == (names.split()[0], None)


def test_server_stats_and_stats(admin: Admin, client: wire.Client) -> None:
    answer, more = admin.command("server_stats"), admin.command("stats")
    stats = answer["server_stats"]
    theirs = {key for key in stats if key not in SERVER_STATS.on(admin.server)}
    assert theirs == {
        "packets_sent",
        "packets_received",
        "data_dir_size",
        "log_dir_size",
        "provider_null",
        "server_state",
        "last_processed_zxid",
        "outstanding_requests",
        "avg_latency",
        "max_latency",
        "min_latency",
        "num_alive_client_connections",
        "uptime",
    }
    assert stats["server_state"] == "standalone"
    assert (stats["num_alive_client_connections"], stats["outstanding_requests"]) == (1, 0)
    assert isinstance(stats["avg_latency"], float)
    zxid = client.call(rq.exists("/")).zxid
    assert stats["last_processed_zxid"] == zxid
    assert (answer["read_only"], answer["node_count"]) == (False, 5)
    assert [list(one) for one in more["connections"]] == [INFO]
    assert more["secure_connections"] == []
    assert more["connections"][0]["remote_socket_address"] == f"127.0.0.1:{client.port}"


def test_connections_say_what_they_did_last(admin: Admin, client: wire.Client) -> None:
    zxid = client.call(rq.get_data("/")).zxid
    expected = {
        "remote_socket_address": f"127.0.0.1:{client.port}",
        "interest_ops": 1,
        "outstanding_requests": 0,
        "packets_received": 2,
        "packets_sent": 2,
        "session_id": client.session_id,
        "last_operation": "GETD",
        "session_timeout": 30_000,
        "last_cxid": 1,
        "last_zxid": zxid,
    }

    def shown() -> dict[str, Any]:
        (one,) = admin.command("connections")["connections"]
        assert list(one) == FULL_INFO
        return {key: one[key] for key in expected}

    # Apache sends a reply before it counts it.
    limit = time.monotonic() + wire.DEADLINE_S
    while (found := shown()) != expected and time.monotonic() < limit:
        pass
    assert found == expected
    admin.command("connection_stat_reset")
    (one,) = admin.command("connections")["connections"]
    assert (one["packets_received"], one["last_operation"], one["last_zxid"]) == (0, "NA", -1)


def test_monitor_has_the_rows_of_mntr(admin: Admin, client: wire.Client) -> None:
    answer = admin.command("monitor")
    words = wire.four_letter_word(admin.server.address, "mntr").splitlines()
    rows = {line.split("\t")[0].removeprefix("zk_") for line in words}
    assert {key for key in answer if "per_namespace" not in key} >= rows - {"insecure_admin_count"}
    assert answer["server_state"] == "standalone"
    assert isinstance(answer["znode_count"], int)
    assert isinstance(answer["avg_latency"], float)
    assert admin.command("mntr").keys() >= {"znode_count", "watch_count"}


def test_watches_and_ephemerals_are_shown(admin: Admin, client: wire.Client) -> None:
    assert client.call(rq.create("/ephemeral", flags=1)).err == 0
    client.call(rq.exists("/ephemeral", watch=True))
    session = client.session_id
    assert admin.command("watches")["session_id_to_watched_paths"] == {str(session): ["/ephemeral"]}
    assert admin.command("watches_by_path")["path_to_session_ids"] == {"/ephemeral": [session]}
    summary = admin.command("watch_summary")
    assert (summary["num_connections"], summary["num_paths"]) == (1, 1)
    assert summary["num_total_watches"] == 1
    dump = admin.command("dump")
    assert dump["session_id_to_ephemeral_paths"] == {str(session): ["/ephemeral"]}
    assert [session] in [one for one in dump["expiry_time_to_session_ids"].values() if one]


def test_environment_has_the_rows_of_envi(admin: Admin) -> None:
    answer = admin.command("environment")
    words = wire.four_letter_word(admin.server.address, "envi").splitlines()[1:]
    assert [key for key in answer if "memory" not in key][:-2] == [
        line.split("=")[0] for line in words if "memory" not in line
    ]
    assert admin.command("env")["command"] == "environment"


def test_the_trace_mask_is_set_with_an_argument(admin: Admin) -> None:
    assert admin.command("set_trace_mask?traceMask=7&traceMask=8")["tracemask"] == 7
    assert admin.command("get_trace_mask")["tracemask"] == 7
    assert admin.command("stmk?traceMask=306")["error"] is None
    missing = "setTraceMask requires long traceMask argument"
    assert admin.command("set_trace_mask")["error"] == missing
    for wrong in ("x", "", "9223372036854775808"):
        answer = admin.command(f"set_trace_mask?traceMask={wrong}")
        assert answer["error"] == f"{missing}, got {wrong}"


def test_a_server_that_stands_alone_has_no_leader(admin: Admin) -> None:
    answer = admin.command("leader")
    assert (answer["command"], answer["error"]) == ("leader", "server is not initialized")


def test_the_digest_of_the_present_state(admin: Admin, client: wire.Client) -> None:
    zxid = client.call(rq.set_data("/", b"")).zxid
    digests = admin.command("hash")["digests"]
    assert ([one["zxid"] for one in digests] == [zxid]) == HASH_OF_NOW.on(admin.server)


def test_the_configuration_is_the_one_that_was_given(admin: Admin) -> None:
    answer = admin.command("configuration")
    assert (answer["client_port"], answer["tick_time"]) == (admin.server.port, 200)
    assert (answer["min_session_timeout"], answer["max_session_timeout"]) == (400, 60_000)
    text = admin.command("initial_configuration")["initial_configuration"]
    assert {"tickTime=200", "maxClientCnxns=0", f"admin.serverPort={admin.port}"} <= set(
        text.splitlines()
    )
    assert "superDigest" not in text


@pytest.mark.parametrize("name", ["nope", "RUOK", "ruok/more", "commands"])
def test_an_unknown_command_is_an_error_with_status_200(admin: Admin, name: str) -> None:
    assert admin.command(name) == {"command": name, "error": f"Unknown command: {name}"}


@pytest.mark.parametrize("target", ["/", "/other", "/command", "/commandsruok"])
def test_elsewhere_there_is_nothing(admin: Admin, target: str) -> None:
    response, _ = admin.request(target)
    assert response.status == 404


def test_head_is_the_same_without_the_answer(admin: Admin) -> None:
    response, body = admin.request("/commands/ruok", "HEAD")
    assert (response.status, body) == (200, b"")
    assert response.getheader("Content-Type") == "application/json"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_but_get_and_head_is_allowed(admin: Admin, method: str) -> None:
    response, _ = admin.request("/commands/ruok", method, b"something")
    assert response.status == (ADMIN_POST.on(admin.server) if method == "POST" else 405)


def test_a_connection_serves_many_requests(admin: Admin) -> None:
    connection = HTTPConnection("127.0.0.1", admin.port, timeout=20)
    for name in ("ruok", "monitor", "nope", "ruok"):
        connection.request("GET", f"/commands/{name}")
        response = connection.getresponse()
        assert json.loads(response.read())["command"] == name
        assert not response.will_close
    connection.close()
