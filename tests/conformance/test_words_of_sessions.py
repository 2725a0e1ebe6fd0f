"""cons, crst, wchs, wchc, wchp and dump: the words about connections, sessions and watches."""

from __future__ import annotations

import re

import pytest

from tests.conformance.conftest import Connect
from tests.conformance.differences import DUMP_COUNTS_CONNECTIONS_OF_THE_PAST, NO_OPERATION_YET
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Request
from tests.support.server import Server
from tests.support.wire import Client, Connection, four_letter_word

BRIEF = r" /127\.0\.0\.1:\d+\[[0-5]\]\(queued=\d+,recved=\d+,sent=\d+\)"
FULL = (
    r" /127\.0\.0\.1:\d+\[[0-5]\]\(queued=\d+,recved=\d+,sent=\d+,sid=0x[0-9a-f]+,lop=\w+"
    r",est=\d+,to=\d+(,lcxid=0x[0-9a-f]+)?,lzxid=0x[0-9a-f]+,lresp=\d+"
    r",llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)"
)
DATE = r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \S+ \d{4}"


def connection_line(server: Server, client: Client) -> dict[str, str]:
    """The line of cons about a session, by its names."""
    text = four_letter_word(server.address, "cons")
    assert text.endswith("\n\n")
    (line,) = (line for line in text.splitlines() if f"sid=0x{client.session_id:x}," in line)
    assert re.fullmatch(FULL, line), line
    pairs = line[line.index("(") + 1 : -1].split(",")
    return dict(pair.split("=") for pair in pairs)


def test_cons_is_one_line_a_connection(server: Server, client: Client) -> None:
    text = four_letter_word(server.address, "cons")
    assert re.fullmatch(rf"(({FULL}|{BRIEF})\n)+\n", text), text
    # The asking connection is listed too, without a session and no longer read from.
    assert len(re.findall(r"\[0\]\(queued=0,recved=1,sent=0\)", text)) == 1


def test_cons_shows_what_a_session_did_last(server: Server, client: Client, base: str) -> None:
    client.call(rq.exists(base, watch=True))
    zxid = client.call(rq.set_data(base, b"x")).zxid
    client.call(rq.get_data(base))
    line = connection_line(server, client)
    # The handshake is a packet, and so is the event.
    expected = {"queued": "0", "recved": "4", "sent": "5", "lop": "GETD", "to": "30000"}
    expected |= {"lcxid": "0x3", "lzxid": f"0x{zxid:x}"}
    assert {key: line[key] for key in expected} == expected
    assert int(line["minlat"]) <= int(line["avglat"]) <= int(line["maxlat"])


def test_the_first_operation_is_the_making_of_the_session(server: Server, client: Client) -> None:
    line = connection_line(server, client)
    assert (line["lop"], line["lcxid"]) == ("SESS", "0x0")
    assert (line["recved"], line["sent"]) == ("1", "1")
    assert int(line["lzxid"], 16) > 0


