"""`paddock status` as its users meet it: once in a pipe, and live on a terminal."""

import json
import re

import pytest

from paddock.sync import Client
from tests.support.command import COMMAND, ended, refusal_here, success
from tests.support.paddock_server import PaddockServer
from tests.support.server import Options, Service, named_release
from tests.support.terminal import CONTROL_C, Terminal, terminal

NOWHERE = "127.0.0.1:1"


@pytest.mark.everywhere
def test_a_server_is_described_for_programs(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/worker", ephemeral=True)
    (server,) = json.loads(success("status", "--json", "--server", service.hosts))["servers"]
    assert server["server"] == service.hosts
    assert (server["problem"], server["mode"]) == (None, "standalone")
    assert server["version"].startswith(str(named_release(service)))
    assert server["has_details"]
    assert server["nodes"] >= 5
    assert server["clients"] >= 1
    assert server["sessions"] >= 1
    assert server["ephemerals"] >= 1
    assert server["uptime_s"] > 0
    assert int(server["zxid"], 16) > 0


@pytest.mark.everywhere
def test_in_a_pipe_it_is_said_once(service: Service) -> None:
    lines = success("status", "--server", service.hosts).splitlines()
    assert lines[:2] == [f"server        {service.hosts}", "mode          standalone"]
    assert "nodes" in [line.split()[0] for line in lines]


def test_several_servers_are_rows_and_one_that_is_down_is_status_1(service: Service) -> None:
    result = ended("status", "--server", f"{service.hosts},{NOWHERE}/chroot")
    titles, up, down = result.output.splitlines()
    assert titles.split()[:2] == ["server", "mode"]
    assert up.split()[:2] == [service.hosts, "standalone"]
    assert down.split()[:3] == [NOWHERE, "Connection", "refused"]
    assert (result.status, result.errors) == (1, "")


def test_without_a_whitelist_it_says_what_it_can() -> None:
    only_srvr = Options(extra=(("4lw.commands.whitelist", None),))
    with PaddockServer(only_srvr) as server:
        (said,) = json.loads(success("status", "--json", "--server", server.hosts))["servers"]
        assert (said["problem"], said["has_details"], said["sessions"]) == (None, False, None)
        assert said["nodes"] >= 3
        with terminal([*COMMAND, "status", "--once", "--server", server.hosts]) as screen:
            assert screen.wait_for_end() == 0
            assert "A server says more if its 4lw.commands.whitelist has mntr." in screen.text


def ephemerals(screen: Terminal) -> int:
    """Return the number of ephemerals on a screen; -1 while it is being drawn."""
    match = re.search(r"ephemerals +(\d+)\b", screen.text)
    return -1 if match is None else int(match[1])


def is_whole(screen: Terminal) -> bool:
    are_whole = (line.endswith(("│", "╮", "╯")) for line in screen.lines[:6])
    return screen.text.count("mode ") == 1 and all(are_whole)


@pytest.mark.parametrize("columns", [80, 40])
def test_on_a_terminal_it_is_renewed_until_ctrl_c(
    service: Service, client: Client, path: str, columns: int
) -> None:
    command = [*COMMAND, "status", "--interval", "0.1", "--server", service.hosts]
    with terminal(command, columns=columns, rows=24) as screen:
        screen.wait_for("Every 0.1 s. Ctrl-C ends it.")
        before = int(screen.wait_for_match(r"ephemerals +(\d+)")[1])
        # More of them than other tests may have left, whose sessions end meanwhile.
        for number in range(before + 1):
            client.create(f"{path}/{number}", ephemeral=True)
        screen.wait_until(lambda: ephemerals(screen) > before, "more ephemeral nodes")
        screen.wait_for_match(r"requests/s +[\d.,]+ +[▁▂▃▄▅▆▇█]+")
        # It is drawn in its place, and nothing of it is broken at the edge.
        screen.wait_until(lambda: is_whole(screen), "one picture, whole")
        screen.type(CONTROL_C)
        assert screen.wait_for_end() == 130
        assert "Traceback" not in screen.text


def test_several_servers_fit_into_a_narrow_terminal(service: Service) -> None:
    command = [*COMMAND, "status", "--once", "--server", f"{service.hosts},{NOWHERE}"]
    with terminal(command, columns=40) as screen:
        assert screen.wait_for_end() == 1
        titles, up, down = screen.lines[:3]
        assert titles.split()[:2] == ["server", "mode"]
        assert up.split()[:2] == [service.hosts, "standalone"]
        assert down.split()[:3] == [NOWHERE, "Connection", "refused"]


@pytest.mark.parametrize("arguments", [["--interval", "0"], ["--server", "a:b:c"], ["/a"]])
def test_what_is_given_wrongly_is_one_line(arguments: list[str]) -> None:
    refusal_here("status", *arguments, status=2)
