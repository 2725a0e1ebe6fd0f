"""The text of a history."""

from paddock.errors import NO_NODE
from paddock.protocol import opcodes
from paddock.testing.simulation import history as h
from paddock.testing.simulation.history import Moment
from paddock.testing.simulation.story import tell
from tests.unit.testing.simulation.written import Written, stat


def test_a_person_can_follow_it() -> None:
    written = Written()
    one = written.connect("c1", 1, opened=1)
    written.reply(written.create(one, "/a", flags=1), 2)
    written.reply(written.set_data(one, "/a", b"x"), 3, stat(2, 3, version=1, size=1))
    written.reply(written.ask(one, opcodes.PING), 3)
    written.event(one, 2, "/a", 4)
    written.reply(written.exists(one, "/b", watch=True), 4, error=NO_NODE)
    written.history.add(Moment(14.0, h.FAULT, text="server 1 killed"))
    written.lose(one)
    assert [line.rstrip() for line in tell(written.history)] == [
        "    1.0000  c1 #1     connects to s1: asks for a new session, has seen 0x0",
        "    2.0000  c1 #1       session 0x1 is its, timeout 10000 ms",
        "    3.0000  c1 #1     create /a b'' ephemeral   xid 1",
        "    4.0000  c1 #1       reply create /a b'' ephemeral: 0x2 /a   xid 1",
        "    5.0000  c1 #1     set /a b'x'   xid 2",
        "    6.0000  c1 #1       reply set /a b'x': 0x3 version 1   xid 2",
        "    9.0000  c1 #1       event deleted /a: 0x4",
        "   10.0000  c1 #1     exists /b watch   xid 4",
        "   11.0000  c1 #1       reply exists /b watch: 0x4 NoNodeError   xid 4",
        "   14.0000            ***  server 1 killed",
        "   12.0000  c1 #1       connection lost: reset",
    ]
