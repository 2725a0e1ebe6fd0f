"""Four-letter words, where no other server can be asked for comparison."""

from __future__ import annotations

import asyncio
import re

import pytest

from paddock.server.admin.four_letter_words import FourLetterWords
from paddock.server.admin.metrics import PERCENTILES, Metrics
from paddock.state.watcher import ONE_SHOT
from paddock.storage.events import FAULT
from tests.support import requests as rq
from tests.unit.server.harness import FakeClient, Harness, run, turn

_WORDS = "conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat stmk wchc wchp wchs"
EVERY_WORD = _WORDS.split()


def harness(words: str = "*") -> Harness:
    made = Harness(four_letter_words=frozenset(words.split(",")), max_connections_per_address=0)
    metrics = Metrics(made.service, None, 2181, asyncio.get_running_loop().time)
    made.service.words = FourLetterWords(metrics).answer
    return made


async def ask(made: Harness, word: str) -> str:
    """Ask on a connection of its own."""
    asking = FakeClient(made)
    asking.receive(word.encode() + (bytes(8) if word == "stmk" else b""))
    while asking.transport.is_open:
        await turn()
    return asking.transport.written.decode()


def test_a_word_that_is_not_on_the_whitelist_says_so() -> None:
    async def scenario() -> None:
        made = harness("ruok")
        assert await ask(made, "ruok") == "imok"
        assert (await ask(made, "srvr")).startswith("Zookeeper version: ")
        for word in set(EVERY_WORD) - {"ruok", "srvr"}:
            expected = f"{word} is not executed because it is not in the whitelist.\n"
            assert await ask(made, word) == expected

    run(scenario)


def test_what_is_not_on_the_whitelist_does_nothing() -> None:
    async def scenario() -> None:
        made = harness("gtmk")
        await made.client()
        before = made.service.statistics.packets_received
        for word in ("srst", "crst"):
            await ask(made, word)
        stmk = FakeClient(made)
        stmk.receive(b"stmk" + (5).to_bytes(8, "big"))
        assert made.service.statistics.packets_received == before + 3
        assert await ask(made, "gtmk") == "306"

    run(scenario)


def test_mntr_tells_of_change_feeds() -> None:
    async def scenario() -> None:
        made = harness()
        counted = made.service.statistics
        counted.feed_pulls, counted.feed_changes, counted.feeds_gone = 3, 4, 5
        told = [line for line in (await ask(made, "mntr")).splitlines() if "_change_feed" in line]
        assert told == [
            "zk_change_feeds\t0",
            "zk_change_feeds_waiting\t0",
            "zk_change_feed_pulls\t3",
            "zk_change_feed_changes\t4",
            "zk_change_feeds_gone\t5",
        ]

    run(scenario)


def test_mntr_has_percentiles_of_latencies() -> None:
    async def scenario() -> None:
        made = harness()
        names = [f"zk_{part}_{of}latency" for of in ("update", "read") for part in PERCENTILES]
        rows = dict(line.split("\t") for line in (await ask(made, "mntr")).splitlines())
        assert [rows[name] for name in names] == ["0.0"] * 8
        counted = made.service.statistics
        counted.latency_ms.add(0.2, 98)
        counted.latency_ms.add(40.0, 2)
        counted.read_ms.add(0.04)
        rows = dict(line.split("\t") for line in (await ask(made, "mntr")).splitlines())
        found = [float(rows[name]) for name in names]
        assert 0.1 < found[0] <= found[1] <= 0.25
        assert 25 < found[2] <= found[3] <= 50
        assert all(0.025 < one <= 0.05 for one in found[4:])

    run(scenario)


def test_while_sessions_are_not_served_the_words_say_so() -> None:
    async def scenario() -> None:
        made = harness()
        made.service.is_open = False
        for word in set(EVERY_WORD) - {"isro", "envi", "gtmk", "stmk"}:
            expected = "This ZooKeeper instance is not currently serving requests\n"
            assert await ask(made, word) == expected, word
        assert await ask(made, "isro") == "null"
        assert (await ask(made, "envi")).startswith("Environment:\n")
        assert await ask(made, "gtmk") == "306"

    run(scenario)


@pytest.mark.parametrize("cuts", [[4], [3], [11], list(range(1, 12))])
def test_a_trace_mask_may_come_in_pieces(cuts: list[int]) -> None:
    async def scenario() -> None:
        made = harness()
        asking = FakeClient(made)
        whole = b"stmk" + (-7).to_bytes(8, "big", signed=True)
        for begin, end in zip([0, *cuts], [*cuts, 12], strict=True):
            assert asking.transport.written == b""
            asking.receive(whole[begin:end])
        while asking.transport.is_open:
            await turn()
        assert asking.transport.written == b"-7"

    run(scenario)


def test_half_a_trace_mask_is_waited_for_no_longer_than_a_handshake() -> None:
    async def scenario() -> None:
        made = harness()
        asking = FakeClient(made)
        asking.receive(b"stmk\n")
        await asyncio.sleep(made.service.config.handshake_timeout_ms / 1000 + 1)
        assert not asking.transport.is_open
        assert asking.transport.written == b""
        assert made.service.statistics.connections_timed_out == 1

    run(scenario)


