"""Sessions, from what Apache ZooKeeper and Paddock say of them, and what a server has written."""

import pytest

from paddock.dashboard.sessions import (
    Session,
    due,
    ended_text,
    take_connections,
    take_cons,
    take_dump,
    take_ephemerals,
    take_events,
    take_wchc,
    wchp_of,
)
from paddock.storage import events as e
from paddock.storage.events import Event

# As Apache ZooKeeper 3.8 says it.
CONS = """\
 /127.0.0.1:51234[1](queued=0,recved=5,sent=5,sid=0x100012345670000,lop=PING,est=1700000000000,to=10000,lcxid=0x4,lzxid=0x7,lresp=123,llat=0,minlat=0,avglat=0,maxlat=2)
 /[0:0:0:0:0:0:0:1]:40000[1](queued=0,recved=2,sent=2,sid=0xff00012345670001,lop=SESS,est=1700000005000,to=30000,lcxid=0x0,lzxid=0xffffffffffffffff,lresp=5,llat=1,minlat=1,avglat=1,maxlat=1)
 /127.0.0.1:51299[0](queued=0,recved=1,sent=0)

"""
DUMP = """\
SessionTracker dump:
Session Sets (2)/(3):
2 expire at Tue Nov 14 22:13:30 UTC 2023:
\t0x100012345670000
\t0xab
1 expire at Tue Nov 14 22:13:40 XYZ 2023:
\t0xff00012345670001
ephemeral nodes dump:
Sessions with Ephemerals (2):
0x100012345670000:
\t/workers/a
\t/workers/with: colon
0xff00012345670001:
\t/leader
Connections dump:
Connections Sets (1)/(1):
1 expire at Tue Nov 14 22:13:30 UTC 2023:
\tip: /127.0.0.1:51234 sessionId: 0x100012345670000
"""
FIRST, SECOND = 0x100012345670000, 0xFF00012345670001


def test_cons_tells_who_is_connected() -> None:
    found: dict[int, Session] = {}
    take_cons(CONS, "one:2181", found)
    assert found.keys() == {FIRST, SECOND}
    assert found[FIRST].fields() == {
        "session": "0x100012345670000",
        "address": "127.0.0.1:51234",
        "identities": None,
        "since_ms": 1_700_000_000_000,
        "timeout_ms": 10_000,
        "last_heard_ms": None,
        "ephemerals": [],
        "ephemeral_count": 0,
        "watches": None,
        "server": "one:2181",
    }
    assert found[SECOND].address == "[0:0:0:0:0:0:0:1]:40000"


def test_dump_tells_ephemeral_nodes_those_who_are_away_and_when_they_were_heard_of() -> None:
    found: dict[int, Session] = {}
    take_cons(CONS, "one:2181", found)
    take_dump(DUMP, found)
    assert found[FIRST].ephemerals == ["/workers/a", "/workers/with: colon"]
    assert found[SECOND].ephemerals == ["/leader"]
    assert found[0xAB].address is None
    # 22:13:30, ten seconds after it was heard of; in a zone that is not known here, nobody knows.
    assert found[FIRST].last_heard_ms == 1_700_000_010_000 - 10_000
    assert found[SECOND].last_heard_ms is None


def test_wchc_tells_the_watches_of_each_session() -> None:
    found = {FIRST: Session(FIRST), SECOND: Session(SECOND)}
    take_wchc("0x100012345670000\n\t/a\n\t/b\n0x77\n\t/c\n\n", found)
    assert (found[FIRST].watches, found[SECOND].watches) == (2, 0)


def test_wchp_tells_who_watches_a_path() -> None:
    said = ["/a\n\t0x1\n\t0x2\n/a/b\n\t0x1\n\n", "\t0x9\n/a\n\t0x3\n\tnothing\n"]
    assert wchp_of(said) == {"/a": ["0x1", "0x2", "0x3"], "/a/b": ["0x1"]}


def test_the_admin_server_tells_the_same() -> None:
    found: dict[int, Session] = {}
    take_connections(
        {
            "connections": [
                {
                    "remote_socket_address": "/127.0.0.1:51234",
                    "session_id": FIRST,
                    "established": 1_700_000_000_000,
                    "session_timeout": 10_000,
                },
                {"remote_socket_address": "127.0.0.1:1", "session_id": 0},
                "nonsense",
            ],
            # Java has signed numbers.
            "secure_connections": [
                {"remote_socket_address": "h:1", "session_id": SECOND - (1 << 64)}
            ],
        },
        "one:2181",
        found,
    )
    take_ephemerals(
        {
            "session_id_to_ephemeral_paths": {str(FIRST): ["/a"], str(SECOND - (1 << 64)): ["/b"]},
            "expiry_time_to_session_ids": {"5": [171, FIRST]},
        },
        found,
    )
    assert found.keys() == {FIRST, SECOND, 171}
    assert (found[FIRST].address, found[FIRST].ephemerals) == ("127.0.0.1:51234", ["/a"])
    assert (found[SECOND].address, found[SECOND].ephemerals) == ("h:1", ["/b"])


def test_events_tell_who_a_session_is_and_why_others_ended() -> None:
    found = {FIRST: Session(FIRST, since_ms=900)}
    ended = take_events(
        [
            Event(100, e.SESSION_OPENED, session=FIRST, address="h:1"),
            Event(110, e.AUTHENTICATED, session=FIRST, identities=("digest:alice",)),
            Event(120, e.SESSION_OPENED, session=7, address="h:7"),
            Event(130, e.SESSION_ENDED, session=7, reason=e.SILENT, details={"silent_seconds": 6}),
            Event(140, e.SESSION_ENDED, session=8, reason=e.CLOSED),
            Event(150, e.STALLED),
        ],
        found,
    )
    assert (found[FIRST].since_ms, found[FIRST].identities) == (100, ("digest:alice",))
    assert [one["session"] for one in ended] == ["0x8", "0x7"]
    assert ended[1] == {
        "session": "0x7",
        "ended_ms": 130,
        "cause": "silent",
        "text": "Its client was connected and sent nothing for 6.0 s: it was stopped, or cut off.",
        "address": "h:7",
    }


def test_a_cause_that_nobody_knows_is_told_as_it_is() -> None:
    assert ended_text(Event(1, e.SESSION_ENDED, reason="new")) == "It ended: new."


def test_nonsense_is_no_session() -> None:
    found: dict[int, Session] = {}
    take_cons("<html>\n /x[1](sid=zz)\n", "one", found)
    take_dump("0xzz:\n\t/a\nSessionTracker dump:\n\t0xnothing\n", found)
    take_connections({"connections": 5}, "one", found)
    take_ephemerals({"session_id_to_ephemeral_paths": [], "expiry_time_to_session_ids": 1}, found)
    assert found == {}


def test_an_answer_that_took_long_is_kept_for_longer_up_to_a_limit() -> None:
    assert due(10.0, 10.0, 1.0) == 11.0
    assert due(10.0, 10.01, 1.0) == pytest.approx(11.01)
    assert due(10.0, 10.1, 1.0) == pytest.approx(16.1)
    assert due(10.0, 20.0, 1.0) == 35.0