def test_a_ping_is_an_operation_without_a_number(server: Server, client: Client) -> None:
    client.call(rq.exists("/"))
    client.call(rq.ping())
    line = connection_line(server, client)
    assert (line["lop"], line["lcxid"]) == ("PING", "0x1")


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (rq.exists("/"), "EXIS"),
        (rq.get_data("/"), "GETD"),
        (rq.get_acl("/"), "GETA"),
        (rq.get_children("/"), "GETC"),
        (rq.get_children2("/"), "GETC"),
        (rq.get_all_children_number("/"), "GETACN"),
        (rq.get_ephemerals("/"), "GETE"),
        (rq.sync("/"), "SYNC"),
        (rq.multi(rq.check("/")), "MULT"),
        (rq.multi_read(rq.get_data("/")), "MLTR"),
        (rq.add_watch("/", 0), "ADDW"),
        (rq.set_watches(0), "SETW"),
        (rq.set_watches2(0), "STW2"),
        (rq.who_am_i(), "HOMI"),
        (rq.set_data("/", b""), "SETD"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_operations_have_short_names(
    server: Server, client: Client, request_: Request, name: str
) -> None:
    assert client.call(request_).err == 0
    assert connection_line(server, client)["lop"] == name


def test_the_writes_below_a_node_have_short_names(
    server: Server, client: Client, base: str
) -> None:
    for request_, name in (
        (rq.create(f"{base}/a"), "CREA"),
        (rq.create2(f"{base}/b"), "CREA"),
        (rq.create_container(f"{base}/c"), "CREA"),
        (rq.delete(f"{base}/a"), "DELE"),
    ):
        assert client.call(request_).err == 0
        assert connection_line(server, client)["lop"] == name


def test_crst_begins_to_count_anew(server: Server, client: Client) -> None:
    client.call(rq.exists("/"))
    established = connection_line(server, client)["est"]
    assert four_letter_word(server.address, "crst") == "Connection stats reset.\n"
    line = connection_line(server, client)
    assert "lcxid" not in line
    expected = {"queued": "0", "recved": "0", "sent": "0", "lop": "NA", "est": established}
    expected |= {"to": "30000", "lzxid": "0xffffffffffffffff", "lresp": "0", "llat": "0"}
    expected |= {"minlat": "0", "avglat": "0", "maxlat": "0"}
    assert {key: line[key] for key in expected} == expected
    client.call(rq.exists("/"))
    line = connection_line(server, client)
    assert (line["recved"], line["sent"], line["lop"]) == ("1", "1", "EXIS")


def test_stat_shows_a_connection_that_asks_for_nothing(server: Server) -> None:
    with Connection(server.address) as silent:
        port = silent.port
        text = four_letter_word(server.address, "stat")
        # Until the server has taken it in, it is not there.
        while f":{port}[" not in text:
            text = four_letter_word(server.address, "stat")
        assert f" /127.0.0.1:{port}[1](queued=0,recved=0,sent=0)\n" in text


def test_watches_by_path_by_session_and_in_numbers(
    server: Server, connect: Connect, base: str
) -> None:
    assert four_letter_word(server.address, "wchs") == (
        "0 connections watching 0 paths\nTotal watches:0\n"
    )
    assert four_letter_word(server.address, "wchc") == "\n"
    assert four_letter_word(server.address, "wchp") == "\n"
    one, two = connect(), connect()
    one.call(rq.exists(f"{base}/a", watch=True))
    one.call(rq.exists(f"{base}/b", watch=True))
    two.call(rq.get_data(base, watch=True))
    two.call(rq.exists(f"{base}/b", watch=True))
    # Watches on children are not told of.
    two.call(rq.get_children(base, watch=True))
    assert four_letter_word(server.address, "wchs") == (
        "2 connections watching 3 paths\nTotal watches:4\n"
    )
    first, second = f"0x{one.session_id:x}", f"0x{two.session_id:x}"
    assert blocks(four_letter_word(server.address, "wchc")) == {
        first: {f"{base}/a", f"{base}/b"},
        second: {base, f"{base}/b"},
    }
    assert blocks(four_letter_word(server.address, "wchp")) == {
        base: {second},
        f"{base}/a": {first},
        f"{base}/b": {first, second},
    }


def blocks(text: str) -> dict[str, set[str]]:
    """Lines, and below each the ones that are indented with a tab."""
    assert text.endswith("\n\n")
    found: dict[str, set[str]] = {}
    name = ""
    for line in text[:-1].splitlines():
        if line.startswith("\t"):
            found[name].add(line[1:])
        else:
            name = line
            found[name] = set()
    return found


def test_dump_shows_sessions_ephemerals_and_connections(
    server: Server, client: Client, base: str
) -> None:
    client.call(rq.create(f"{base}/e", flags=1))
    match = dumped(server)
    session = f"0x{client.session_id:x}"
    assert f"\t{session}\n" in match["session_sets"]
    assert int(match["sessions"]) == match["session_sets"].count("\t0x")
    assert f"{session}:\n\t{base}/e\n" in match["ephemerals"]
    assert int(match["owners"]) == len(re.findall(r"^0x", match["ephemerals"], re.MULTILINE))
    assert f"\tip: /127.0.0.1:{client.port} sessionId: {session}\n" in match["connection_sets"]
    surplus = int(match["connections"]) - match["connection_sets"].count("\tip: ")
    assert surplus == 0 or (surplus > 0 and DUMP_COUNTS_CONNECTIONS_OF_THE_PAST.on(server))


def dumped(server: Server) -> re.Match[str]:
    """Have a server dump what it has, and take that apart."""
    text = four_letter_word(server.address, "dump")
    line = r"\d+ expire at " + DATE + r":\n"
    pattern = (
        r"SessionTracker dump:\nSession Sets \(\d+\)/\((?P<sessions>\d+)\):\n"
        rf"(?P<session_sets>({line}(\t0x[0-9a-f]+\n)*)+)"
        r"ephemeral nodes dump:\nSessions with Ephemerals \((?P<owners>\d+)\):\n"
        r"(?P<ephemerals>(0x[0-9a-f]+:\n(\t/\S+\n)*)*)"
        r"Connections dump:\nConnections Sets \(\d+\)/\((?P<connections>\d+)\):\n"
        rf"(?P<connection_sets>({line}(\tip: /\S+:\d+ sessionId: 0x[0-9a-f]+\n)*)+)"
    )
    match = re.fullmatch(pattern, text)
    assert match, text
    return match


def test_a_session_that_came_back_has_no_operation_yet(server: Server, client: Client) -> None:
    again = wire.reattach(server.address, client)
    line = connection_line(server, again)
    again.close()
    assert (line["lcxid"], line["lzxid"], line["lresp"]) == ("0x0", "0x0", "0")
    assert line["lop"] == NO_OPERATION_YET.on(server)
