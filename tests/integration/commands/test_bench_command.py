"""`paddock bench` as its users meet it. How fast anything is, no test asks."""

from __future__ import annotations

import json
import signal
import threading
from itertools import takewhile

import pytest

import paddock
from paddock.cli.version import build
from paddock.sync import Client
from paddock.testing import FaultProxy
from tests.support.command import (
    COMMAND,
    Started,
    refusal_here,
    started,
    success,
    success_here,
)
from tests.support.server import Service, named_release
from tests.support.terminal import terminal

# A machine that stands still for some seconds is no lost connection.
PATIENT = ["--timeout", "60"]
QUICK = ["--seconds", "0.02", "--clients", "2", "--window", "3", "--watchers", "3", *PATIENT]
ENDLESS = ["--seconds", "60", "--clients", "2", "--window", "3", *PATIENT]


@pytest.mark.everywhere
def test_all_that_is_measured_is_one_document_and_nothing_is_left(
    service: Service, client: Client, path: str
) -> None:
    arguments = ["--json", "--size", "1k", "--path", f"{path}/bench", *QUICK]
    document = json.loads(success("bench", "--server", service.hosts, *arguments))
    (server,) = document.pop("servers")
    assert (server["server"], server["mode"]) == (service.hosts, "standalone")
    assert server["version"].startswith(str(named_release(service)))
    about = document.pop("client")
    assert (about["version"], about["build"]) == (paddock.__version__, build())
    cells = document.pop("cells")
    settings = {"seconds": 0.02, "clients": 2, "window": 3, "size": 1024, "watchers": 3}
    assert document == {"path": f"{path}/bench", **settings}
    three = [(1, 1), (2, 1), (2, 3)]
    assert [(one["operation"], one["clients"], one["window"]) for one in cells] == [
        *[
            (name, *how)
            for name in ("get", "exists", "children", "set", "create", "ephemeral", "mix")
            for how in three
        ],
        ("watch", 3, 1),
        *[("lock", *how) for how in three[:2]],
    ]
    for cell in cells:
        assert (cell["errors"], cell["problem"]) == (0, None), cell
        latencies = [cell[name] for name in ("p50_ms", "p99_ms", "p999_ms", "max_ms")]
        assert latencies[0] > 0, cell
        assert latencies == sorted(latencies), cell
        assert cell["ops_per_s"] == pytest.approx(cell["operations"] / cell["seconds"], rel=0.01)
        assert cell["client_cpu"] >= 0
    assert client.children(path) == []


def test_in_a_pipe_it_says_what_it_will_do_and_then_a_line_for_each_cell(
    service: Service, client: Client, path: str
) -> None:
    arguments = ["--ops", "set,get", "--path", f"{path}/bench", *QUICK]
    lines = success("bench", "--server", service.hosts, *arguments).splitlines()
    said = dict(line.split(maxsplit=1) for line in takewhile(bool, lines))
    assert said["server"].startswith(f"{service.hosts}, standalone, {named_release(service)}")
    assert said["path"] == f"{path}/bench, removed at the end"
    assert said["time"].startswith("6 cells of 0.02 s, about ")
    titles, *rows = takewhile(bool, lines[len(said) + 1 :])
    assert titles.split()[:8] == [
        *("operation", "clients", "window", "ops/s", "p50", "ms", "p99", "p99.9"),
    ]
    assert [row.split()[:3] for row in rows] == [
        [name, *how] for name in ("set", "get") for how in (["1", "1"], ["2", "1"], ["2", "3"])
    ]
    assert {row.split()[-1] for row in rows} == {"0"}
    assert "the client" in lines[-1].lower()


def test_on_a_terminal_it_is_a_table(service: Service, path: str) -> None:
    arguments = ["--ops", "get", "--path", f"{path}/bench", *QUICK]
    with terminal([*COMMAND, "bench", "--server", service.hosts, *arguments]) as screen:
        assert screen.wait_for_end() == 0
        assert "operation  clients  window" in screen.text
        assert sum(line.startswith("get  ") for line in screen.lines) == 3
        # What was measured at the time is of no interest any more.
        assert "Ctrl-C" not in screen.text


