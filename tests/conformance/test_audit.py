"""The audit log, line for line: the same requests on both servers, and what is written of them."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator

import pytest

from tests.conformance.conftest import another
from tests.conformance.differences import (
    AUDIT_LINES_CAN_BE_FORGED,
    AUDIT_OF_A_TTL_NODE,
    AUDIT_OF_AN_ACL,
    AUDIT_OF_THE_TYPE_IN_A_MULTI,
    AUDIT_OF_WHAT_IS_NOT_UNDERSTOOD,
    LONE_CHECK_IS_KNOWN,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import OPEN, Acl, Code, Op, Request
from tests.support.server import Options, Server

HOUR_MS = 3_600_000
BOB = Acl(1, "digest", "bob:aGFzaA==")
GONE = "operation=ephemeralZNodeDeletionOnSessionCloseOrExpire"

# What is sent, and what is to be written of it, behind the session, the user and the address.
REQUESTS: list[tuple[Request, list[str]]] = [
    (rq.create("/a"), ["create znode=/a znode_type=persistent result=success"]),
    (rq.create("/a"), ["create znode=/a znode_type=persistent result=failure"]),
    (rq.create2("/e", flags=1), ["create znode=/e znode_type=ephemeral result=success"]),
    (
        rq.create("/s-", flags=2),
        ["create znode=/s-0000000002 znode_type=persistent_sequential result=success"],
    ),
    (
        rq.create("/e-", flags=3),
        ["create znode=/e-0000000003 znode_type=ephemeral_sequential result=success"],
    ),
    (rq.create_container("/c"), ["create znode=/c znode_type=container result=success"]),
    (rq.create("/b/a/d"), ["create znode=/b/a/d znode_type=persistent result=failure"]),
    (rq.create("bad"), ["create znode=bad znode_type=persistent result=failure"]),
    (rq.set_data("/a", b"never shown"), ["setData znode=/a result=success"]),
    (rq.set_data("/none", b"never shown"), ["setData znode=/none result=failure"]),
    (rq.set_acl("/a", OPEN), ["setAcl znode=/a acl=world:anyone:cdrwa result=success"]),
    (rq.set_acl("/none", OPEN), ["setAcl znode=/none acl=world:anyone:cdrwa result=failure"]),
    (rq.delete("/none"), ["delete znode=/none result=failure"]),
    (rq.delete("/s-0000000002"), ["delete znode=/s-0000000002 result=success"]),
    (rq.check("/a", 77), []),
    (rq.get_data("/a"), []),
    (rq.exists("/none"), []),
    (rq.sync("/a"), []),
    (rq.reconfig("", "", "server.1=x:1:2"), ["reconfig result=failure"]),
    (
        rq.multi(
            rq.create("/m"),
            rq.set_data("/m", b"never shown"),
            rq.check("/m"),
            rq.delete("/m"),
            rq.create_container("/mc"),
        ),
        [
            "create znode=/m znode_type=persistent result=success",
            "setData znode=/m result=success",
            "delete znode=/m result=success",
            "create znode=/mc znode_type=container result=success",
        ],
    ),
    (rq.multi(rq.create("/n"), rq.delete("/none")), ["multiOperation result=failure"]),
    (rq.multi(rq.check("/a")), []),
    (rq.multi(), []),
]


# The same for whom upstream does otherwise; each is looked at by a test of its own.
TTL_NODE = rq.create_ttl("/t", HOUR_MS)
SEQUENTIAL_IN_MULTI = rq.multi(rq.create("/m-", flags=2))
SEVERAL_ACLS = rq.set_acl("/a", (*OPEN, BOB))
NOT_UNDERSTOOD = Request(Op.CREATE, b"\0")
FORGED = rq.create(
    "/x\n2026-01-01 00:00:00,000 INFO paddock.audit: forged\nSlf4jAuditLogger forged"
)


class Story:
    """What a server wrote, from its start to its stop, with names for the sessions."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._sessions: dict[str, str] = {}
        self._lines: list[str] = []

    def play(self) -> None:
        is_check_known = LONE_CHECK_IS_KNOWN.on(self.server)
        for name, requests in (
            ("first", [one for one, _ in REQUESTS if one.op != Op.CHECK or is_check_known]),
            ("ttl", [TTL_NODE]),
            ("sequential", [SEQUENTIAL_IN_MULTI]),
            ("acls", [SEVERAL_ACLS]),
            ("garbage", [NOT_UNDERSTOOD]),
            ("forger", [FORGED]),
        ):
            with self._session(name) as client:
                client.calls(*requests)
                client.close()
        with self._session("alice") as client:
            client.call(rq.auth("digest", b"alice:password"))
            client.call(rq.create("/alice", acl=(Acl(31, "auth", ""),)))
            client.call(rq.auth("digest", b"super:secret"))
            client.call(rq.create("/super"))
            client.close()
        with self._session("gone", timeout_ms=400) as client:
            client.call(rq.create("/gone", flags=1))
        with self._session("witness") as client:
            if client.call(rq.exists("/gone", watch=True)).err == Code.OK:
                client.next_event()
            client.close()

    def finish(self) -> None:
        """Read the file; the server has stopped."""
        text = self.server.audit_log.read_text(encoding="utf-8")
        for line in re.findall(r"(?:Slf4jAuditLogger|paddock\.audit:) (.*)", text):
            for session, name in self._sessions.items():
                line = line.replace(f"session={session}\t", f"session={name}\t")
            self._lines.append(line.replace("\t", " "))

    def lines(self, beginning: str = "") -> list[str]:
        """Return the lines that start with `beginning`, without it."""
        return [one.removeprefix(beginning) for one in self._lines if one.startswith(beginning)]

    def of(self, name: str) -> list[str]:
        """Return the audited operations of a session that has not authenticated."""
        return self.lines(f"session={name} user=127.0.0.1 ip=127.0.0.1 operation=")

    def _session(self, name: str, timeout_ms: int = 10_000) -> wire.Client:
        client = wire.connect(self.server.address, timeout_ms=timeout_ms)
        self._sessions[f"0x{client.session_id:x}"] = name
        return client