def test_a_long_answer_is_not_made_for_somebody_who_does_not_read() -> None:
    async def scenario() -> None:
        made = harness()
        client = await made.client()
        for number in range(50_000):
            made.watches.data.add(b"/watched/path/%d" % number, client.watcher, ONE_SHOT)
        asking = FakeClient(made)
        asking.transport.on_write = asking.connection.pause_writing
        asking.receive(b"wchc")
        for _ in range(100):
            await turn()
        asking.transport.waiting_bytes = len(asking.transport.written)
        assert 0 < len(asking.transport.written) < 64 << 10
        await asyncio.sleep(60)
        assert not asking.transport.is_open

    run(scenario)


def test_a_long_answer_is_whole_though_others_come_and_go_meanwhile() -> None:
    async def scenario() -> None:
        made = harness()
        clients = [await made.client() for _ in range(300)]
        for number, client in enumerate(clients):
            for path in range(50):
                made.watches.data.add(b"/%d/%d" % (number, path), client.watcher, ONE_SHOT)
        for word in ("cons", "stat", "wchc", "wchp", "dump"):
            asking = FakeClient(made)
            asking.receive(word.encode())
            # It is under way: some leave, others come.
            clients.pop().connection.abort(FAULT)
            clients.insert(0, await made.client())
            made.watches.data.add(b"/more", clients[0].watcher, ONE_SHOT)
            while asking.transport.is_open:
                await turn()
            text = asking.transport.written.decode()
            assert text.endswith("\n")
            for client in clients[5:-5]:
                assert word == "stat" or f"0x{client.session:x}" in text

    run(scenario)


def test_a_path_that_no_node_could_have_breaks_no_line() -> None:
    async def scenario() -> None:
        made = harness()
        client = await made.client()
        client.send(rq.exists("/a\n0x1", watch=True), rq.exists("/ü", watch=True))
        made.watches.data.add(b"/\xff", client.watcher, ONE_SHOT)
        session = f"0x{client.session:x}"
        expected = [session, "\t/a\\x0a0x1", "\t/ü", "\t/\ufffd", ""]
        assert (await ask(made, "wchc")).splitlines() == expected
        assert (await ask(made, "wchp")).splitlines()[::2] == ["/a\\x0a0x1", "/ü", "/\ufffd", ""]

    run(scenario)


def test_latencies_are_those_of_the_writes_of_each_connection() -> None:
    async def scenario() -> None:
        made = harness()
        one, two = await made.client(), await made.client()
        await ask(made, "crst")
        for client, seconds in ((one, 0.25), (one, 0.75), (two, 0.5)):
            client.send(rq.set_data("/", b"x"), rq.set_data("/", b"y"))
            await asyncio.sleep(seconds)
            await made.settle()
        client.send(rq.get_data("/"))
        text = await ask(made, "cons")
        found = re.findall(r"llat=(\d+),minlat=(\d+),avglat=(\d+),maxlat=(\d+)", text)
        assert found == [("750", "250", "500", "750"), ("500", "500", "500", "500")]

    run(scenario)


def test_the_last_response_is_the_one_to_what_came_or_was_written_last() -> None:
    async def scenario() -> None:
        made = harness()
        client = await made.client()
        await asyncio.sleep(1)
        client.send(rq.set_data("/", b"x"))
        await asyncio.sleep(1)
        await made.settle()
        assert ",lresp=2000," in await ask(made, "cons")
        await asyncio.sleep(1)
        client.send(rq.get_data("/"))
        assert ",lresp=3000," in await ask(made, "cons")

    run(scenario)


def test_a_session_is_dumped_with_the_time_at_which_it_would_expire() -> None:
    async def scenario() -> None:
        made = harness()
        client = await made.client()
        await asyncio.sleep(2.5)
        client.send(rq.exists("/"))
        # Heard of at 2.5 s, it has 6 s, and is looked at in ticks of 2 s: at 10 s.
        metrics = Metrics(made.service, None, 2181, asyncio.get_running_loop().time)
        assert metrics.date_ms(10.0) == made.wall_ms + 7500
        text = await ask(made, "dump")
        assert text.startswith("SessionTracker dump:\nSession Sets (1)/(1):\n1 expire at ")
        # The wall clock of the harness stands still at 1,000 s.
        assert re.search(r":16:47 \S+ 1970:\n\t0x", text), text

    run(scenario)


def test_the_owner_is_told_every_word_that_only_reads() -> None:
    async def scenario() -> None:
        made = Harness(four_letter_words=frozenset())
        metrics = Metrics(made.service, None, 2181, asyncio.get_running_loop().time)
        words = FourLetterWords(metrics)

        def said(word: str) -> str:
            pieces = words.say(word)
            assert pieces is not None
            return b"".join(pieces).decode()

        assert said("ruok") == "imok"
        assert "zk_global_sessions\t" in said("mntr")
        assert said("dump").startswith("SessionTracker dump:")
        for word in ("crst", "srst", "stmk", "nope", ""):
            assert words.say(word) is None

    run(scenario)
