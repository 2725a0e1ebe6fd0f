"""What is made of what servers say, and of those that say something else, or nothing."""

import asyncio
import contextlib
from collections.abc import Mapping

import pytest

from paddock.client.session.hosts import Host
from paddock.monitor import Figures, look

SRVR = """\
Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25 08:49 UTC
Latency min/avg/max: 0/1.25/42
Received: 1000
Sent: 999
Connections: 4
Outstanding: 2
Zxid: 0x100000007
Mode: leader
Node count: 12
Proposal sizes last/min/max: 48/36/88
"""
MNTR = """zk_version\t3.8.0
zk_server_state\tleader
zk_global_sessions\t3
zk_watch_count\t5
zk_ephemerals_count\t6
zk_approximate_data_size\t700
zk_open_file_descriptor_count\t80
zk_uptime\t90500
"""
REFUSED = "{} is not executed because it is not in the whitelist.\n"


def looked_at(answers: Mapping[bytes, str | None], limit_s: float = 30.0) -> Figures:
    """Look at a server that says this to each word; None has it say nothing, for ever."""

    async def looking() -> Figures:
        served: list[asyncio.Task[None] | None] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.append(asyncio.current_task())
            # The client may be gone before the answer is written.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                answer = answers[await reader.readexactly(4)]
                if answer is None:
                    await reader.read()
                else:
                    writer.write(answer.encode())
                writer.close()
                await writer.wait_closed()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            figures = await look(Host("127.0.0.1", port), None, limit_s)
            await asyncio.gather(*filter(None, served))
        assert figures.server == f"127.0.0.1:{port}"
        return figures

    return asyncio.run(looking())


def test_everything_is_read() -> None:
    figures = looked_at({b"srvr": SRVR, b"mntr": MNTR})
    fields = figures.fields()
    del fields["server"]
    assert fields == {
        "problem": None,
        "mode": "leader",
        "version": "3.8.0",
        "latency_min_ms": 0,
        "latency_avg_ms": 1.25,
        "latency_max_ms": 42,
        "received": 1000,
        "sent": 999,
        # We are the fourth.
        "clients": 3,
        "outstanding": 2,
        "zxid": "0x100000007",
        "nodes": 12,
        "has_details": True,
        "sessions": 3,
        "watches": 5,
        "ephemerals": 6,
        "data_bytes": 700,
        "uptime_s": 90.5,
        "open_files": 80,
        "requests_per_s": None,
    }


def test_a_version_of_ours_stays_whole() -> None:
    said = SRVR.replace(SRVR.splitlines()[0], "Zookeeper version: 3.8.0-paddock-0.1.0")
    assert looked_at({b"srvr": said, b"mntr": MNTR}).version == "3.8.0-paddock-0.1.0"


@pytest.mark.parametrize("mntr", [REFUSED.format("mntr"), "", "zk_version\t3.4.0\n", "\t\t\n"])
def test_without_details_the_rest_is_there(mntr: str) -> None:
    figures = looked_at({b"srvr": SRVR, b"mntr": mntr})
    assert (figures.problem, figures.nodes, figures.has_details) == (None, 12, False)
    assert figures.sessions is None


def test_what_is_missing_or_no_number_is_not_known() -> None:
    figures = looked_at({b"srvr": "Mode: standalone\nReceived: many\n", b"mntr": ""})
    assert (figures.mode, figures.received, figures.nodes) == ("standalone", None, None)
    assert figures.version is None
    assert figures.latency_avg_ms is None


@pytest.mark.parametrize(
    ("srvr", "problem"),
    [
        (REFUSED.format("srvr"), "does not answer srvr; its 4lw.commands.whitelist should have it"),
        (
            "This ZooKeeper instance is not currently serving requests\n",
            "runs, but does not serve",
        ),
        ("", "gave no answer that a ZooKeeper server would give"),
        ("HTTP/1.1 400 Bad Request: no\n", "gave no answer that a ZooKeeper server would give"),
    ],
)
def test_what_is_no_answer_is_a_problem(srvr: str, problem: str) -> None:
    figures = looked_at({b"srvr": srvr, b"mntr": ""})
    assert (figures.problem, figures.mode) == (problem, None)


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    assert looked_at({b"srvr": None}, 0.05).problem == "no answer within 0.05 s"


def test_a_server_that_is_not_there_is_a_problem() -> None:
    figures = asyncio.run(look(Host("127.0.0.1", 1), None, 30.0))
    assert figures.problem == "Connection refused"


@pytest.mark.parametrize(
    ("before", "after", "rate"),
    [
        ((1000, 10.0), (1202, 12.0), 100.0),
        # Our own two words are none of theirs.
        ((1000, 10.0), (1002, 12.0), 0.0),
        ((1000, 10.0), (1001, 12.0), 0.0),
        # It was started anew.
        ((1000, 10.0), (5, 12.0), None),
        ((1000, 10.0), (1202, 10.0), None),
        ((None, 10.0), (1202, 12.0), None),
        ((1000, 10.0), (None, 12.0), None),
    ],
)
def test_requests_are_counted_from_one_look_to_the_next(
    before: tuple[int | None, float], after: tuple[int | None, float], rate: float | None
) -> None:
    first, second = (
        Figures("a:1", received=received, asked_at=at) for received, at in (before, after)
    )
    second.compare(None)
    assert second.requests_per_s is None
    second.compare(first)
    assert second.requests_per_s == rate