def test_a_path_of_its_own_is_chosen_if_none_is_given(service: Service, client: Client) -> None:
    arguments = ["--ops", "exists", *QUICK]
    document = json.loads(success_here("bench", "--json", "--server", service.hosts, *arguments))
    assert document["path"].startswith("/paddock-bench-")
    assert client.exists(document["path"]) is None


def test_a_path_that_is_there_is_refused_and_stays(
    service: Service, client: Client, path: str
) -> None:
    client.create(f"{path}/theirs", b"data")
    said = refusal_here("bench", "--server", service.hosts, "--path", path, *PATIENT, status=1)
    assert said == f"{path}: is there already, and a path of its own is needed"
    assert client.get(f"{path}/theirs").data == b"data"


def test_where_nothing_may_be_made_it_says_so(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/closed", acl=paddock.READ_ONLY_ACL)
    arguments = ["bench", "--server", service.hosts, *PATIENT, "--path"]
    said = refusal_here(*arguments, f"{path}/closed/bench", status=1)
    assert said == f"{path}/closed/bench: the ACL does not permit it"
    said = refusal_here(*arguments, f"{path}/nothing/bench", status=1)
    assert said == f"{path}/nothing/bench: there is no node above it to make it in"


def wait_for_creates(client: Client, path: str, bench: Started) -> None:
    """Wait until a cell that creates nodes is under way, or has made its first one before."""
    created = threading.Event()

    def on_event(event: paddock.Event) -> None:
        if event.path is not None and event.path.startswith(f"{path}/bench/created/0-"):
            created.set()

    client.add_watch(path, on_event, recursive=True)
    # Such a cell goes on for long after its beginning is told.
    while not bench.line().startswith("operation"):
        pass
    assert created.wait(60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_nothing_is_left(
    service: Service, client: Client, path: str, number: signal.Signals
) -> None:
    arguments = ["--ops", "create", "--path", f"{path}/bench", *ENDLESS]
    with started("bench", "--server", service.hosts, *arguments) as bench:
        wait_for_creates(client, path, bench)
        result = bench.end(number)
    assert (result.status, result.errors) == (128 + number, "")
    client.sync(path)
    assert client.children(path) == []


def test_a_lost_connection_ends_it_and_nothing_is_left(
    service: Service, client: Client, path: str
) -> None:
    arguments = ["--ops", "create", "--path", f"{path}/bench", *ENDLESS]
    with FaultProxy(service.address, seen_max=100) as proxy:
        with started("bench", "--server", proxy.hosts, *arguments) as bench:
            wait_for_creates(client, path, bench)
            proxy.cut()
            result = bench.end()
    assert result.status == 1
    assert result.errors == (
        f"paddock: the connection to {proxy.hosts} was lost while create was measured\n"
    )
    client.sync(path)
    assert client.children(path) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ops", "get,foo"], "there is no 'foo'; there are get, exists, "),
        (["--ops", ""], "there is no ''"),
        (["--seconds", "0"], "is not a number from 0.01 to 60"),
        (["--clients", "101"], "is not a whole number from 1 to 100"),
        (["--window", "1000", "--clients", "11"], "11000 requests at once"),
        (["--size", "1M"], "1048576 bytes are too many: servers take requests of 1048575"),
        (["--size", "many"], "is no size"),
        (["--size", "1000000"], "give a smaller --window"),
        (["--path", "bench"], "does not begin with a slash"),
        (["--path", "/"], "the root is there already"),
        (["/a"], "unexpected extra argument"),
    ],
)
def test_what_is_given_wrongly_is_one_line(arguments: list[str], said: str) -> None:
    assert said in refusal_here("bench", *arguments, status=2)