@pytest.fixture(scope="module")
def story(server: Server) -> Iterator[Story]:
    """Everything on one server of its own that keeps an audit log."""
    with another(server, Options(extra=(("audit.enable", "true"),))) as own:
        story = Story(own)
        story.play()
        own.stop()
        story.finish()
        yield story


def test_each_change_is_a_line(story: Story) -> None:
    assert story.of("first") == [line for _, expected in REQUESTS for line in expected]


def test_no_data_and_no_password_is_written(story: Story) -> None:
    text = "\n".join(story.lines())
    assert "never shown" not in text
    assert "password" not in text


def test_the_start_and_the_stop_are_the_first_and_the_last_line(story: Story) -> None:
    process = f"user={getpass.getuser()} operation="
    first, *_, last = story.lines()
    assert first == f"{process}serverStart result=success"
    assert last == f"{process}serverStop result=invoked"


def test_the_nodes_that_go_with_a_session_are_the_servers_own_doing(story: Story) -> None:
    process = f"user={getpass.getuser()} {GONE}"
    assert sorted(story.lines(f"session=first {process}")) == [
        " znode=/e result=success",
        " znode=/e-0000000003 result=success",
    ]
    assert story.lines(f"session=gone {process}") == [" znode=/gone result=success"]


def test_who_it_was_is_every_name_that_the_client_has_proved(story: Story) -> None:
    lines = story.lines("session=alice user=")
    users = [set(line.partition(" ")[0].split(",")) for line in lines]
    assert users == [{"127.0.0.1", "alice"}, {"127.0.0.1", "alice", "super"}]


def test_an_acl_of_several(story: Story, server: Server) -> None:
    acl = AUDIT_OF_AN_ACL.on(server)
    assert story.of("acls") == [f"setAcl znode=/a acl={acl} result=success"]


def test_a_ttl_node(story: Story, server: Server) -> None:
    line = "create znode=/t znode_type=persistent_with_ttl result=success"
    assert story.of("ttl") == [line] * AUDIT_OF_A_TTL_NODE.on(server)


def test_a_sequential_node_of_a_transaction(story: Story, server: Server) -> None:
    (line,) = story.of("sequential")
    kind = AUDIT_OF_THE_TYPE_IN_A_MULTI.on(server)
    assert re.fullmatch(rf"create znode=/m-\d{{10}}{kind} result=success", line)


def test_a_request_that_is_not_understood(story: Story, server: Server) -> None:
    assert story.of("garbage") == AUDIT_OF_WHAT_IS_NOT_UNDERSTOOD.on(server)


def test_a_path_with_a_line_end(story: Story, server: Server) -> None:
    assert ("forged" in story.lines()) == AUDIT_LINES_CAN_BE_FORGED.on(server)
